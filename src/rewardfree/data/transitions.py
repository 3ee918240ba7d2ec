"""A batch of transitions by name: what a reward function sees."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property

import numpy as np
from jaxtyping import Int

from rewardfree.errors import unknown
from rewardfree.interfaces import Spec

STATE_ARRAYS = ("observation", "qpos", "qvel", "act", "quantities")
"""Arrays with a row for every state: T + 1 rows for an episode of T transitions."""
STEP_ARRAYS = ("action", "ctrl", "terminated", "skill")
"""Arrays with a row for every transition."""

_ALIASES = {"obs": "observation"}
_VELOCITY, _OBSERVED = "_velocity", "obs_"


class Names(Collection[str]):
    """Everything that a reward may read of a domain. What must ask the simulator is asked last."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def locate(self, name: str) -> tuple[str, int | slice | None] | None:
        """The stored array that holds a name, and which of its columns; None if it is not stored."""
        spec = self.spec
        if name in spec.quantities:
            return "quantities", spec.quantities.index(name)
        array = _ALIASES.get(name, name)
        if array in (*STATE_ARRAYS, *STEP_ARRAYS) and array != "quantities":
            return array, None
        if name in spec.joints:
            start, stop, _, _ = spec.joints[name]
            return "qpos", start if stop == start + 1 else slice(start, stop)
        joint = name.removesuffix(_VELOCITY)
        if joint != name and joint in spec.joints:
            _, _, start, stop = spec.joints[joint]
            return "qvel", start if stop == start + 1 else slice(start, stop)
        entry = name.removeprefix(_OBSERVED)
        if entry != name and entry in spec.observation_names:
            return "observation", spec.observation_names.index(entry)
        return None

    @cached_property
    def derived(self) -> tuple[str, ...]:
        """Names that the simulator recomputes from stored states, and quantities that are not stored."""
        from rewardfree.data.derived import simulator

        domain = simulator(self.spec.domain)
        further = (*domain.spec.quantities, *domain.derived)
        return tuple(name for name in further if self.locate(name) is None)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self.locate(name) is not None or name in self.derived)

    def __iter__(self) -> Iterator[str]:
        spec = self.spec
        yield from spec.quantities
        yield from ("obs", "qpos", "qvel", "act", *STEP_ARRAYS)
        yield from spec.joints
        yield from (joint + _VELOCITY for joint in spec.joints)
        yield from (_OBSERVED + entry for entry in spec.observation_names)
        yield from self.derived

    def __len__(self) -> int:
        return sum(1 for _ in self)


Derive = Callable[[str], np.ndarray]
"""From a name that is not stored to its values, with a row for every state."""


class Transitions(Mapping[str, np.ndarray]):
    """Whole episodes as named arrays over their n transitions.

    `t["vx"]` reads the state each transition led to, `t.before("vx")` the state it started from;
    `t["action"]` and `t["ctrl"]` belong to the transition itself. Names are the domain's quantities, `obs`,
    `qpos`, `qvel`, `act`, every joint by its name (position) and by its name with `_velocity`, entries of the
    observation as `obs_NAME`, and what the simulator recomputes from a stored state (`Names.derived`).
    """

    def __init__(
        self,
        spec: Spec,
        arrays: Mapping[str, np.ndarray],
        lengths: Int[np.ndarray, " E"],
        derive: Derive | None = None,
    ) -> None:
        """`arrays` are flat over time: n + E rows for states, n rows for steps."""
        self.spec = spec
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self.names = Names(spec)
        self._arrays = arrays
        self._derive = derive or self._recompute

    @cached_property
    def rows(self) -> Int[np.ndarray, " n"]:
        """The row of each transition's first state: its index, plus one for every episode before it."""
        return np.arange(self.lengths.sum()) + np.repeat(np.arange(len(self.lengths)), self.lengths)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._read(name, 1)

    def before(self, name: str) -> np.ndarray:
        """The quantity in the state that the transition started from."""
        return self._read(name, 0)

    def stored(self, array: str) -> np.ndarray:
        """An array as it is stored, with a row for every state or for every transition."""
        return self._arrays[array]

    def _read(self, name: str, later: int) -> np.ndarray:
        where = self.names.locate(name)
        if where is None:
            if name not in self.names.derived:
                raise unknown("quantity", name, self)
            return self._of_transitions(self._derive(name), later)
        array, columns = where
        values = self._arrays[array] if columns is None else self._arrays[array][:, columns]
        return self._of_transitions(values, later) if array in STATE_ARRAYS else np.asarray(values)

    def _of_transitions(self, values: np.ndarray, later: int) -> np.ndarray:
        """Of an array with a row for every state, the rows of each transition's first or second state."""
        starts = np.cumsum(self.lengths) - self.lengths + np.arange(len(self.lengths)) + later
        parts = [values[start : start + length] for start, length in zip(starts, self.lengths, strict=True)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _recompute(self, name: str) -> np.ndarray:
        from rewardfree.data.derived import simulator

        found = simulator(self.spec.domain).recompute([name], self._arrays["qpos"], self._arrays["qvel"])
        return found[:, 0]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        """The number of transitions, so that a reward can say `np.ones(len(t))`."""
        return int(self.lengths.sum())

    def __repr__(self) -> str:
        return f"Transitions({len(self)} of {self.spec.domain}: {', '.join(self)})"
