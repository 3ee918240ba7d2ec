"""Is the verdict of `inspect` right? python -m benchmarks.verdict --domain walker --out FILE.json.

Every task of the domain and further rewards, on data from good, poor and random exploration: plan, run the
plan in the simulator, and keep its return. Data sets and rows that are there already are not made again. With
--table, the verdicts are set against what was achieved, over all the files given.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import rewardfree as rf
from rewardfree import registry
from rewardfree.demo import EXPLORERS as DEMO
from rewardfree.demo import PLANNER
from rewardfree.interfaces import Explorer

UPDATES, EPISODES = 8000, 5

EXPLORERS: dict[str, dict[str, Explorer]] = {
    "point_mass_maze": {
        "good": DEMO["gfa-rfe"],
        "poor": rf.resize(rf.Disagreement(), "tiny"),
        "random": rf.Random(),
    },
    **{
        domain: {
            "good": rf.resize(rf.Disagreement(), "compact"),
            "poor": rf.resize(rf.Diayn(), "compact"),
            "random": rf.Random(),
        }
        for domain in ("walker", "quadruped")
    },
}
_PAPER = rf.DdpgTwin.presets()["paper"]
_WALKING = replace(_PAPER, hidden=128, batch=128, learning_rate=3e-4, normalise=True)
PLANNERS = {"point_mass_maze": PLANNER, "walker": _WALKING, "quadruped": _WALKING}
FRAMES = {"point_mass_maze": 100_000, "walker": 50_000, "quadruped": 50_000}
FURTHER: dict[str, tuple[str, ...]] = {
    "point_mass_maze": (
        "tolerance(norm(x, y - 0.25), 0, 0.02, margin=0.02)",
        "tolerance(norm(x + 0.25, y + 0.25), 0, 0.02, margin=0.02)",
        "tolerance(norm(x - 0.25, y), 0, 0.02, margin=0.05)",
        "tolerance(norm(vx, vy), 0, 0.005, margin=0.02)",
        "x > 0.25",
        "y < -0.2 and x < -0.2",
        "clip(norm(vx, vy) / 0.3, 0, 1)",
        "x > 0.5",
    ),
    "walker": (
        "(1 + upright) / 2 * clip(-vx, 0, 1)",
        "tolerance(torso_height, 0.5, 0.7, margin=0.3)",
        "tolerance(upright, -1, -0.8, margin=0.5)",
        "tolerance(torso_height, 0, 0.3, margin=0.2) * tolerance(norm(qvel), 0, 1, margin=2)",
        "tolerance(angular_momentum, -inf, -5, margin=5, sigmoid=linear, value_at_margin=0)",
        "tolerance(left_foot_z, 0.6, inf, margin=0.4)",
        "clip(vx / 3, 0, 1)",
        "clip(vz, 0, 2) / 2",
        "torso_height > 1.1",
        "vx > 4 and upright > 0.8",
        "torso_height > 2.5",
    ),
    "quadruped": (
        "(1 + upright) / 2 * clip(-vx, 0, 1)",
        "(1 + upright) / 2 * clip(vy, 0, 1)",
        "(1 + upright) / 2 * clip(yaw_rate / 3, 0, 1)",
        "tolerance(upright, -1, -0.9, margin=0.5)",
        "(1 + upright) / 2 * tolerance(com_height, 0, 0.35, margin=0.2)",
        "com_height > 2",
    ),
}


def collect(domain: str, quality: str, runs: Path) -> Path:
    """The run of one explorer, made if it is not there."""
    run = runs / f"{domain}-{quality}"
    if not (run / "run.json").exists():
        explorer = EXPLORERS[domain][quality]
        rf.explore(domain, explorer, frames=FRAMES[domain], seed=0, out=run, quiet=False)
    return run


def row(run: Path, reward: str) -> dict[str, Any]:
    """Plan for a reward and run the plan."""
    data = rf.Dataset.open(run)
    planner = PLANNERS[data.spec.domain]
    plan = rf.plan(data, reward, planner, updates=UPDATES, seed=0, quiet=False)
    return {"run": run.name, "reward": reward, "returns": rf.evaluate(plan, episodes=EPISODES).returns}


OUTCOMES = {"solved": 0.5, "partly": 0.2, "failed": -1e9}
"""Least mean reward per step of the plan; every reward here pays 1 at most."""


def table(paths: list[Path], runs: Path) -> None:
    """How the verdicts went with what planning achieved."""
    counts: dict[tuple[str, str, str], int] = {}
    for path in paths:
        for one in json.loads(path.read_text()):
            run = runs / one["run"]
            found = rf.inspect(run, [one["reward"]])["rewards"][one["reward"]]
            level = sum(one["returns"]) / len(one["returns"]) / 1000
            outcome = next(name for name, least in OUTCOMES.items() if level >= least)
            key = one["run"].rpartition("-")[0], found["verdict"], outcome
            counts[key] = counts.get(key, 0) + 1
    domains = sorted({domain for domain, _, _ in counts})
    print(f"| domain | verdict | {' | '.join(OUTCOMES)} |\n|---{'|---' * (1 + len(OUTCOMES))}|")
    for domain in (*domains, "all"):
        for word in ("likely", "doubtful", "no support"):
            row = [
                sum(
                    n
                    for (d, v, o), n in counts.items()
                    if domain in (d, "all") and v == word and o == outcome
                )
                for outcome in OUTCOMES
            ]
            print(f"| {domain} | {word} | {' | '.join(map(str, row))} |")


def main() -> None:
    """Make what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--domain", choices=EXPLORERS, default="walker")
    parser.add_argument("--runs", type=Path, default=Path("runs/calibration"))
    parser.add_argument("--out", type=Path, nargs="+", required=True, help="JSON file with the rows so far")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if args.table:
        table(args.out, args.runs)
        return
    (out,) = args.out
    found: list[dict[str, Any]] = json.loads(out.read_text()) if out.exists() else []
    done = {(one["run"], one["reward"]) for one in found}
    rewards = (*registry.load("domain", args.domain).tasks, *FURTHER[args.domain])
    for quality in ("random", "good", "poor"):
        run = collect(args.domain, quality, args.runs)
        for reward in rewards:
            if (run.name, reward) not in done:
                found.append(row(run, reward))
                out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
