"""Settings of GFA-RFE beside the baselines: python -m benchmarks.screen maze|walker --out runs/screen.

The quick look of a search for settings: how many cells the data covers and how much of each task's reward
it holds, both of which cost no planning; `--plan` plans the tasks too, with the default planner or with a
setting of benchmarks.planners. The cells are those of the benchmark: content-addressed, resumable, two at a
time. Results go to results/screen-STAGE.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import rewardfree as rf
from benchmarks.planners import VARIANTS
from rewardfree import registry
from rewardfree.bench.executors import Local
from rewardfree.bench.jobs import ExploreJob, Job, PlanJob
from rewardfree.bench.run import Progress, collect, run
from rewardfree.explorers._explorer import ActorCriticExplorer
from rewardfree.interfaces import Explorer, Planner
from rewardfree.sizes import SizeName

BASELINES: dict[str, Explorer] = {
    "random": rf.Random(),
    "rnd": rf.Rnd(),
    "disagreement": rf.Disagreement(),
    "apt": rf.Apt(),
}
CHANGES: dict[str, dict[str, Any]] = {
    "fast": {},
    # the bonus oracle
    "actions too": {"oracle": rf.Elliptical(action_scale=1.0)},
    "actions a little": {"oracle": rf.Elliptical(action_scale=0.3)},
    "ls 0.5": {"oracle": rf.Elliptical(length_scale=0.5)},
    "ls 1": {"oracle": rf.Elliptical(length_scale=1.0)},
    "ls 4": {"oracle": rf.Elliptical(length_scale=4.0)},
    "256 features": {"oracle": rf.Elliptical(features=256)},
    "1024 features": {"oracle": rf.Elliptical(features=1024)},
    "ridge 0.1": {"oracle": rf.Elliptical(ridge=0.1)},
    "inverse model": {"oracle": rf.EllipticalInverse()},
    "random targets": {"oracle": rf.RandomTargets()},
    "random returns": {"oracle": rf.RandomReturns()},
    "random rewards": {"oracle": rf.RandomReturns(horizon=0.0)},
    "q-ensemble": {"oracle": rf.QEnsemble(), "critics": 5, "bootstrap": "own"},
    **{
        f"q-ensemble, priors {scale}": {
            "oracle": rf.QEnsemble(),
            "critics": 5,
            "bootstrap": "own",
            "prior": float(scale),
        }
        for scale in (1, 3, 10, 30)
    },
    # the aims
    "D alone": {"aim": 0.0},
    "aims alone": {"intrinsic": 0.0},
    "aim 1": {"aim": 1.0},
    "aim 10": {"aim": 10.0},
    "aims for 100 frames": {"skill_every": 100},
    "aims for 125 frames": {"skill_every": 125},
    # the weights
    "sigma bar": {"oracle": rf.Elliptical(sigma_epistemic=1.0, sigma_floor=0.1)},
    "weighted critics": {"weight_at": "here"},
    "weighted critics, next": {"weight_at": "next"},
    # the rest of the update
    "raw bonus": {"standardise": False},
    "1 step": {"nstep": 1},
    "5 steps": {"nstep": 5},
    "both LayerNorms, gamma 0.98": {"critic_norm": "both", "gamma": 0.98},
    "5 critics": {"critics": 5},
    "5 critics, in turn": {"critics": 5, "trained": "cycle", "averaged": "cycle"},
    "1 critic": {"critics": 1},
    "twin minimum": {"bootstrap": "min", "actor_objective": "min"},
    "lr 1e-3": {"learning_rate": 1e-3},
    "lr 1e-4": {"learning_rate": 1e-4},
    "both LayerNorms": {"critic_norm": "both"},
    "priors 3": {"prior": 3.0},
    "batch 64, every frame": {"batch": 64, "update_every": 1},
    "batch 128, every frame": {"batch": 128, "update_every": 1},
    "raw observations": {"normalise": False},
    "the baselines' update": {
        "learning_rate": 1e-4,
        "normalise": False,
        "share": "trunk",
        "bootstrap": "min",
        "actor_objective": "min",
    },
    "half the updates": {"update_every": 4},
    "twice the updates": {"update_every": 1},
    "batch 64": {"batch": 64},
    "batch 512": {"batch": 512},
    "width 128": {"hidden": 128},
    "less noise": {"noise": 0.05},
    "more noise": {"noise": 0.4},
    "random actions": {"epsilon": 0.2},
    "random actions, held for 50": {"epsilon": 0.2, "epsilon_hold": 50},
    "ridge 100": {"oracle": rf.Elliptical(ridge=100.0)},
    "ridge 1000": {"oracle": rf.Elliptical(ridge=1000.0)},
}
"""What a setting changes of GFA-RFE's default."""


