"""Settings of the planner on data that is there: python -m benchmarks.planners RUN [RUN ...].

What limits the return from this much data? Every setting plans tasks of each run for about the same time and
is judged in the simulator four times on the way (it learns nothing from that): by its last actor, and by the
average of its actors. Results go to results/planners-DOMAIN.json; what is in there is not computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import rewardfree as rf
from rewardfree import pipeline, registry
from rewardfree.bench.executors import ONE_THREAD
from rewardfree.data import files
from rewardfree.data.replay import labelled_replay
from rewardfree.planners._ddpg import DdpgFamily, update_keys
from rewardfree.rewards.resolve import resolve

PARTS, LOOKS = 10, (6, 8, 9, 10)
"""A plan in tenths, and those after which it is looked at."""
EPISODES = 4

PLAIN = replace(
    rf.DdpgTwin.presets()["paper"], batch=256, learning_rate=3e-4, normalise=True, average=1 / PARTS
)
NEAR = replace(PLAIN, behaviour=0.1)
NORMED = replace(PLAIN, share="nothing", critic_norm="both")
MEAN = replace(NORMED, bootstrap="mean", actor_objective="mean")
THREE_STEPS = replace(MEAN, batch=64, gamma=0.98)
TD3 = replace(
    THREE_STEPS,
    bootstrap="min",
    actor_objective="min",
    target_actor=True,
    actor_every=2,
    actor_noise=False,
)
UPDATES = 10_000
VARIANTS: dict[str, tuple[DdpgFamily, int]] = {
    "plain": (PLAIN, UPDATES),
    "lr 1e-3": (replace(PLAIN, learning_rate=1e-3), UPDATES),
    "1 step": (replace(PLAIN, nstep=1), UPDATES),
    "5 heads": (replace(PLAIN, critics=5), UPDATES // 2 + 1000),
    "behaviour 0.1": (NEAR, UPDATES),
    "behaviour 0.4": (replace(PLAIN, behaviour=0.4), UPDATES),
    "behaviour 0.1, separate critics": (replace(NEAR, share="nothing"), UPDATES),
    "behaviour 0.1, lr 1e-3": (replace(NEAR, learning_rate=1e-3), UPDATES),
    "behaviour 0.1, lr 1e-3, 5 steps": (replace(NEAR, learning_rate=1e-3, nstep=5), UPDATES),
    "behaviour 0.03, lr 1e-3, 5 steps": (
        replace(NEAR, behaviour=0.03, learning_rate=1e-3, nstep=5),
        UPDATES,
    ),
    "behaviour 0.1, lr 1e-3, 5 steps, tau 0.03": (
        replace(NEAR, learning_rate=1e-3, nstep=5, tau=0.03),
        UPDATES,
    ),
    "behaviour 0.1, lr 1e-3, gamma 0.98": (replace(NEAR, learning_rate=1e-3, gamma=0.98), UPDATES),
    "behaviour 0.1, lr 1e-3, batch 128": (replace(NEAR, learning_rate=1e-3, batch=128), 2 * UPDATES),
    "behaviour 0.05, lr 1e-3": (replace(NEAR, learning_rate=1e-3, behaviour=0.05), UPDATES),
    "plain, twice as long": (PLAIN, 2 * UPDATES),
    "lr 1e-3, 5 steps, twice as long": (replace(PLAIN, learning_rate=1e-3, nstep=5), 2 * UPDATES),
    "behaviour 0.03, twice as long": (replace(PLAIN, behaviour=0.03), 2 * UPDATES),
    "behaviour 0.1, lr 1e-3, 5 steps, twice as long": (
        replace(NEAR, learning_rate=1e-3, nstep=5),
        2 * UPDATES,
    ),
    "normed, separate critics, twice as long": (NORMED, 2 * UPDATES),
    "normed, separate critics, mean, twice as long": (MEAN, 2 * UPDATES),
    "normed, separate critics, mean, batch 64": (replace(MEAN, batch=64), 5 * UPDATES),
    "normed, separate critics, batch 64": (replace(NORMED, batch=64), 5 * UPDATES),
    **{
        f"normed, separate critics, mean, batch 64, behaviour {weight}": (
            replace(MEAN, batch=64, behaviour=weight),
            5 * UPDATES,
        )
        for weight in (0.03, 0.1)
    },
    "plain, batch 64": (replace(PLAIN, batch=64), 5 * UPDATES),
    "normed, separate critics, batch 64, behaviour 0.03": (
        replace(NORMED, batch=64, behaviour=0.03),
        5 * UPDATES,
    ),
    "normed, separate critics, batch 64, behaviour 0.03, lr 1e-3": (
        replace(NORMED, batch=64, behaviour=0.03, learning_rate=1e-3),
        5 * UPDATES,
    ),
    **{f"gamma {gamma}": (replace(MEAN, batch=64, gamma=gamma), 5 * UPDATES) for gamma in (0.97, 0.98)},
    "the smaller, gamma 0.97": (replace(NORMED, batch=64, gamma=0.97), 5 * UPDATES),
    **{
        f"five critics, the least, gamma {gamma}": (
            replace(NORMED, batch=64, gamma=gamma, critics=5),
            5 * UPDATES,
        )
        for gamma in (0.98, 0.99)
    },
    "gamma 0.98, noise 0.4": (replace(THREE_STEPS, noise=0.4, noise_clip=0.8), 5 * UPDATES),
    **{
        f"gamma 0.98, width {width}": (replace(THREE_STEPS, hidden=width), 5 * UPDATES)
        for width in (128, 512)
    },
    "gamma 0.98, 1 step": (replace(THREE_STEPS, nstep=1), 5 * UPDATES),
    "gamma 0.98, TD3": (TD3, 5 * UPDATES),
    "gamma 0.98, TD3, behaviour 0.03": (replace(TD3, behaviour=0.03), 5 * UPDATES),
    "slow actor": (
        replace(NEAR, learning_rate=1e-3, target_actor=True, actor_every=2, actor_noise=False),
        13_000,
    ),
}
"""Settings, and updates that take about as long as the first one's."""


