"""Sizes: widths and budgets, never the algorithm."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from rewardfree.interfaces import Planner

SizeName = Literal["paper", "compact", "tiny"]
T = TypeVar("T")


@dataclass(frozen=True)
class Size:
    """Widths of networks and minibatches, and how much is done."""

    hidden: int
    batch: int
    """Minibatch of an exploration."""
    frames: int
    """Frames of an exploration."""
    plan_batch: int
    """Minibatch of a plan."""
    updates: int
    """Gradient steps of a plan."""


SIZES: dict[SizeName, Size] = {
    "paper": Size(hidden=1024, batch=1024, frames=1_000_000, plan_batch=1024, updates=50_000),
    "compact": Size(hidden=256, batch=256, frames=100_000, plan_batch=64, updates=50_000),
    "tiny": Size(hidden=64, batch=128, frames=20_000, plan_batch=128, updates=5_000),
}


def resize(config: T, size: SizeName) -> T:
    """An algorithm with the widths of a size; an algorithm without widths stays as it is."""
    chosen = SIZES[size]
    batch = chosen.plan_batch if isinstance(config, Planner) else chosen.batch
    widths: dict[str, Any] = {"hidden": chosen.hidden, "batch": batch}
    have = {field.name for field in dataclasses.fields(config)}  # type: ignore[arg-type]
    return dataclasses.replace(config, **{k: v for k, v in widths.items() if k in have})  # type: ignore[type-var]
