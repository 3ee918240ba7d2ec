"""Every role on one screen, and the loop they take part in.

    phase I (no reward exists)                   phase II (no simulator is touched)

    Domain --State--> Explorer.behaviour             Dataset + Reward = LabelledDataset
      ^                   |                                 |
      +----- action ------+                          Planner.fit
              |                                             |
       Episode -> Dataset                                Policy
              |
       Explorer.absorb, Explorer.update

An Explorer never sees a reward and a Planner sees nothing but a LabelledDataset, so any explorer's data
can be solved by any planner. Explorers, planners and oracles are frozen dataclasses: their fields are the
hyper-parameters, everything that changes is in the state that their methods take and return. A plug-in is
one file with one class that inherits from its role; `registry.py` finds it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

if TYPE_CHECKING:
    from rewardfree.data.dataset import LabelledDataset
    from rewardfree.data.replay import Batch, Replay, ReplayBuffer
    from rewardfree.data.transitions import Transitions
    from rewardfree.durable import Checkpoint, Checkpoints
    from rewardfree.explorers._actor_critic import Values

Metrics = dict[str, Any]
"""Scalars by name. Algorithms return them; only the pipeline writes them down."""

Reward = Callable[["Transitions"], Float[np.ndarray, " n"] | Bool[np.ndarray, " n"]]
"""A reward is a vectorised function of named arrays: r_t = r(s_t, a_t, s_{t+1}), names read s_{t+1}."""


@dataclass(frozen=True)
class Axis:
    """One axis of the grid on which a domain's coverage is counted."""

    quantity: str
    low: float
    high: float
    cells: int


@dataclass(frozen=True)
class Spec:
    """What is known of a domain without running it: sizes and names, never a reward."""

    domain: str
    observation: int
    action: int
    episode_length: int
    """Steps after which an episode is cut off."""
    timestep: float
    """Seconds that one step simulates."""
    quantities: tuple[str, ...]
    """Names of the columns of `State.quantities`."""
    joints: Mapping[str, tuple[int, int, int, int]]
    """Joint name to (qpos start, qpos stop, qvel start, qvel stop)."""
    coverage: tuple[Axis, ...]
    terminates: bool = False
    """Whether episodes can end before their time limit."""
    observation_names: tuple[str, ...] = ()
    """Names of the observation's entries; a reward reads `obs_NAME`."""
    unseen: tuple[str, ...] = ()
    """Quantities and joints that are not a function of the observation: no policy can see them."""


class State(NamedTuple):
    """One moment of a simulator: one row of a data set."""

    observation: Float[np.ndarray, " O"]
    """float32: what a policy sees."""
    qpos: Float[np.ndarray, " nq"]
    """float64, with qvel and act the full simulator state."""
    qvel: Float[np.ndarray, " nv"]
    act: Float[np.ndarray, " na"]
    quantities: Float[np.ndarray, " Q"]
    """float32: the domain's named quantities, in the order of `Spec.quantities`."""


class Step(NamedTuple):
    """What one action led to."""

    state: State
    ctrl: Float[np.ndarray, " nu"]
    """float64: the control the simulator was given."""
    terminated: bool
    """The episode ended by itself (a time limit is not a termination)."""
    truncated: bool = False
    """The episode was cut off: it is over, but the state it was in still has a future."""


class Domain(ABC):
    """A simulator, its named quantities and its task rewards. One file each."""

    spec: Spec
    tasks: ClassVar[Mapping[str, str | Reward]]
    """Rewards by name: expressions in the reward language, or functions."""
    derived: tuple[str, ...] = ()
    """Names of further quantities that `recompute` gives."""
    physics: tuple[int, int, int] = (0, 0, 0)
    """Sizes of qpos, qvel and act."""

    @abstractmethod
    def reset(self, seed: int) -> State:
        """Start an episode; the start depends on the seed alone."""

    @abstractmethod
    def step(self, action: Float[np.ndarray, " A"]) -> Step:
        """Apply an action in [-1, 1]^A for one time step."""

    @abstractmethod
    def render(self, height: int, width: int) -> np.ndarray:
        """A picture of the present state, uint8 [height, width, 3]."""

    @abstractmethod
    def control(self, action: Float[np.ndarray, "*n A"]) -> Float[np.ndarray, "*n nu"]:
        """The control that an action in [-1, 1]^A stands for."""

    def quantities_of(
        self,
        observation: Float[np.ndarray, "n O"],
        qpos: Float[np.ndarray, "n nq"],
        qvel: Float[np.ndarray, "n nv"],
    ) -> Float[np.ndarray, "n Q"]:
        """The named quantities of stored states."""
        return self.recompute(self.spec.quantities, qpos, qvel)

    def restore(
        self, qpos: Float[np.ndarray, " nq"], qvel: Float[np.ndarray, " nv"], act: Float[np.ndarray, " na"]
    ) -> None:
        """Set the simulator to the first state of a stored episode, as `reset` left it."""
        raise NotImplementedError(f"{self.spec.domain} cannot be set to a stored state")

    def recompute(
        self, names: Sequence[str], qpos: Float[np.ndarray, "n nq"], qvel: Float[np.ndarray, "n nv"]
    ) -> Float[np.ndarray, "n k"]:
        """Quantities of stored states, of `spec.quantities` and of `derived`: float32, a column each."""
        raise NotImplementedError(f"{self.spec.domain} recomputes nothing")


