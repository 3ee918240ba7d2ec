"""Quantities that were not stored: recomputed from the stored simulator states, and kept beside the data."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from jaxtyping import Float

from rewardfree import machine, registry
from rewardfree.data import files
from rewardfree.errors import UserError
from rewardfree.interfaces import Domain

_CHUNK = 20_000
_ALONE = 1_000_000
"""Up to so many states one process is done before others have started."""

Report = Callable[[int], None]
"""Hears of how many states were recomputed so far."""


class Derived:
    """The derived quantities of one data set."""

    def __init__(
        self, domain: str, folder: Path, shards: Sequence[Mapping[str, np.ndarray]], digest: str
    ) -> None:
        """`shards` are the stored arrays; `digest` is what the stored files depend on."""
        self._domain, self._folder, self._shards = domain, folder / "derived" / digest[:16], shards
        self._kept: dict[str, np.ndarray] = {}

    @property
    def rows(self) -> int:
        """States in the data."""
        return sum(len(shard["qpos"]) for shard in self._shards)

    def __getitem__(self, name: str) -> Float[np.ndarray, " rows"]:
        """The values of a name, over all states."""
        self.fetch([name])
        return self._kept[name]

    def fetch(self, names: Sequence[str], report: Report | None = None) -> None:
        """Have these names at hand: read, or recomputed in one pass over the states and written."""
        missing = [name for name in names if name not in self._kept and not self._read(name)]
        if not missing:
            return
        parts, done = [], 0
        for part in self._recomputed(missing):
            parts.append(part)
            done += len(part)
            if report is not None:
                report(done)
        values = np.concatenate(parts)
        for column, name in zip(values.T, missing, strict=True):
            self._kept[name] = np.ascontiguousarray(column)
            with contextlib.suppress(UserError):  # a folder that cannot be written costs time, not the answer
                files.write_arrays(self._path(name), {"values": self._kept[name]})

    def _read(self, name: str) -> bool:
        try:
            values = files.map_arrays(self._path(name))["values"]
        except (UserError, KeyError):
            return False
        if values.shape != (self.rows,) or values.dtype != np.float32:
            return False
        self._kept[name] = values
        return True

    def _recomputed(self, names: Sequence[str]) -> Iterator[np.ndarray]:
        chunks = [
            (self._domain, tuple(names), shard["qpos"][i : i + _CHUNK], shard["qvel"][i : i + _CHUNK])
            for shard in self._shards
            for i in range(0, len(shard["qpos"]), _CHUNK)
        ]
        if self.rows <= _ALONE or machine.cores() == 1:
            yield from map(_work, chunks)
            return
        with ProcessPoolExecutor(machine.cores(), mp_context=get_context("spawn")) as pool:
            yield from pool.map(_work, chunks)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.safetensors"


@functools.cache
def simulator(domain: str) -> Domain:
    """One simulator for setting and repeating stored states; no exploration or evaluation runs in it."""
    found: Domain = registry.load("domain", domain)()
    return found


def _work(chunk: tuple[str, tuple[str, ...], np.ndarray, np.ndarray]) -> np.ndarray:
    domain, names, qpos, qvel = chunk
    return simulator(domain).recompute(names, qpos, qvel)
