"""`rewardfree bench table2` and `rewardfree report`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from rewardfree import durable, machine
from rewardfree.bench import estimate
from rewardfree.bench.executors import Executor, Local, Ray
from rewardfree.bench.grid import DOMAINS, EXPLORERS, Grid
from rewardfree.bench.live import LiveTable, duration
from rewardfree.bench.report import report as write_report
from rewardfree.bench.results import Results
from rewardfree.bench.run import Progress, collect, run, unpack
from rewardfree.command import read, show
from rewardfree.data import files
from rewardfree.errors import UserError, unknown
from rewardfree.sizes import SizeName


@dataclass(frozen=True)
class Table2Args:
    """Flags of `bench table2`."""

    size: SizeName = "compact"
    """Widths and budgets; `paper` is the paper's own, 8 seeds of 10^6 frames."""
    frames: int | None = None
    """Frames of an exploration; the size's by default."""
    updates: int | None = None
    """Gradient steps of a plan; the size's by default."""
    seeds: int | None = None
    """Seeds 0, 1, ...; 8 at `paper`, 3 at `compact`, 2 at `tiny` by default."""
    explorers: str = ",".join(EXPLORERS)
    """Explorers, each as NAME or NAME:PRESET."""
    domains: str = ",".join(DOMAINS)
    """Domains."""
    tasks: str = ""
    """Tasks; all of each domain by default."""
    planners: str = ""
    """Planners, each as NAME or NAME:PRESET; ddpg-twin,ddpg-ensemble by default, ddpg-twin:paper at `paper`.
    The first plans all data, any further one GFA-RFE's only, to show what the planner does."""
    ablation: bool = False
    """Also plan from the first quarter, half and three quarters of the episodes, for the paper's four."""
    out: Path = Path("runs/table2")
    """Folder of the results; cells that are in it are not computed again."""
    workers: int | None = None
    """Cells at once on this machine, one thread each; as many as it has cores by default."""
    ray: str | None = None
    """Compute on a Ray cluster instead: its address, or `auto`."""
    gpus: float = 0.0
    """GPUs of one cell on the Ray cluster; a fraction shares one."""
    dry_run: bool = False
    """Print the cells and an estimate of their time from a short trial on this machine, and stop."""
    json: bool = False
    """Print one JSON object."""


def bench(argv: Sequence[str]) -> None:
    """Compare explorers over domains, tasks and seeds: table2."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: rewardfree bench table2 ...   (rewardfree bench table2 --help)\n")
        print(f"  table2    {_table2.__doc__}")
        return
    if argv[0] not in COMMANDS:
        raise unknown("comparison", argv[0], COMMANDS)
    COMMANDS[argv[0]](argv[1:])


def _table2(argv: Sequence[str]) -> None:
    """The paper's Table 2 and its ablations: explore once per seed, plan every task, evaluate."""
    args = read(Table2Args, argv, "bench table2", _table2.__doc__)
    grid = Grid(
        size=args.size,
        explorers=_names(args.explorers),
        domains=_names(args.domains),
        tasks=_names(args.tasks),
        planners=_names(args.planners),
        seeds=args.seeds,
        frames=args.frames,
        updates=args.updates,
        ablation=args.ablation,
    )
    jobs = grid.jobs()
    workers = machine.cores() if args.workers is None else args.workers
    if workers < 1:
        raise UserError(f"workers must be at least 1, not {workers}")
    unpack(args.out)
    progress = Progress(args.out, jobs)
    if args.dry_run:
        _dry_run(progress, workers, args.json)
        return
    command = shlex.join(["rewardfree", "bench", "table2", *argv])
    args.out.mkdir(parents=True, exist_ok=True)
    with durable.locked(args.out):
        files.write_json(args.out / "grid.json", {"command": command})
        executor: Executor = (
            Local(args.out, workers) if args.ray is None else Ray(args.out, args.ray, args.gpus)
        )
        with executor, LiveTable(args.json, workers) as display:
            run(progress, executor, display)
        files.write_json(args.out / "results.json", {"command": command, "cells": collect(args.out, jobs)})
    for job in jobs:
        if job.key in progress.failed:
            print(f"rewardfree: {job} failed: {progress.failed[job.key]}", file=sys.stderr)
    found = {
        "out": str(args.out),
        "cells": len(jobs),
        "done": len(progress.done),
        "failed": progress.failed,
    }
    text = f"{len(progress.done)} of {len(jobs)} cells: rewardfree report {args.out}"
    show(found, args.json, text)
    if progress.failed:
        raise UserError(f"{len(progress.failed)} cells failed; the same command tries them again")


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {"table2": _table2}


@dataclass(frozen=True)
class ReportArgs:
    """Flags of `report`."""

    results: tyro.conf.Positional[Path]
    """Folder of a benchmark, finished or running, or its results.json."""
    out: Path | None = None
    """The page; report.html in that folder by default."""
    json: bool = False
    """Print one JSON object."""


def report(argv: Sequence[str]) -> None:
    """Turn a benchmark's results into one self-contained HTML page."""
    args = read(ReportArgs, argv, "report", report.__doc__)
    if not args.results.exists():
        raise UserError(f"there are no results in {args.results}: run `rewardfree bench table2` first")
    folder = args.results if args.results.is_dir() else args.results.parent
    out = args.out or folder / "report.html"
    results = Results.open(args.results)
    write_report(results, out)
    show({"page": str(out), "cells": len(results.cells)}, args.json, f"{len(results.cells)} cells: {out}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _dry_run(progress: Progress, workers: int, as_json: bool) -> None:
    console = Console(stderr=True)
    missing = progress.waiting
    seconds = estimate.trial(missing, lambda job: console.print(f"[dim]trying: {job}", highlight=False))
    table = Table("what", "domain", "by", "cells", "each", "all", title="cells to compute")
    rows = estimate.table(missing, seconds)
    for kind, domain, by, count, each in rows:
        table.add_row(kind, domain, by, str(count), duration(each), duration(count * each))
    total = sum(seconds.values())
    found = {
        "cells": len(progress.jobs),
        "done": len(progress.done),
        "jobs": [{"key": job.key, "what": str(job), "seconds": seconds[job.key]} for job in missing],
        "seconds": total,
        "workers": workers,
    }
    text = (
        f"{len(progress.done)} of {len(progress.jobs)} cells are there; the others take about"
        f" {duration(total)} of one core, {duration(total / workers)} on {workers}"
    )
    show(found, as_json, text, table)
