"""Can this data solve it? Where the data has been, how much of a reward it has seen, and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from rewardfree.data.dataset import Dataset, LabelledDataset
from rewardfree.data.derived import simulator
from rewardfree.data.transitions import Names
from rewardfree.interfaces import Axis, Spec
from rewardfree.rewards.expression import Expression
from rewardfree.rewards.reference import random_reference
from rewardfree.rewards.resolve import NamedReward

QUANTILES = (0.5, 0.9, 0.99, 0.999)
WINDOWS = (10, 100, 1000)
"""Lengths of the stretches of an episode whose best mean reward is shown."""
LIKELY, DOUBTFUL = 0.6, 0.1
"""Shares of the reward's ceiling that the best 100 steps must reach for a verdict."""
FIRST, BEGUN_HIGH, ENOUGH = 50, 0.3, 0.2
"""An episode begins high if its first steps average this share; the others count alone if they are enough."""


def cells(values: Float[np.ndarray, "n Q"], spec: Spec) -> Bool[np.ndarray, "*cells"]:
    """Which cells of the domain's coverage grid some row of quantities lies in; outliers count at the rim."""
    grid = np.zeros([axis.cells for axis in spec.coverage], bool)
    grid[tuple(_cell(values[:, spec.quantities.index(axis.quantity)], axis) for axis in spec.coverage)] = True
    return grid


def _cell(column: Float[np.ndarray, " n"], axis: Axis) -> np.ndarray:
    place = (column - axis.low) / (axis.high - axis.low) * axis.cells
    return np.clip(place, 0, axis.cells - 1).astype(int)


def occupied(data: Dataset) -> Bool[np.ndarray, "*cells"]:
    """Which cells the data has been in."""
    grid = np.zeros([axis.cells for axis in data.spec.coverage], bool)
    for shard in data.shards:
        grid |= cells(shard.stored("quantities"), data.spec)
    return grid


def coverage(data: Dataset) -> dict[str, Any]:
    """Occupied cells of the coverage grid."""
    grid = occupied(data)
    return {
        "cells": int(grid.sum()),
        "of": int(grid.size),
        "quantities": [axis.quantity for axis in data.spec.coverage],
    }


def against_random(data: Dataset) -> dict[str, Any]:
    """The data beside uniformly random actions: frames evenly taken from the data, as many as those have."""
    random = random_reference(data.spec.domain)
    frames = min(len(random["observation"]), data.frames)
    taken = np.linspace(0, data.frames - 1, frames).astype(int)
    observation = data.values("obs")[taken]
    quantities = np.stack([data.values(quantity)[taken] for quantity in data.spec.quantities], axis=1)
    scale = random["observation"].std(axis=0) + 1e-6
    return {
        "frames": frames,
        "cells": int(cells(quantities, data.spec).sum()),
        "random_cells": int(cells(random["quantities"][:frames], data.spec).sum()),
        "dimension": effective_dimension(observation / scale),
        "random_dimension": effective_dimension(random["observation"][:frames] / scale),
    }


def effective_dimension(x: Float[np.ndarray, "n d"]) -> float:
    """(sum of the covariance's eigenvalues)^2 / (sum of their squares): d if all directions vary alike."""
    covariance = np.atleast_2d(np.cov(x, rowvar=False))
    spread = float(np.trace(covariance))
    return spread**2 / float((covariance**2).sum()) if spread > 0 else 0.0


def coverage_map(data: Dataset) -> tuple[np.ndarray, tuple[Axis, Axis]]:
    """How often each cell of the first two axes was visited."""
    first, second = data.spec.coverage[:2]
    counts = np.zeros((first.cells, second.cells), np.int64)
    for shard in data.shards:
        places = tuple(_cell(shard[axis.quantity], axis) for axis in (first, second))
        np.add.at(counts, places, 1)
    return counts, (first, second)


def skills(data: Dataset) -> dict[str, int]:
    """The length of the skills that chose the data's actions, and how many different ones there were."""
    parts = [np.unique(shard.stored("skill"), axis=0) for shard in data.shards]
    length = parts[0].shape[1] if parts else 0
    return {"length": length, "distinct": len(np.unique(np.concatenate(parts), axis=0)) if length else 0}