class Moment(NamedTuple):
    """What an explorer acts on. Chance is a function of key and step: what lasts several needs no memory."""

    observation: Float[np.ndarray, " O"]
    skill: Float[np.ndarray, " K"]
    """What `Explorer.skill` gave for this key and step."""
    key: np.ndarray
    """uint32 [2], the same for a whole episode."""
    step: int
    """Steps since the episode began."""


Behaviour = Callable[[Moment], Float[np.ndarray, " A"]]
"""An exploring action in [-1, 1]^A."""


class Explorer(ABC):
    """Decides what to try next, from what has been seen so far. One file each."""

    update_every: int
    """Frames per update."""
    chunk: int
    """Frames between two calls of the learner, each of chunk / update_every updates. While it learns, the
    simulator goes on with the actor of the call before."""
    seed_frames: int
    """Frames of uniformly random actions before the first update."""
    nstep: int
    gamma: float

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """Settings by name; the first is the default."""
        return {"default": cls()}

    def skill_size(self, spec: Spec) -> int:
        """Length K of the skill that actor and critics see beside the observation; 0: there is none."""
        return 0

    def skill(self, spec: Spec, key: np.ndarray, step: int) -> Float[np.ndarray, " K"]:
        """The skill at a step of the episode with this key; it is stored with the step's transition."""
        return np.zeros(0, np.float32)

    @abstractmethod
    def init(self, spec: Spec, key: PRNGKeyArray) -> Any:
        """The state before any data."""

    @abstractmethod
    def behaviour(self, state: Any) -> Behaviour:
        """How to act until the state changes."""

    @abstractmethod
    def absorb(self, state: Any, replay: ReplayBuffer) -> Any:
        """Take notice of an episode that has just been added to the replay."""

    @abstractmethod
    def update(self, state: Any, replay: Replay, key: PRNGKeyArray, updates: int) -> tuple[Any, Metrics]:
        """Learn: a number of updates on minibatches of the replay, one compiled call."""


Value = Callable[[Float[Array, "B O"], Float[Array, "B A"]], Float[Array, " B"]]
"""The mean of the target critics at (s, a). A pytree: it may be given to a compiled program."""


Lazy = Callable[[], Float[Array, " B"]]
"""Values that are computed if they count."""


class Oracle(ABC):
    """The bonus oracle: D(s, a), how much the functions that fit the data differ there. One file each."""

    @property
    @abstractmethod
    def reads_critics(self) -> bool:
        """Whether `fit` or `width` reads the target critics at (s, a)."""

    @abstractmethod
    def init(self, spec: Spec, key: PRNGKeyArray) -> Any:
        """The state before any data."""

    def absorb(self, state: Any, replay: ReplayBuffer, value: Value) -> Any:
        """Take notice of an episode that has just been added to the replay."""
        return state

    def fit(self, state: Any, batch: Batch, values: Values) -> tuple[Any, Metrics]:
        """Learn from a minibatch, given the target critics there."""
        return state, {}

    @abstractmethod
    def sigma_bar(self, width: Lazy, value: Lazy) -> Array | float:
        """Algorithm 1's sigma_bar, from D and the mean target critic at the same points."""

    @abstractmethod
    def width(
        self,
        state: Any,
        observation: Float[Array, "B O"],
        action: Float[Array, "B A"],
        values: Float[Array, "N B"],
    ) -> Float[Array, " B"]:
        """D at a batch of points, given the N target critics' values there."""


class Policy(Protocol):
    """Observations [..., O] in, actions [..., A] in [-1, 1] out; deterministic."""

    def __call__(self, observation: Float[np.ndarray, "*n O"]) -> Float[np.ndarray, "*n A"]: ...

    def save(self, path: Path) -> None:
        """Write the policy to one file."""


Report = Callable[[int, Metrics, Callable[[], Policy]], None]
"""Hears after how many updates what was measured, and may ask for the policy so far."""


class Planner(ABC):
    """Solves one reward, offline. One file each."""

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """Settings by name; the first is the default."""
        return {"default": cls()}

    @abstractmethod
    def fit(
        self,
        data: LabelledDataset,
        updates: int,
        seed: int,
        report: Report = ...,
        checkpoints: Checkpoints | None = None,
        since: Checkpoint | None = None,
    ) -> Policy:
        """A policy after so many gradient steps; `report` hears of the progress.

        `checkpoints` are written now and then; from `since` it goes on as if it had not been stopped.
        """
