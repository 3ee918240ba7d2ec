"""A batch of transitions by name: what a reward function sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
_VELOCITY = "_velocity"


class Transitions(Mapping[str, np.ndarray]):
    """Whole episodes as named arrays over their n transitions.

    `t["vx"]` reads the state each transition led to, `t.before("vx")` the state it started from;
    `t["action"]` and `t["ctrl"]` belong to the transition itself. Names are the domain's quantities, `obs`,
    `qpos`, `qvel`, `act`, every joint by its name (position) and by its name with `_velocity`.
    """

    def __init__(self, spec: Spec, arrays: Mapping[str, np.ndarray], lengths: Int[np.ndarray, " E"]) -> None:
        """`arrays` are flat over time: n + E rows for states, n rows for steps."""
        self.spec = spec
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self._arrays = arrays

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
        array, columns = self._locate(name)
        values = self._arrays[array][:, columns] if columns is not None else self._arrays[array]
        return values[self.rows + later] if array in STATE_ARRAYS else np.asarray(values)

    def _locate(self, name: str) -> tuple[str, int | slice | None]:
        """The stored array that holds a name, and which of its columns."""
        if name in self.spec.quantities:
            return "quantities", self.spec.quantities.index(name)
        array = _ALIASES.get(name, name)
        if array in self._arrays and array != "quantities":
            return array, None
        if name in self.spec.joints:
            start, stop, _, _ = self.spec.joints[name]
            return "qpos", start if stop == start + 1 else slice(start, stop)
        joint = name.removesuffix(_VELOCITY)
        if joint != name and joint in self.spec.joints:
            _, _, start, stop = self.spec.joints[joint]
            return "qvel", start if stop == start + 1 else slice(start, stop)
        raise unknown("quantity", name, self)

    def __iter__(self) -> Iterator[str]:
        yield from self.spec.quantities
        yield from (name for name in self._arrays if name not in ("quantities", "observation"))
        yield "obs"
        yield from self.spec.joints
        yield from (joint + _VELOCITY for joint in self.spec.joints)

    def __len__(self) -> int:
        """The number of transitions, so that a reward can say `np.ones(len(t))`."""
        return int(self.lengths.sum())

    def __repr__(self) -> str:
        return f"Transitions({len(self)} of {self.spec.domain}: {', '.join(self)})"