def compute(run: str, episodes: int | None, name: str, task: str, seed: int) -> dict[str, Any]:
    """One plan, and the returns of its last and its averaged actor on the way."""
    planner, updates = VARIANTS[name]
    opened = rf.Dataset.open(run)
    data = pipeline.label(opened if episodes is None else opened.first(episodes), task)
    replay = labelled_replay(data, planner.nstep, planner.gamma)
    learned = planner.init(data.data.spec, replay, seed)
    found: dict[str, Any] = {"last": [], "averaged": [], "updates": updates}
    seconds = []
    for part, chunk in enumerate(np.split(update_keys(updates, seed), PARTS), start=1):
        start = time.perf_counter()
        learned, metrics = planner._updates(learned, replay, chunk, 1 / (planner.average * updates))
        metrics["q"].block_until_ready()
        seconds.append(time.perf_counter() - start)
        if part in LOOKS:
            for column, shown in (("last", learned._replace(average=None)), ("averaged", learned)):
                plan = pipeline.Plan(
                    planner._policy(shown), data.data.spec.domain, resolve(task, data.data.spec)
                )
                found[column].append(round(pipeline.evaluate(plan, episodes=EPISODES, seed=part).mean, 1))
    return found | {"q": float(metrics["q"]), "ms": 1e3 * statistics.median(seconds) * PARTS / updates}


def main() -> None:
    """Compute what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", help="folders of explorations of one domain")
    parser.add_argument("--variants", default=";".join(VARIANTS), help="names, separated by ;")
    parser.add_argument("--tasks", default="", help="all by default")
    parser.add_argument("--episodes", type=int, help="of the data, the first so many; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    domain = rf.Dataset.open(args.runs[0]).spec.domain
    names = args.variants.split(";")
    tasks = args.tasks.split(",") if args.tasks else list(registry.load("domain", domain).tasks)
    path = Path("results") / f"planners-{domain}.json"
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    os.environ.update(ONE_THREAD)  # of the processes that are started
    with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        wanted = [(run, name, task) for name in names for run in args.runs for task in tasks]
        keys = {job: _key(args, *job) for job in wanted}
        futures = {
            pool.submit(compute, run, args.episodes, name, task, args.seed): key
            for (run, name, task), key in keys.items()
            if key not in known
        }
        for future in as_completed(futures):
            known[futures[future]] = future.result()
            path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    for key in keys.values():
        row = known[key]
        means = "  ".join(f"{column} {statistics.fmean(row[column]):4.0f}" for column in ("last", "averaged"))
        print(f"{key:80} {means}  {row['ms']:.1f} ms an update")


def _key(args: argparse.Namespace, run: str, name: str, task: str) -> str:
    explorer = files.read_json(Path(run) / "run.json")["explorer"]["name"]
    episodes = "all" if args.episodes is None else args.episodes
    return f"{name} | {explorer} {Path(run).name} | {episodes} | {task} | {args.seed}"


if __name__ == "__main__":
    main()
