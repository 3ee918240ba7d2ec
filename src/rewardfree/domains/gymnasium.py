"""Any Gymnasium environment with Box spaces: gymnasium:ID, or gymnasium:module:factory."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from rewardfree.errors import UserError
from rewardfree.interfaces import Axis, Domain, Reward, Spec, State, Step

EPISODE_LENGTH = 1000
"""Steps after which an episode is cut off, for an environment that does not say."""
SEEN = 500
"""Steps of random actions that show how far an observation without bounds goes."""
CELLS = 20
TIMESTEP = 0.05  # s, for films of an environment that does not say
TRUSTED = "REWARDFREE_ENVIRONMENTS"
"""Environment variable: modules whose environments may be made on the word of a stored data set."""
_EMPTY = np.zeros(0)


def allow(domain: str) -> None:
    """The user asks for this domain, so the module it names may be imported."""
    module, colon, _ = domain.removeprefix("gymnasium:").partition(":")
    if domain.startswith("gymnasium:") and colon:
        os.environ[TRUSTED] = ",".join({*_trusted(), module})


def _trusted() -> set[str]:
    return {module for module in os.environ.get(TRUSTED, "").split(",") if module}


class Gymnasium(Domain):
    """A Gymnasium environment. Rewards are over `obs`, `before(obs)` and `action`, by index or `obs_o0`."""

    id: ClassVar[str]
    tasks: ClassVar[Mapping[str, str | Reward]] = {}

    @classmethod
    @functools.cache
    def named(cls, id_: str) -> type[Gymnasium]:
        """The domain of one environment."""
        return type("Gymnasium", (cls,), {"id": id_, "__module__": cls.__module__, "__doc__": cls.__doc__})

    def __init__(self) -> None:
        self._environment = _make(self.id)
        observation, action = self._environment.observation_space, self._environment.action_space
        self._low, self._high = action.low.ravel().astype(np.float64), action.high.ravel().astype(np.float64)
        self._shape = action.shape
        width = int(np.prod(observation.shape))
        inner = self._environment.unwrapped
        limit = getattr(self._environment.spec, "max_episode_steps", None)
        names = tuple(f"o{i}" for i in range(width))
        self._named = min(width, 3)
        self.spec = Spec(
            domain=f"gymnasium:{self.id}",
            observation=width,
            action=len(self._low),
            episode_length=limit or EPISODE_LENGTH,
            timestep=float(getattr(inner, "dt", TIMESTEP)),
            quantities=names[: self._named],
            joints={},
            coverage=self._axes(observation, names),
            terminates=True,
            observation_names=names,
        )

    def reset(self, seed: int) -> State:
        """Start an episode; the start depends on the seed alone."""
        observation, _ = self._environment.reset(seed=seed)
        return self._state(observation)

    def step(self, action: Float[np.ndarray, " A"]) -> Step:
        """Apply an action in [-1, 1]^A, scaled to the environment's own bounds."""
        ctrl = self.control(action)
        space = self._environment.action_space
        observation, _, terminated, truncated, _ = self._environment.step(
            ctrl.astype(space.dtype).reshape(self._shape)
        )
        return Step(self._state(observation), ctrl, bool(terminated), bool(truncated))

    def control(self, action: Float[np.ndarray, "*n A"]) -> Float[np.ndarray, "*n nu"]:
        """The control that an action in [-1, 1]^A stands for."""
        share = (np.clip(np.asarray(action, np.float64), -1.0, 1.0) + 1) / 2
        return self._low + share * (self._high - self._low)

    def quantities_of(
        self,
        observation: Float[np.ndarray, "n O"],
        qpos: Float[np.ndarray, "n nq"],
        qvel: Float[np.ndarray, "n nv"],
    ) -> Float[np.ndarray, "n Q"]:
        """The first entries of the observation."""
        return observation[:, : self._named]

    def render(self, height: int, width: int) -> np.ndarray:
        """A picture of the present state, brought to size."""
        try:
            picture = self._environment.render()
        except Exception as error:  # an environment's own: pygame is missing, no display, ...
            raise UserError(f"{self.id} cannot be drawn: {error}") from error
        if not isinstance(picture, np.ndarray):
            raise UserError(f"{self.id} has no render mode rgb_array, so it cannot be filmed")
        rows = np.arange(height) * picture.shape[0] // height
        columns = np.arange(width) * picture.shape[1] // width
        return np.ascontiguousarray(picture[rows][:, columns, :3], dtype=np.uint8)

    def _state(self, observation: Any) -> State:
        flat = np.asarray(observation, np.float32).ravel()
        return State(flat, _EMPTY, _EMPTY, _EMPTY, flat[: self._named])

    def _axes(self, space: Any, names: tuple[str, ...]) -> tuple[Axis, ...]:
        """The grid of the coverage: the space's bounds, or what random actions show of an unbounded one."""
        low, high = (np.ravel(bound).astype(np.float64)[: self._named] for bound in (space.low, space.high))
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (high - low < 1e6).all()):
            seen = self._look_around()
            low, high = seen.mean(axis=0) - 5 * seen.std(axis=0), seen.mean(axis=0) + 5 * seen.std(axis=0)
            high = np.maximum(high, low + 1e-3)
        return tuple(Axis(names[i], float(low[i]), float(high[i]), CELLS) for i in range(self._named))

    def _look_around(self) -> np.ndarray:
        rng = np.random.default_rng(0)
        rows = [self.reset(0).quantities]
        for number in range(SEEN):
            step = self.step(rng.uniform(-1, 1, len(self._low)))
            rows.append(step.state.quantities)
            if step.terminated or step.truncated:
                rows.append(self.reset(number + 1).quantities)
        return np.stack(rows).astype(np.float64)


def _make(id_: str) -> Any:
    """The environment, its dictionaries flattened. Raises UserError for what is not supported."""
    import gymnasium
    from gymnasium import spaces

    module, colon, _ = id_.partition(":")
    if colon and module not in _trusted():
        raise UserError(f"{id_} names code, which is not run unasked: allow it with {TRUSTED}={module}")
    try:
        environment = _by_id(gymnasium, id_)
    except (gymnasium.error.Error, ImportError, AttributeError, TypeError) as error:
        raise UserError(f"Gymnasium cannot make {id_}: {' '.join(str(error).split())}") from error
    if not isinstance(environment, gymnasium.Env):
        raise UserError(f"{id_} makes no gymnasium.Env but {type(environment).__name__}")
    if isinstance(environment.observation_space, spaces.Dict | spaces.Tuple):
        environment = gymnasium.wrappers.FlattenObservation(environment)
    for what, space in (("observation", environment.observation_space), ("action", environment.action_space)):
        if not isinstance(space, spaces.Box):
            raise UserError(
                f"{id_} has the {what} space {space}; a Box is supported (and dictionaries of them)"
            )
    action = environment.action_space
    if not (np.isfinite(action.low).all() and np.isfinite(action.high).all()):
        raise UserError(f"{id_} has actions without bounds; wrap it so that they have some")
    return environment


def _by_id(gymnasium: Any, id_: str) -> Any:
    """A registered id (or module:id, which imports the module first), or module:factory."""
    module, colon, name = id_.partition(":")
    if colon and name.isidentifier() and "-v" not in name:
        return getattr(importlib.import_module(module), name)()
    spec = gymnasium.spec(id_)
    modes = getattr(spec.entry_point, "metadata", {}) if callable(spec.entry_point) else {}
    pictures = "rgb_array" in modes.get("render_modes", ("rgb_array",))
    return gymnasium.make(id_, render_mode="rgb_array" if pictures else None)
