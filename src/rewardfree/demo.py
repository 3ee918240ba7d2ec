"""The whole story in minutes: explore a maze once, solve four goals from the data, against random actions."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from rewardfree import pipeline
from rewardfree.data.dataset import Dataset
from rewardfree.data.transitions import Transitions
from rewardfree.domains.point_mass_maze import GOALS, HALF_ARENA, WALL_HALF_LENGTH, WALL_HALF_THICKNESS
from rewardfree.explorers.gfa_rfe import GfaRfe
from rewardfree.explorers.random import Random
from rewardfree.interfaces import Explorer
from rewardfree.oracles.elliptical import Elliptical
from rewardfree.planners.ddpg_twin import DdpgTwin
from rewardfree.rewards.support import coverage, occupied
from rewardfree.sizes import resize

DOMAIN = "point_mass_maze"
EXPLORERS: dict[str, Explorer] = {
    "gfa-rfe": resize(
        GfaRfe(
            oracle=Elliptical(features=256, length_scale=1.0, action_scale=1.0),
            learning_rate=1e-3,
            update_every=8,
            epsilon=0.25,  # held actions: slow and varied passages of places that the explorer races through
            epsilon_hold=20,
        ),
        "tiny",
    ),
    "random": Random(),
}
PLANNER = replace(
    resize(DdpgTwin(), "tiny"),
    batch=256,  # few transitions are at a goal: a smaller batch often has none
    gamma=0.995,  # the farthest goal is some 300 steps away
    nstep=5,
    tau=0.02,
    learning_rate=1e-3,
    behaviour=0.03,  # without it a plan from random's one room flew past the goal in it
)
EPISODES = 5
REACHED = 100.0
"""A goal counts as reached from this mean return on: a tenth of the episode at the goal."""


@dataclass(frozen=True)
class DemoArgs:
    """Flags of `demo`."""

    frames: int = 200_000
    """Frames that each explorer collects."""
    updates: int = 10_000
    """Gradient steps of each plan."""
    seed: int = 0
    """Seed of everything."""
    out: Path | None = None
    """Folder for runs, plans and picture; the first free of runs/demo, runs/demo-2, ... by default."""
    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class Story:
    """What came of one explorer."""

    data: Dataset
    returns: dict[str, float]
    paths: dict[str, Transitions]

    def to_json(self) -> dict[str, Any]:
        cover = coverage(self.data)
        return {
            "cells": cover["cells"],
            "of": cover["of"],
            "rooms": rooms(self.data),
            "goals_reached": sum(value >= REACHED for value in self.returns.values()),
            "returns": self.returns,
        }


def demo(args: DemoArgs) -> tuple[dict[str, Any], str, Table]:
    """Run the demo; returns its figures, where the picture is, and a table."""
    out = args.out or _first_free(Path("runs"))
    stories = {name: _tell(name, explorer, args, out / name) for name, explorer in EXPLORERS.items()}
    picture = out / "demo.png"
    draw(stories, picture)
    table = Table("explorer", "cells", "rooms", "goals", *(goal.replace("_", " ") for goal in GOALS))
    for name, story in stories.items():
        row = story.to_json()
        returns = [f"{value:.0f}" for value in story.returns.values()]
        table.add_row(
            name,
            f"{row['cells']}/{row['of']}",
            f"{row['rooms']}/4",
            f"{row['goals_reached']}/4",
            *returns,
        )
    found = {name: story.to_json() for name, story in stories.items()}
    text = (
        f"{args.frames} frames each without a reward, then four goals planned from each data set.\n"
        f"Mean return over {EPISODES} episodes, at most 1000; a goal is reached from {REACHED:.0f} on.\n"
        f"Picture: {picture}"
    )
    return {**found, "picture": str(picture)}, text, table


def _tell(name: str, explorer: Explorer, args: DemoArgs, run: Path) -> Story:
    data = pipeline.explore(
        DOMAIN, explorer, frames=args.frames, seed=args.seed, out=run, size="tiny", quiet=False
    )

    def solve(goal: str) -> tuple[float, Transitions]:
        task = f"reach_{goal}"
        plan = pipeline.plan(
            data, task, PLANNER, updates=args.updates, seed=args.seed, out=run / "plans" / task
        )
        value = pipeline.evaluate(plan, episodes=EPISODES, seed=args.seed).mean
        return value, pipeline.rollout(pipeline.make_domain(DOMAIN), plan.policy, seed=args.seed)

    # Networks this small leave cores idle: one goal per core.
    console = Console(stderr=True)
    with (
        console.status(f"plan {len(GOALS)} goals from {name}'s data"),
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        solved = dict(zip(GOALS, pool.map(solve, GOALS), strict=True))
    returns = {goal: value for goal, (value, _) in solved.items()}
    return Story(data, returns, {goal: path for goal, (_, path) in solved.items()})


def rooms(data: Dataset) -> int:
    """In how many of the four rooms some state lies: beyond both walls' thickness."""
    x, y = data.values("x"), data.values("y")
    beyond = [(sx * x > WALL_HALF_THICKNESS) & (sy * y > WALL_HALF_THICKNESS) for sx, sy in _corners()]
    return sum(bool(room.any()) for room in beyond)


def _corners() -> Iterable[tuple[int, int]]:
    return itertools.product((-1, 1), (-1, 1))


def draw(stories: dict[str, Story], path: Path) -> None:
    """One picture: the cells each explorer has been in, and the paths planned from its data."""
    from matplotlib.figure import Figure  # slow to import, and only drawn here

    figure = Figure(figsize=(9, 4.9), layout="constrained")
    for axes, (name, story) in zip(figure.subplots(1, len(stories)), stories.items(), strict=True):
        _draw_maze(axes)
        seen = occupied(story.data)
        extent = (-HALF_ARENA, HALF_ARENA, -HALF_ARENA, HALF_ARENA)
        axes.imshow(
            np.where(seen, 1.0, np.nan).T, extent=extent, origin="lower", cmap="Blues", vmin=0, vmax=4
        )
        for number, (goal, (x, y)) in enumerate(GOALS.items()):
            axes.plot(
                x, y, "o", color=f"C{number + 1}", markersize=9, markerfacecolor="none", markeredgewidth=2
            )
            walked = story.paths[goal]
            label = f"{goal.replace('_', ' ')}: {story.returns[goal]:.0f}"
            axes.plot(walked["x"], walked["y"], color=f"C{number + 1}", linewidth=1.5, label=label)
        axes.set_title(f"{name}: {int(seen.sum())} of {seen.size} cells")
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=2, frameon=False, title="return per goal"
        )
    figure.suptitle("Where each explorer has been (blue), and the paths planned from its data")
    figure.savefig(path, dpi=110)


def _draw_maze(axes: Any) -> None:
    from matplotlib.patches import Rectangle

    long, thin = WALL_HALF_LENGTH, WALL_HALF_THICKNESS
    for half_x, half_y in ((long, thin), (thin, long)):
        axes.add_patch(Rectangle((-half_x, -half_y), 2 * half_x, 2 * half_y, color="0.3", zorder=3))
    axes.set_xlim(-HALF_ARENA, HALF_ARENA)
    axes.set_ylim(-HALF_ARENA, HALF_ARENA)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])


def _first_free(folder: Path) -> Path:
    names = itertools.chain(["demo"], (f"demo-{number}" for number in itertools.count(2)))
    return next(folder / name for name in names if not (folder / name).exists())