def support(labelled: LabelledDataset) -> dict[str, Any]:
    """How much of a reward the data has seen."""
    reward = np.asarray(labelled.reward, np.float64)
    if not len(reward):
        return {"mean": 0.0, "max": 0.0, "nonzero": 0.0, "verdict": "no support", "why": "there is no data"}
    episodes = np.split(reward, np.cumsum(labelled.data.lengths)[:-1])
    low, high = float(reward.min()), float(reward.max())
    level = low + (high - low) / 2
    found: dict[str, Any] = {
        "mean": float(reward.mean()),
        "min": low,
        "max": high,
        "nonzero": float((reward != 0).mean()),
        "quantiles": {f"{q:g}": float(np.quantile(reward, q)) for q in QUANTILES},
        "above": {
            f"{share:g}": float((reward > low + share * (high - low)).mean()) for share in (0.25, 0.5, 0.75)
        },
        "returns": {
            "mean": float(np.mean([episode.sum() for episode in episodes])),
            "best": float(max(episode.sum() for episode in episodes)),
        },
        "windows": {str(n): best_window(episodes, n) for n in WINDOWS},
        "successes": int(sum((episode >= level).any() for episode in episodes)) if high > low else 0,
        "episodes": len(episodes),
    }
    word, why = verdict(episodes)
    return found | {"verdict": word, "why": why}


def best_window(episodes: Sequence[Float[np.ndarray, " T"]], length: int) -> float:
    """The best mean reward over `length` steps of one episode, or over all of it if it is shorter."""
    best = -np.inf
    for episode in episodes:
        n = min(length, len(episode))
        sums = np.cumsum(np.concatenate([[0.0], episode]))
        best = max(best, float((sums[n:] - sums[:-n]).max() / n))
    return best


def unseen(reward: NamedReward, spec: Spec) -> list[str]:
    """What an expression reads that no policy can see; a function's reading is not known."""
    if not isinstance(reward.function, Expression):
        return []
    names = Names(spec)
    known = spec.unseen or simulator(spec.domain).spec.unseen  # older data does not say
    hidden = {where for name in known for where in _columns(names, name)}
    found = []
    for read in reward.function.reads:
        columns = _columns(names, read.name)
        if read.component is not None and columns:
            columns = columns[read.component : read.component + 1 or None]
        if hidden & set(columns) or read.name in known:
            found.append(read.name if read.component is None else f"{read.name}[{read.component}]")
    return list(dict.fromkeys(found))


def _columns(names: Names, name: str) -> list[tuple[str, int]]:
    """The stored columns that a name stands for."""
    where = names.locate(name)
    if where is None:
        return []
    array, columns = where
    if isinstance(columns, int):
        return [(array, columns)]
    if isinstance(columns, slice):
        return [(array, i) for i in range(columns.start, columns.stop)]
    widths = {"qpos": 1, "qvel": 3}
    if array not in widths:
        return [(array, -1)]
    last = max((joint[widths[array]] for joint in names.spec.joints.values()), default=0)
    return [(array, i) for i in range(last)]


def verdict(episodes: Sequence[Float[np.ndarray, " T"]]) -> tuple[str, str]:
    """`likely`, `doubtful` or `no support`, and why.

    What decides is the best mean reward over 100 consecutive steps, as a share of what the reward can pay: 1
    for a reward whose values lie in [0, 1], the largest value seen for any other. Episodes that begin with a
    high reward show that it can be met, not that it can be reached, so they are left out if enough others
    remain. docs/rewards.md shows how often the verdict was right.
    """
    low, high = min(map(np.min, episodes)), max(map(np.max, episodes))
    if high == low:
        return "no support", "the reward is the same everywhere in the data: nothing tells actions apart"
    bounded = low >= 0 and high <= 1
    floor, ceiling = (0.0, 1.0) if bounded else (low, high)
    shares = [(episode - floor) / (ceiling - floor) for episode in episodes]
    begun_low = [
        share[FIRST:] for share in shares if share[:FIRST].mean() < BEGUN_HIGH and len(share) > FIRST
    ]
    reached = len(begun_low) >= ENOUGH * len(shares)
    sustained = best_window(begun_low if reached else shares, 100)
    of = "1" if bounded else f"the way from {low:.3g} to {high:.3g}"
    why = f"the best 100 steps in a row reach {sustained:.0%} of {of}"
    if reached and len(begun_low) < len(shares):
        why += f" in the {len(begun_low)} episodes that do not begin there"
    if sustained >= LIKELY:
        return "likely", why
    return ("doubtful" if sustained >= DOUBTFUL else "no support"), why
