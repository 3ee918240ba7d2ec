"""Settings of the planner on data that is there: python -m benchmarks.planners RUN [RUN ...].

What limits the return from this much data? Every setting plans every task of each run and is judged by the
return in the simulator of its last policy. One plan at a time in each of two processes; a plan that is there
is not computed again. Results go to results/planners-DOMAIN.json, with the time each plan took.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import rewardfree as rf
from rewardfree import registry
from rewardfree.bench.executors import ONE_THREAD
from rewardfree.data import files
from rewardfree.planners._ddpg import DdpgFamily

TWIN, TD3 = rf.DdpgTwin(), rf.Td3(learning_rate=3e-4, normalise=True)
UPDATES = 20_000
VARIANTS: dict[str, tuple[DdpgFamily, int]] = {
    "twin": (TWIN, UPDATES),
    "lr 1e-4": (replace(TWIN, learning_rate=1e-4), UPDATES),
    "lr 1e-3": (replace(TWIN, learning_rate=1e-3), UPDATES),
    "raw observations": (replace(TWIN, normalise=False), UPDATES),
    "batch 512": (replace(TWIN, batch=512), UPDATES // 2),
    "batch 1024": (replace(TWIN, batch=1024), UPDATES // 4),
    "width 128": (replace(TWIN, hidden=128), 2 * UPDATES),
    "width 512": (replace(TWIN, hidden=512), UPDATES // 3),
    "tau 0.005": (replace(TWIN, tau=0.005), UPDATES),
    "1 step": (replace(TWIN, nstep=1), UPDATES),
    "5 steps": (replace(TWIN, nstep=5), UPDATES),
    "separate critics": (replace(TWIN, share="nothing"), UPDATES),
    "mean of 5": (rf.DdpgEnsemble(critics=5, learning_rate=3e-4, normalise=True), UPDATES // 2),
    "td3": (TD3, UPDATES),
    "td3 with behaviour 0.1": (replace(TD3, behaviour=0.1), UPDATES),
    "td3 with behaviour 0.4": (replace(TD3, behaviour=0.4), UPDATES),
    "twin for twice as long": (TWIN, 2 * UPDATES),
}
"""Settings, and updates that take about as long as the first one's; the last asks what more time gives."""


def compute(run: str, name: str, task: str, seed: int) -> dict[str, Any]:
    """One plan and its return."""
    planner, updates = VARIANTS[name]
    out = Path(run) / "screen" / f"{name.replace(' ', '-')}-{task}-{seed}"
    plan = rf.plan(run, task, planner, updates=updates, seed=seed, out=out, resume=out.exists())
    found = rf.evaluate(plan)
    seconds = files.read_json(out / "plan.json")["seconds"]
    return {"return": found.mean, "std": found.std, "seconds": seconds}


def main() -> None:
    """Compute what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", help="folders of explorations of one domain")
    parser.add_argument("--variants", default=",".join(VARIANTS), help="names, separated by commas")
    parser.add_argument("--tasks", default="", help="all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    domain = rf.Dataset.open(args.runs[0]).spec.domain
    names = args.variants.split(",")
    tasks = args.tasks.split(",") if args.tasks else list(registry.load("domain", domain).tasks)
    path = Path("results") / f"planners-{domain}.json"
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    label = {run: files.read_json(Path(run) / "run.json")["explorer"]["name"] for run in args.runs}
    os.environ.update(ONE_THREAD)  # of the processes that are started
    with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        wanted = [(run, name, task, args.seed) for name in names for run in args.runs for task in tasks]
        keys = {job: f"{job[1]} | {label[job[0]]} | {job[2]} | {job[3]}" for job in wanted}
        futures = {pool.submit(compute, *job): job for job in wanted if keys[job] not in known}
        for future in as_completed(futures):
            known[keys[futures[future]]] = future.result()
            path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    for name in names:
        for run in args.runs:
            row = {task: known[keys[run, name, task, args.seed]] for task in tasks}
            mean = statistics.fmean(one["return"] for one in row.values())
            each = "  ".join(f"{task} {one['return']:4.0f}" for task, one in row.items())
            minutes = statistics.fmean(one["seconds"] for one in row.values()) / 60
            print(f"{name:22} {label[run]:14} mean {mean:4.0f}  {each}  {minutes:.1f} min a plan")


if __name__ == "__main__":
    main()
