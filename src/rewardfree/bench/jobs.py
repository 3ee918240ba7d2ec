"""The two kinds of cells of a grid. A cell is known by what it computes: the hash of its config."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from rewardfree import machine, pipeline, registry
from rewardfree.data import files
from rewardfree.data.dataset import Dataset, versions
from rewardfree.rewards.support import coverage, coverage_map, support

Kind = Literal["explore", "plan"]
EPISODES = 10
"""Episodes of an evaluation, as in the paper."""
LOOKS = 8
"""Points of the curve of return against planning steps."""
_CURVE = 100
"""Points that are kept of an exploration's curve."""


class Job(ABC):
    """A cell: plain values that decide its result, and how to compute it."""

    kind: ClassVar[Kind]
    unit: ClassVar[str]
    """What its log counts."""
    file: ClassVar[str]
    """What tells of its run or plan."""
    label: str
    """What the explorer is called in tables: NAME or NAME:PRESET. Not part of the config."""
    domain: str
    by: str
    """What does the work: the explorer's label, or the planner's name."""
    total: int
    """Units of work."""
    needs: ExploreJob | None
    """The cell that must be there first."""

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """All that the result depends on."""

    @abstractmethod
    def compute(self, root: Path) -> dict[str, Any]:
        """Do it, or go on where it was stopped."""

    @cached_property
    def key(self) -> str:
        """The address of the cell."""
        text = json.dumps({"kind": self.kind, **self.config}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def record(self) -> dict[str, Any]:
        """What `from_record` makes the job of again."""
        return {"kind": self.kind, "label": self.label, "config": self.config}

    def folder(self, root: Path) -> Path:
        """Where its run or plan lies."""
        return root / self.kind / self.key

    def cell(self, root: Path) -> Path:
        """Its result: written once, when it is whole."""
        return root / "cells" / f"{self.key}.json"

    def is_kept(self, root: Path) -> bool:
        """Whether its run or plan, which can be large, is still in its folder, and whole."""
        record = self.folder(root) / self.file
        return record.exists() and files.read_json(record)["status"] == "complete"

    def run(self, root: Path) -> None:
        """Compute the cell and write its result, unless it is there."""
        if self.cell(root).exists() and self.is_kept(root):
            return
        result = self.compute(root)
        record = {
            **self.record,
            "result": result,
            "versions": versions(),
            "machine": machine.described(),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        files.write_json(self.cell(root), record)

    def progress(self, root: Path) -> tuple[float, float]:
        """The share that is done, and the seconds it took."""
        log = self.folder(root) / "metrics.jsonl"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        for line in reversed(lines[-2:]):
            try:
                last = json.loads(line)
            except ValueError:  # it is being written
                continue
            return last[self.unit] / self.total, last["seconds"]
        return 0.0, 0.0


@dataclass(frozen=True)
class ExploreJob(Job):
    """One exploration: shared by all tasks of its domain."""

    label: str
    domain: str
    explorer: Mapping[str, Any]
    size: str
    frames: int
    seed: int

    kind, unit, file, needs = "explore", "frames", "run.json", None

    @property
    def config(self) -> dict[str, Any]:
        return {
            "domain": self.domain,
            "explorer": self.explorer,
            "size": self.size,
            "frames": self.frames,
            "seed": self.seed,
        }

    @property
    def by(self) -> str:  # type: ignore[override]
        return self.label

    @property
    def total(self) -> int:  # type: ignore[override]
        return self.frames

    def __str__(self) -> str:
        return f"explore {self.domain} with {self.label}, seed {self.seed}"

    def compute(self, root: Path) -> dict[str, Any]:
        """The data set stays in its folder; the result is what tables and plots need of it."""
        folder = self.folder(root)
        data = pipeline.explore(
            self.domain,
            registry.from_json("explorer", self.explorer),
            frames=self.frames,
            seed=self.seed,
            size=self.size,
            out=folder,
            resume=folder.exists(),
        )
        counts, axes = coverage_map(data)
        tasks = registry.load("domain", self.domain).tasks
        seen = {task: support(pipeline.label(data, task)) for task in tasks}
        return {
            "frames": data.frames,
            "episodes": data.episodes,
            "seconds": files.read_json(folder / "run.json")["seconds"],
            "coverage": coverage(data),
            "map": {"visits": counts.tolist(), "axes": [vars(axis) for axis in axes]},
            "tasks": {
                task: {name: row[name] for name in ("mean", "max", "windows", "verdict")}
                for task, row in seen.items()
            },
            # GFA-RFE may centre its reward: D itself is what can be followed
            "intrinsic_reward": _curve(folder, "frames", "bonus")
            or _curve(folder, "frames", "intrinsic_reward"),
        }


@dataclass(frozen=True)
class PlanJob(Job):
    """One plan from one exploration, and its evaluation."""

    needs: ExploreJob
    task: str
    planner: Mapping[str, Any]
    updates: int
    episodes: int | None = None
    """Only the first so many episodes of the data; all of them by default."""

    kind, unit, file = "plan", "updates", "plan.json"

    @property
    def label(self) -> str:  # type: ignore[override]
        return self.needs.label

    @property
    def domain(self) -> str:  # type: ignore[override]
        return self.needs.domain

    @property
    def by(self) -> str:  # type: ignore[override]
        return str(self.planner["name"])

    def __str__(self) -> str:
        return f"plan {self.task} from {self.label}, seed {self.needs.seed}"

    @property
    def total(self) -> int:  # type: ignore[override]
        return self.updates

    @property
    def config(self) -> dict[str, Any]:
        return {
            "explore": self.needs.config,
            "task": self.task,
            "planner": self.planner,
            "updates": self.updates,
            "episodes": self.episodes,
        }

    def compute(self, root: Path) -> dict[str, Any]:
        """The seed is the exploration's: one seed is one run of the whole pipeline."""
        folder, data = self.folder(root), Dataset.open(self.needs.folder(root))
        every = max(250, self.updates // LOOKS // 250 * 250)
        plan = pipeline.plan(
            data if self.episodes is None else data.first(self.episodes),
            self.task,
            registry.from_json("planner", self.planner),
            updates=self.updates,
            seed=self.needs.seed,
            out=folder,
            evaluate_every=every,
            resume=folder.exists(),
        )
        found = pipeline.evaluate(plan, episodes=EPISODES, seed=self.needs.seed)
        curve = _curve(folder, "updates", "return")
        return {
            **found.to_json(),
            "seconds": files.read_json(folder / "plan.json")["seconds"],
            "curve": [[done, value] for done, value in curve if done < self.updates]
            + [[self.updates, found.mean]],
        }


def from_record(record: Mapping[str, Any]) -> Job:
    """The job of a cell's record."""
    config, label = dict(record["config"]), record["label"]
    if record["kind"] == "explore":
        return ExploreJob(label, **config)
    return PlanJob(ExploreJob(label, **config.pop("explore")), **config)


def _curve(folder: Path, unit: str, name: str) -> list[list[float]]:
    """A metric over the work done, thinned to so many points by means."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    points = np.array([[line[unit], line[name]] for line in lines if line.get(name) is not None])
    if not len(points):
        return []
    return [part.mean(axis=0).round(6).tolist() for part in np.array_split(points, min(_CURVE, len(points)))]
