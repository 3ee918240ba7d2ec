"""Which cells a comparison has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rewardfree import registry
from rewardfree.bench.jobs import ExploreJob, Job, PlanJob
from rewardfree.command import preset
from rewardfree.errors import UserError, unknown
from rewardfree.sizes import SIZES, SizeName, resize

EXPLORERS = (
    "gfa-rfe",
    "gfa-rfe:paper",
    "gfa-rfe:released",
    "icm",
    "apt",
    "diayn",
    "aps",
    "disagreement",
    "smm",
    "rnd",
    "random",
)
"""The columns of Table 2, GFA-RFE in its three presets, and uniformly random actions."""
DOMAINS = ("walker", "quadruped")
PLANNERS: dict[SizeName, tuple[str, ...]] = {
    "paper": ("ddpg-twin:paper", "ddpg-ensemble"),
    "compact": ("ddpg-twin", "ddpg-ensemble"),
    "tiny": ("ddpg-twin", "ddpg-ensemble"),
}
SEEDS: dict[SizeName, int] = {"paper": 8, "compact": 3, "tiny": 2}
ABLATED = ("gfa-rfe", "rnd", "disagreement", "apt")
"""Explorers whose prefixes are planned from, as in the paper."""
PREFIXES = (0.25, 0.5, 0.75)
"""Shares of the episodes."""


@dataclass(frozen=True)
class Grid:
    """What is compared."""

    size: SizeName
    explorers: tuple[str, ...] = EXPLORERS
    domains: tuple[str, ...] = DOMAINS
    tasks: tuple[str, ...] = ()
    """Of these only; all tasks of each domain if there are none."""
    planners: tuple[str, ...] = ()
    """Those of the size if there are none. The first plans every explorer's data, any further one GFA-RFE's:
    the planner is a confound."""
    seeds: int | None = None
    frames: int | None = None
    updates: int | None = None
    ablation: bool = False
    """Also plan from prefixes of the data."""

    def jobs(self) -> list[Job]:
        """Every cell; explorations come before what needs them, and a first seed of all before a second."""
        size = SIZES[self.size]
        frames = size.frames if self.frames is None else self.frames
        updates = size.updates if self.updates is None else self.updates
        for name, value in (("frames", frames), ("updates", updates)):
            if value < 1:
                raise UserError(f"{name} must be at least 1, not {value}")
        seeds = SEEDS[self.size] if self.seeds is None else self.seeds
        if seeds < 1:
            raise UserError(f"seeds must be at least 1, not {seeds}")
        explorers = {name: self._config("explorer", name) for name in self.explorers}
        planners = [self._config("planner", name) for name in self.planners or PLANNERS[self.size]]
        if len({planner["name"] for planner in planners}) < len(planners):
            raise UserError("a planner can be in a grid in one preset only: results go by its name")
        found: list[Job] = []
        for seed, domain in itertools.product(range(seeds), self.domains):
            runs = [
                ExploreJob(label, domain, config, self.size, frames, seed)
                for label, config in explorers.items()
            ]
            found += [*runs, *(plan for run in runs for plan in self._plans(run, planners, updates))]
        return found

    def _config(self, role: str, name: str) -> dict[str, Any]:
        base, _, chosen = name.partition(":")
        return registry.to_json(resize(preset(registry.load(role, base), chosen or None), self.size))

    def _plans(self, run: ExploreJob, planners: Sequence[dict[str, Any]], updates: int) -> Iterator[PlanJob]:
        domain = registry.load("domain", run.domain)
        base = run.explorer["name"]
        prefixes: list[int | None] = [None]
        if self.ablation and base in ABLATED:
            episodes = -(-run.frames // domain().spec.episode_length)
            prefixes += sorted({max(1, round(share * episodes)) for share in PREFIXES} - {episodes})
        for task in self._tasks(run.domain):
            for number, planner in enumerate(planners):
                if number == 0:
                    yield from (PlanJob(run, task, planner, updates, prefix) for prefix in prefixes)
                elif base == "gfa-rfe":
                    yield PlanJob(run, task, planner, updates)

    def _tasks(self, domain: str) -> list[str]:
        known = registry.load("domain", domain).tasks
        every = {task for name in self.domains for task in registry.load("domain", name).tasks}
        for task in self.tasks:
            if task not in every:
                raise unknown("task", task, every)
        return [task for task in known if not self.tasks or task in self.tasks]
