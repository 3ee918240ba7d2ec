"""How far a grid is, as a table that follows it."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.table import Table

from rewardfree.bench import estimate
from rewardfree.bench.jobs import Job
from rewardfree.bench.run import Progress


class LiveTable:
    """A table that follows the grid."""

    def __init__(self, quiet: bool, workers: int) -> None:
        self._quiet, self._workers = quiet, workers
        self._live = Live(console=Console(stderr=True), refresh_per_second=2)

    def __enter__(self) -> Callable[[Progress], None]:
        if not self._quiet:
            self._live.start()
        return self._show

    def __exit__(self, *error: object) -> None:
        if not self._quiet:
            self._live.stop()

    def _show(self, progress: Progress) -> None:
        if not self._quiet:
            self._live.update(live_table(progress, self._workers))


def live_table(progress: Progress, workers: int) -> Table:
    """Cells done, running and failed, for each explorer in each domain, and the time that is left."""
    left = estimate.seconds_left(progress, workers)
    time = "unknown yet" if left is None else f"about {duration(left)}"
    counts = f"{len(progress.done)} of {len(progress.jobs)} cells done, {len(progress.running)} running"
    caption = f"{counts}, {len(progress.failed)} failed; time left: {time}"
    table = Table("domain", "data from", "explored", "planned", "running", "failed", caption=caption)
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in progress.jobs:
        groups.setdefault((job.domain, job.label), []).append(job)
    for (domain, label), jobs in groups.items():
        explored, planned = (
            f"{sum(job.key in progress.done for job in jobs if job.kind == kind)}"
            f" / {sum(job.kind == kind for job in jobs)}"
            for kind in ("explore", "plan")
        )
        running = [
            f"{'explore' if job.needs is None else job.config['task']} {job.progress(progress.root)[0]:.0%}"
            for job in jobs
            if job.key in progress.running
        ]
        failed = sum(job.key in progress.failed for job in jobs)
        table.add_row(domain, label, explored, planned, ", ".join(running), str(failed) if failed else "")
    return table


def duration(seconds: float) -> str:
    """A time that a person can read."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