def planner(name: str, size: SizeName) -> tuple[Planner, int]:
    """The default planner, or a setting of benchmarks.planners, and its updates."""
    return (rf.resize(rf.DdpgTwin(), size), rf.SIZES[size].updates) if name == "fast" else VARIANTS[name]


def jobs(
    names: list[str], domain: str, size: SizeName, frames: int, seeds: int, plan: str | None
) -> list[Job]:
    """Explorations of every variant, and their plans if asked for."""
    found: list[Job] = []
    for seed in range(seeds):
        for name in names:
            config = rf.resize(BASELINES.get(name, rf.GfaRfe()), size)
            if size == "tiny" and isinstance(config, ActorCriticExplorer):  # the maze's observations are tiny
                config = replace(config, normalise=True, learning_rate=1e-3, chunk=50)
            if name not in BASELINES:
                config = replace(config, **CHANGES[name])  # type: ignore[type-var]
            job = ExploreJob(name, domain, registry.to_json(config), size, frames, seed)
            found.append(job)
            if plan is not None:
                found += plans(job, *planner(plan, size))
    return found


def plans(job: ExploreJob, by: Planner, updates: int) -> list[PlanJob]:
    """Plans of all tasks from an exploration."""
    tasks = registry.load("domain", job.domain).tasks
    return [PlanJob(job, task, registry.to_json(by), updates) for task in tasks]


def main() -> None:
    """Compute what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("stage", choices=("maze", "walker"))
    parser.add_argument("--variants", default=";".join([*BASELINES, *CHANGES]), help="names, separated by ;")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--frames", type=int, default=None)
    parser.add_argument("--plan", nargs="?", const="fast", choices=("fast", *VARIANTS), metavar="PLANNER")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/screen"))
    args = parser.parse_args()
    names = args.variants.split(";")
    if unknown := [name for name in names if name not in BASELINES and name not in CHANGES]:
        parser.error(f"unknown variants: {'; '.join(unknown)}")
    maze = args.stage == "maze"
    domain = "point_mass_maze" if maze else "walker"
    size: SizeName = "tiny" if maze else "compact"
    frames = args.frames or (40_000 if maze else 50_000)
    asked = jobs(names, domain, size, frames, args.seeds, args.plan)
    progress = Progress(args.out, asked)
    with Local(args.out, args.workers) as executor:
        run(progress, executor, lambda progress: None)
    cells = collect(args.out, asked)
    for name, error in progress.failed.items():
        print(f"{name} failed: {error}")
    path = Path("results") / f"screen-{args.stage}.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for row in (row_of(*pair, args.plan) for pair in grouped(cells)):
        known[f"{row['variant']} {row['seed']} {row['frames']} {row['planner'] or ''}".strip()] = row
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    for row in sorted(known.values(), key=lambda row: -row["cells"]):
        tasks = "  ".join(f"{task} {mean:.3f}" for task, mean in row["support"].items())
        planned = "  ".join(f"{task} {value:.0f}" for task, value in row["returns"].items())
        start = f"{row['variant']:28} {row['seed']} {row['frames']:7} {row['cells']:5}"
        print(f"{start}  {tasks}  | {row['planner'] or ''}  {planned}")


def grouped(cells: list[dict[str, Any]]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each exploration with its plans."""
    plans = [cell for cell in cells if cell["kind"] == "plan"]
    return [
        (cell, [plan for plan in plans if plan["config"]["explore"] == cell["config"]])
        for cell in cells
        if cell["kind"] == "explore"
    ]


def row_of(cell: dict[str, Any], plans: list[dict[str, Any]], planner: str | None) -> dict[str, Any]:
    """What is kept of an exploration and its plans."""
    result = cell["result"]
    returns = {plan["config"]["task"]: plan["result"]["mean"] for plan in plans}
    return {
        "variant": cell["label"],
        "seed": cell["config"]["seed"],
        "frames": result["frames"],
        "cells": result["coverage"]["cells"],
        "support": {task: row["mean"] for task, row in result["tasks"].items()},
        "best_100": {task: row["windows"]["100"] for task, row in result["tasks"].items()},
        "planner": planner,
        "returns": returns,
        "mean_return": statistics.fmean(returns.values()) if returns else None,
        "seconds": result["seconds"],
    }


if __name__ == "__main__":
    main()
