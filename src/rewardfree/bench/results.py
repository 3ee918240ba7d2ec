"""The cells of a grid, arranged for tables."""

from __future__ import annotations

import csv
import io
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewardfree.bench.grid import EXPLORERS
from rewardfree.bench.jobs import ExploreJob, Job, PlanJob, from_record
from rewardfree.bench.statistics import Scores
from rewardfree.data import files
from rewardfree.errors import UserError

FULL_SCORE = 1000.0
"""What a dm_control task pays at most: 1 in each of 1000 steps."""


@dataclass(frozen=True)
class Cell:
    """A job and what came out of it."""

    job: Job
    record: dict[str, Any]

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = self.record["result"]
        return found


@dataclass(frozen=True)
class Plans:
    """The plans of one budget by one planner: the body of a table."""

    cells: Sequence[tuple[PlanJob, dict[str, Any]]]

    def of(self, domain: str, label: str, task: str) -> dict[int, dict[str, Any]]:
        """Results by seed."""
        return {
            job.needs.seed: result
            for job, result in self.cells
            if (job.needs.domain, job.label, job.task) == (domain, label, task)
        }

    def returns(self, domain: str, label: str, task: str) -> np.ndarray:
        """The mean return of each seed."""
        found = self.of(domain, label, task)
        return np.array([found[seed]["mean"] for seed in sorted(found)])

    def scores(self, domain: str, label: str, tasks: Sequence[str]) -> Scores | None:
        """Shares of the full score; None unless every task has been planned."""
        scores = [self.returns(domain, label, task) / FULL_SCORE for task in tasks]
        return scores if all(len(runs) for runs in scores) else None

    def __len__(self) -> int:
        return len(self.cells)


class Results:
    """All cells of a results file or of a grid's folder."""

    def __init__(self, command: str, records: Sequence[dict[str, Any]]) -> None:
        self.command = command
        self.cells = [Cell(from_record(record), record) for record in records]
        self.explored = [(cell.job, cell.result) for cell in self.cells if isinstance(cell.job, ExploreJob)]
        self._planned = [(cell.job, cell.result) for cell in self.cells if isinstance(cell.job, PlanJob)]
        if not self.cells:
            raise UserError("there is no finished cell yet: let the benchmark run a while")

    @classmethod
    def open(cls, path: Path) -> Results:
        """Read a grid's folder (also while it runs, or with its results file alone) or a results file."""
        cells = sorted((path / "cells").glob("*.json"))
        if not cells and (path / "results.json").is_file():
            path = path / "results.json"
        if path.is_dir():
            records = [files.read_json(cell) for cell in cells]
            before = path / "grid.json"
            command = files.read_json(before)["command"] if before.is_file() else ""
        else:
            content = files.read_json(path)
            with files.parsing(path):
                command, records = content["command"], content["cells"]
        with files.parsing(path):
            return cls(command, records)

    @property
    def updates(self) -> set[int]:
        """Updates of planning."""
        return {job.updates for job, _ in self._planned}

    @property
    def episodes(self) -> dict[str, int]:
        """Episodes of each exploration, by its key."""
        return {job.key: result["episodes"] for job, result in self.explored}

    @property
    def every_label(self) -> list[str]:
        """The explorers of all domains."""
        return list(dict.fromkeys(label for domain in self.domains for label in self.labels(domain)))

    @property
    def domains(self) -> list[str]:
        return list(dict.fromkeys(job.domain for job, _ in self.explored))

    def labels(self, domain: str) -> list[str]:
        """Explorers, in the order of the paper's table."""
        order = {name: number for number, name in enumerate(EXPLORERS)}
        found = dict.fromkeys(job.label for job, _ in self.explored if job.domain == domain)
        return sorted(found, key=lambda label: (order.get(label, len(order)), label))

    def tasks(self, domain: str) -> list[str]:
        """Tasks that were planned, in the order of the domain."""
        planned = {job.task for job, _ in self._planned if job.needs.domain == domain}
        known = [list(result["tasks"]) for job, result in self.explored if job.domain == domain]
        return [task for task in known[0] if task in planned] if known else sorted(planned)

    @property
    def planners(self) -> list[str]:
        """By how much they have planned: the shared one first."""
        counts: dict[str, int] = defaultdict(int)
        for job, _ in self._planned:
            counts[job.planner["name"]] += 1
        return sorted(counts, key=lambda name: -counts[name])

    def plans(self, planner: str) -> Plans:
        """The plans from all of the data."""
        return Plans(
            [
                (job, result)
                for job, result in self._planned
                if job.planner["name"] == planner and job.episodes is None
            ]
        )

    def prefixes(self, planner: str) -> list[tuple[PlanJob, dict[str, Any]]]:
        """The plans from prefixes of the data, and those from all of it that they stand beside."""
        shortened = {(job.needs.key, job.task) for job, _ in self._planned if job.episodes is not None}
        return [
            (job, result)
            for job, result in self._planned
            if job.planner["name"] == planner and (job.needs.key, job.task) in shortened
        ]

    def csv(self) -> dict[str, str]:
        """The numbers behind the page, as files."""
        plans = [
            [
                job.needs.domain,
                job.task,
                job.label,
                job.planner["name"],
                job.needs.seed,
                job.needs.frames,
                job.episodes or "",
                job.updates,
                result["mean"],
                result["std"],
                *result["returns"],
            ]
            for job, result in self._planned
        ]
        most = max((len(result["returns"]) for _, result in self._planned), default=0)
        curves = [
            [
                job.needs.domain,
                job.task,
                job.label,
                job.planner["name"],
                job.needs.seed,
                job.episodes or "",
                *point,
            ]
            for job, result in self._planned
            for point in result["curve"]
        ]
        runs = [
            [
                job.domain,
                job.label,
                job.seed,
                result["frames"],
                result["seconds"],
                result["coverage"]["cells"],
            ]
            for job, result in self.explored
        ]
        rewards = [
            [job.domain, job.label, job.seed, *point]
            for job, result in self.explored
            for point in result["intrinsic_reward"]
        ]
        place = ["domain", "task", "explorer", "planner", "seed"]
        each = [f"return_{number}" for number in range(most)]
        return {
            "returns.csv": _csv([*place, "frames", "episodes", "updates", "mean", "std", *each], plans),
            "planning-curves.csv": _csv([*place, "episodes", "updates", "return"], curves),
            "explorations.csv": _csv(["domain", "explorer", "seed", "frames", "seconds", "cells"], runs),
            "intrinsic-reward.csv": _csv(
                ["domain", "explorer", "seed", "frames", "intrinsic_reward"], rewards
            ),
        }


def mean_and_std(returns: np.ndarray) -> str:
    """As the paper prints it; a single seed has no spread."""
    if not len(returns):
        return ""
    if len(returns) == 1:
        return f"{returns[0]:.0f}"
    return f"{returns.mean():.0f} ± {statistics.stdev(returns.tolist()):.0f}"


def _csv(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
