"""Computes the cells of a grid that are not there yet, and shows how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardfree.bench.executors import Executor
from rewardfree.bench.jobs import Job, from_record
from rewardfree.data import files
from rewardfree.durable import Interrupts, StoppedError

Show = Callable[["Progress"], None]


@dataclass
class Progress:
    """Which cells are where."""

    root: Path
    jobs: Sequence[Job]
    running: dict[str, Job] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Errors by key."""
    done: dict[str, float] = field(default_factory=dict)
    """Seconds by key."""

    def __post_init__(self) -> None:
        """A result that is there is done; data that was deleted since and is needed again is not."""
        there = {job.key for job in self.jobs if job.cell(self.root).exists()}
        needed = {job.needs.key for job in self.jobs if job.needs is not None and job.key not in there}
        for job in self.jobs:
            if job.key in there and (job.key not in needed or job.is_kept(self.root)):
                self.note(job)

    def note(self, job: Job) -> None:
        """Its result is there."""
        with files.parsing(job.cell(self.root)):
            self.done[job.key] = float(files.read_json(job.cell(self.root))["result"]["seconds"])

    @property
    def waiting(self) -> list[Job]:
        return [
            job
            for job in self.jobs
            if job.key not in self.done and job.key not in self.running and job.key not in self.failed
        ]


def run(progress: Progress, executor: Executor, show: Show) -> None:
    """Compute what is missing. A cell that fails is written down and does not stop the others.

    Raises StoppedError after Ctrl-C, once every cell has stopped where it can be resumed.
    """
    with Interrupts() as interrupts:
        while (waiting := progress.waiting) or progress.running:
            if interrupts.asked:
                executor.stop()
                done = f"{len(progress.done)} of {len(progress.jobs)} cells are there"
                raise StoppedError(f"stopped; {done}, and the same command goes on")
            for job in waiting:
                if job.needs is not None and job.needs.key in progress.failed:
                    progress.failed[job.key] = f"the exploration it needs failed ({job.needs.key})"
                elif _ready(job, progress) and executor.free:
                    executor.start(job)
                    progress.running[job.key] = job
            show(progress)
            for job, error in executor.finished():
                del progress.running[job.key]
                if error is None:
                    progress.note(job)
                else:
                    progress.failed[job.key] = error
    show(progress)


def _ready(job: Job, progress: Progress) -> bool:
    return job.needs is None or job.needs.key in progress.done


def collect(root: Path, jobs: Iterable[Job]) -> list[dict[str, Any]]:
    """The results of these cells that are there."""
    return [files.read_json(job.cell(root)) for job in jobs if job.cell(root).exists()]


def unpack(root: Path) -> None:
    """Lay out the cells of a results file whose folder was not kept: a grid goes on from the file alone."""
    kept = root / "results.json"
    if not kept.exists():
        return
    content = files.read_json(kept)
    with files.parsing(kept):
        cells = [(from_record(record).cell(root), record) for record in content["cells"]]
    for cell, record in cells:
        if not cell.exists():
            files.write_json(cell, record)
