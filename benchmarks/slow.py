"""How much of walker's data is slow, and how slow its policies are: python -m benchmarks.slow RUN [RUN ...].

An explorer that is paid for rare states hurries; a policy may come to rest where the data never did. For each
run: the speed (the norm of qvel), frames at rest (a speed below 1), upright frames (a stand reward above 0.9)
below some speeds, the longest stretch of stand above 0.8, the best windows of 200 frames of each task, and
saturated actions. `--plans` adds the speed of policies, and how much of their time they are at rest.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

import rewardfree as rf
from rewardfree import pipeline, registry
from rewardfree.data import files
from rewardfree.rewards.support import best_window

REST = 1.0
SPEEDS = (6.0, 10.0, 15.0)
WINDOW = 200


def measured(run: str) -> dict[str, Any]:
    """The figures of one run."""
    data = rf.Dataset.open(run)
    tasks = registry.load("domain", data.spec.domain).tasks
    rewards = {
        task: np.split(pipeline.label(data, task).reward, np.cumsum(data.lengths)[:-1]) for task in tasks
    }
    speed = np.linalg.norm(data.values("qvel"), axis=-1)  # of the next state, like the rewards
    upright = np.concatenate(rewards["stand"]) > 0.9
    stretches = [
        sum(1 for _ in group)
        for episode in rewards["stand"]
        for high, group in itertools.groupby(episode > 0.8)
        if high
    ]
    return {
        "explorer": files.read_json(Path(run) / "run.json")["explorer"]["name"],
        "frames": data.frames,
        "median_speed": float(np.median(speed)),
        "at_rest": int((speed < REST).sum()),
        "upright": int(upright.sum()),
        "upright_below": {str(bound): int((upright & (speed < bound)).sum()) for bound in SPEEDS},
        "longest_stand": max(stretches, default=0),
        "best_windows": {task: best_window(episodes, WINDOW) for task, episodes in rewards.items()},
        "saturated": float((np.abs(data.array("action")) > 0.95).mean()),
    }


def speed_of(plan: str, episodes: int = 3) -> dict[str, Any]:
    """How fast a policy is, and what it earns at rest."""
    policy = pipeline.Plan.load(plan)
    simulator = pipeline.make_domain(policy.domain)
    runs = [pipeline.rollout(simulator, policy.policy, seed) for seed in range(episodes)]
    reward = np.concatenate([policy.reward(run) for run in runs])
    speed = np.concatenate([np.linalg.norm(run["qvel"], axis=-1) for run in runs])
    return {
        "return": float(reward.sum() / episodes),
        "median_speed": float(np.median(speed)),
        "share_at_rest": float((speed < REST).mean()),
        "reward_at_rest": float(reward[speed < REST].mean()) if (speed < REST).any() else None,
    }


def main() -> None:
    """Print the figures, and keep them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", help="folders of explorations of walker")
    parser.add_argument("--plans", nargs="*", default=[], help="folders of plans")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    found = {Path(run).name: measured(run) for run in args.runs}
    found |= {Path(plan).name: speed_of(plan) for plan in args.plans}
    for name, row in found.items():
        print(name, json.dumps(row))
    if args.out is not None:
        args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
