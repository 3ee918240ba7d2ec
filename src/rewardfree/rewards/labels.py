"""Labels: a reward's value for every transition, kept beside the data under what it depends on."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Float

from rewardfree.data import files
from rewardfree.data.dataset import Dataset
from rewardfree.errors import UserError
from rewardfree.rewards.expression import Expression
from rewardfree.rewards.resolve import NamedReward

LANGUAGE = 1
"""Version of the reward language: another one may give other values for the same text."""

Report = Callable[[int], None]
"""Hears of how much was done so far: states recomputed, then transitions labelled."""


def labels(data: Dataset, reward: NamedReward, report: Report | None = None) -> Float[np.ndarray, " n"]:
    """One float32 per transition: a view of a file if the same reward was laid over the same data before."""
    path = _path(data, reward)
    if path is not None and (known := _read(path, data.frames)) is not None:
        return known
    if isinstance(reward.function, Expression) and data.frames:
        derived = data.shards[0].names
        data.derived.fetch([r.name for r in reward.function.reads if derived.locate(r.name) is None], report)
    values = np.empty(data.frames, np.float32)
    done = 0
    for shard in data.shards:
        values[done : done + len(shard)] = reward(shard)
        done += len(shard)
        if report is not None:
            report(done)
    if path is not None:
        with contextlib.suppress(UserError):  # a folder that cannot be written costs time, not the answer
            files.write_arrays(path, {"reward": values})
    return values


def _path(data: Dataset, reward: NamedReward) -> Path | None:
    """Where the labels of this reward lie; nowhere if what it depends on cannot be told."""
    if reward.source is None:
        return None
    key = hashlib.sha256(f"{LANGUAGE}\n{data.digest}\n{reward.source}".encode()).hexdigest()
    return data.path / "labels" / f"{key[:32]}.safetensors"


def _read(path: Path, frames: int) -> np.ndarray | None:
    try:
        values = files.map_arrays(path)["reward"]
    except (UserError, KeyError):
        return None
    return values if values.shape == (frames,) and values.dtype == np.float32 else None
