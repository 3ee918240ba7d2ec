"""What a data set holds: where it has been, and how much of a reward it has seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool

from rewardfree.data.dataset import Dataset, LabelledDataset


def occupied(data: Dataset) -> Bool[np.ndarray, "*cells"]:
    """Which cells of the domain's coverage grid some state of the data lies in; outliers count at the rim."""
    axes = data.spec.coverage
    grid = np.zeros([axis.cells for axis in axes], bool)
    columns = [data.spec.quantities.index(axis.quantity) for axis in axes]
    for shard in data.shards:
        values = shard.stored("quantities")[:, columns]
        cells = [
            np.clip((column - axis.low) / (axis.high - axis.low) * axis.cells, 0, axis.cells - 1).astype(int)
            for column, axis in zip(values.T, axes, strict=True)
        ]
        grid[tuple(cells)] = True
    return grid


def coverage(data: Dataset) -> dict[str, Any]:
    """Occupied cells of the coverage grid."""
    grid = occupied(data)
    return {
        "cells": int(grid.sum()),
        "of": int(grid.size),
        "quantities": [axis.quantity for axis in data.spec.coverage],
    }


def skills(data: Dataset) -> dict[str, int]:
    """The length of the skills that chose the data's actions, and how many different ones there were."""
    parts = [np.unique(shard.stored("skill"), axis=0) for shard in data.shards]
    length = parts[0].shape[1] if parts else 0
    return {"length": length, "distinct": len(np.unique(np.concatenate(parts), axis=0)) if length else 0}


def support(labelled: LabelledDataset) -> dict[str, float]:
    """How much of a reward the data has seen."""
    reward = labelled.reward
    if not len(reward):
        return {"mean": 0.0, "max": 0.0, "nonzero": 0.0}
    return {
        "mean": float(reward.mean()),
        "max": float(reward.max()),
        "nonzero": float((reward != 0).mean()),
    }
