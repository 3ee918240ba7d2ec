"""What each of eight settings of GFA-RFE does to its plans: python -m benchmarks.factorial.

One setting at a time is a poor use of runs, because seeds are as far apart as settings. Here every run has a
seed of its own and half of the settings changed, so that each effect is the difference of two means of eight
runs. The design is the 2^(8-4) one of resolution IV: no effect is mixed up with another's, or with what two
settings do together. The cells are those of the benchmark: content-addressed, resumable, two at a time.
Results go to results/factorial-walker.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

import rewardfree as rf
from benchmarks.screen import grouped, planner, plans, row_of
from rewardfree import registry
from rewardfree.bench.executors import Local
from rewardfree.bench.jobs import ExploreJob, Job
from rewardfree.bench.run import Progress, collect, run

FIRST_SEED = 100
"""None of the grid's seeds: what is chosen here is tested there."""
WEIGHTED = rf.GfaRfe.presets()["weighted"]
FACTORS: dict[str, dict[str, Any]] = {
    "LayerNorms in both layers": {"critic_norm": "both"},
    "gamma 0.98": {"gamma": 0.98},
    "aims for 500 frames": {"skill_every": 500},
    "aims up to 4 spreads": {"aim_clip": 4.0},
    "no aim of 0": {"aim_none": 0.0},
    "weights": {name: getattr(WEIGHTED, name) for name in ("oracle", "weight_at", "weight_by")},
    "1 step": {"nstep": 1},
    "noise 0.4": {"noise": 0.4},
}
"""What each setting changes of GFA-RFE's default."""


def design() -> np.ndarray:
    """Whether a run has a setting, bool [16, 8]."""
    a, b, c, d = np.array(list(itertools.product((-1, 1), repeat=4))).T
    return np.stack([a, b, c, d, b * c * d, a * c * d, a * b * c, a * b * d], axis=1) > 0


def jobs() -> list[Job]:
    """An exploration of walker for every run of the design, and its plans."""
    found: list[Job] = []
    for number, has in enumerate(design()):
        config = rf.resize(rf.GfaRfe(), "compact")
        for change in itertools.compress(FACTORS.values(), has):
            config = replace(config, **change)
        label, frames = " + ".join(itertools.compress(FACTORS, has)) or "fast", rf.SIZES["compact"].frames
        job = ExploreJob(
            label, "walker", registry.to_json(config), "compact", frames, seed=FIRST_SEED + number
        )
        found += [job, *plans(job, *planner("fast", "compact"))]
    return found


def effects(has: np.ndarray, returns: np.ndarray) -> list[tuple[float, float]]:
    """The difference that each setting makes, and half of its 95 % interval, by least squares."""
    x = np.column_stack([np.ones(len(has)), has])
    fitted = np.linalg.lstsq(x, returns)[0]
    free = len(x) - x.shape[1]
    variance = np.sum((returns - x @ fitted) ** 2) / free
    half = scipy.stats.t.ppf(0.975, free) * np.sqrt(variance * np.diag(np.linalg.inv(x.T @ x)))
    return list(zip(fitted[1:].tolist(), half[1:].tolist(), strict=True))


def main() -> None:
    """Compute what is missing and print the effects."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/factorial"))
    args = parser.parse_args()
    asked = jobs()
    progress = Progress(args.out, asked)
    with Local(args.out, args.workers) as executor:
        run(progress, executor, lambda progress: None)
    if progress.failed:
        raise SystemExit("\n".join(f"{key} failed: {error}" for key, error in progress.failed.items()))
    rows = [row_of(*pair, "fast") for pair in grouped(collect(args.out, asked))]
    returns = {task: [row["returns"][task] for row in rows] for task in rows[0]["returns"]}
    returns["mean"] = [row["mean_return"] for row in rows]
    found = {task: effects(design(), np.array(column)) for task, column in returns.items()}
    table = {name: {task: found[task][number] for task in found} for number, name in enumerate(FACTORS)}
    path = Path("results") / "factorial-walker.json"
    path.write_text(json.dumps({"effects": table, "runs": rows}, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        print(f"{row['seed']} {row['mean_return']:5.0f} {row['cells']:5} {row['variant']}")
    for name, by_task in table.items():
        columns = (f"{task} {value:+5.0f} ± {half:3.0f}" for task, (value, half) in by_task.items())
        print(f"{name:26}", *columns, sep="  ")


if __name__ == "__main__":
    main()
