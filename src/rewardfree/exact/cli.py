"""`rewardfree exact compare | explore | plan`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from rewardfree import registry
from rewardfree.command import algorithm, preset, read, show
from rewardfree.errors import UserError, unknown
from rewardfree.exact.compare import Comparison, compare, interval, plot
from rewardfree.exact.explore import explore, explore_until
from rewardfree.exact.interfaces import Algorithm
from rewardfree.exact.mdps import load
from rewardfree.exact.records import Record, reward_named, write_policy

DEFAULT = "gfa-rfe,gfa-rfe:unweighted,rf-express,rf-ucrl,uniform"


@dataclass(frozen=True)
class CompareArgs:
    """Flags of `exact compare`."""

    mdp: str = "riverswim-8"
    """An MDP of `rewardfree list`, gymnasium:ID, or a .npz file of arrays."""
    algorithms: str = DEFAULT
    """Algorithms, separated by commas; NAME:PRESET for a preset."""
    episodes: int = 600
    """Episodes of exploration."""
    seeds: int = 10
    """Seeds 0, 1, ... so many."""
    horizon: int | None = None
    """Stages of an episode; the MDP's own by default."""
    plot: Path | None = None
    """Where to draw the curves; runs/exact-MDP.png by default."""
    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class ExploreArgs:
    """Flags of `exact explore`."""

    mdp: str = "riverswim-8"
    """An MDP of `rewardfree list`, gymnasium:ID, or a .npz file of arrays."""
    algorithm: str = "gfa-rfe"
    """The algorithm; the flags below are its own."""
    preset: str | None = None
    """A named setting of the algorithm; its first one by default."""
    episodes: int = 600
    """Episodes of exploration; at most so many with --until."""
    until: float | None = None
    """Stop when the bound on the sub-optimality is at most this, for all rewards or those of --rewards."""
    rewards: tuple[str, ...] = ()
    """Rewards that --until is about: a name of the MDP's, reach-STATE, random-NUMBER, or a .npy file."""
    horizon: int | None = None
    """Stages of an episode; the MDP's own by default."""
    seed: int = 0
    """Seed: the same one gives the same data."""
    out: Path | None = None
    """Folder of the run; runs/exact-MDP-ALGORITHM-SEED by default."""
    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class PlanArgs:
    """Flags of `exact plan`."""

    run: tyro.conf.Positional[Path]
    """Folder of the run."""
    reward: str
    """A name of the MDP's, reach-STATE, random-NUMBER, or a .npy file of shape (S,), (S, A) or (H, S, A)."""
    out: Path | None = None
    """Where the policy goes; RUN/plans/REWARD.safetensors by default."""
    json: bool = False
    """Print one JSON object."""


def exact(argv: Sequence[str]) -> None:
    """Algorithm 1 and its peers in small MDPs, against the true optimum: exact compare, explore, plan."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: rewardfree exact COMMAND ...   (rewardfree exact COMMAND --help)\n")
        print("\n".join(f"  {name:<10}{function.__doc__}" for name, function in COMMANDS.items()))
        return
    if argv[0] not in COMMANDS:
        raise unknown("command", f"exact {argv[0]}", [f"exact {name}" for name in COMMANDS])
    COMMANDS[argv[0]](argv[1:])


def _compare(argv: Sequence[str]) -> None:
    """Explore with several algorithms and measure how far from optimal their plans are, over many rewards."""
    args = read(CompareArgs, argv, "exact compare", _compare.__doc__)
    mdp = load(args.mdp, args.horizon)
    algorithms = {name: _algorithm(name) for name in args.algorithms.split(",") if name}
    if not algorithms:
        raise unknown("algorithm", "", registry.names("algorithm"))
    with Progress(console=Console(stderr=True), disable=args.json) as bar:
        tasks = {name: bar.add_task(name, total=args.episodes) for name in algorithms}
        found = compare(
            mdp,
            algorithms,
            args.episodes,
            range(args.seeds),
            progress=lambda name, k: bar.update(tasks[name], completed=k),
        )
    path = args.plot or Path("runs") / f"exact-{mdp.name}.png"
    plot(found, path)
    problem = mdp.problem
    text = (
        f"{mdp.name}: {problem.states} states, {problem.actions} actions, {problem.horizon} stages;"
        f" {args.episodes} episodes, {args.seeds} seeds, {found.rewards} rewards; plot: {path}\n"
        "V* - V^pi over the rewards, planned with one planner for all algorithms or with its own;"
        " ± is the 95 % interval over seeds; seen: the share of reachable (h, s, a); bound: the"
        " algorithm's own, for every reward; s: seconds of exploring"
    )
    show(found.to_json() | {"plot": str(path)}, args.json, text, _table(found))


def _table(found: Comparison) -> Table:
    table = Table("algorithm", "max", "max, own", "mean", "seen", "bound", "s", box=SIMPLE)
    for name, curves in found.algorithms.items():
        table.add_row(
            name,
            _cell(curves.max_suboptimality[-1]),
            _cell(curves.own_max_suboptimality[-1]),
            f"{np.mean(curves.mean_suboptimality[-1]):.3f}",
            f"{np.mean(curves.coverage[-1]):.0%}",
            f"{np.mean(curves.certificate[-1]):.3g}" if curves.certificate else "-",
            f"{curves.seconds:.1f}",
        )
    return table


def _cell(values: np.ndarray) -> str:
    mean, low, _ = interval(values)
    return f"{mean:.3f} ±{mean - low:.3f}" if len(values) > 1 else f"{mean:.3f}"


def _explore(argv: Sequence[str]) -> None:
    """Explore one MDP with one algorithm, and keep the data."""
    args, config = algorithm(ExploreArgs, "algorithm", argv, "exact explore", _explore.__doc__)
    mdp = load(args.mdp, args.horizon)
    out = args.out or Path("runs") / f"exact-{mdp.name}-{args.algorithm}-{args.seed}"
    if (out / "run.json").exists():
        raise UserError(f"{out} holds a run already; choose another --out")
    record = Record(args.mdp, args.horizon, config, args.episodes, args.seed)
    started = time.perf_counter()
    if args.until is None:
        if args.rewards:
            raise UserError("--rewards are what --until is about; give --until EPSILON, or leave them out")
        learner = explore(mdp, config, args.episodes, [args.seed], record)
        bound = learner.certificate()
    else:
        rewards = np.stack([reward_named(mdp, name) for name in args.rewards]) if args.rewards else None
        bound = explore_until(args.until, mdp, config, args.episodes, rewards, [args.seed], record).bound
    seconds = time.perf_counter() - started
    record.write(out, mdp)
    value = {
        "run": str(out),
        "episodes": record.episodes,
        "bound": None if bound is None else float(bound[0]),
        "certified": config.certified,
        "reached": None if args.until is None or bound is None else bool(bound[0] <= args.until),
        "seconds": seconds,
    }
    text = f"{record.episodes} episodes, {seconds:.1f} s: {out}"
    if bound is not None:
        about = f"the {len(args.rewards)} rewards" if args.rewards else "every reward"
        text += f"\nV* - V^pi is at most {bound[0]:.4g} for {about}{_heuristic(config)}"
    if value["reached"] is False:
        text += f"\nthat is above {args.until:g} after all {args.episodes} episodes: more are needed"
    show(value, args.json, text)


def _plan(argv: Sequence[str]) -> None:
    """Plan for one reward from an exploration's data, with a bound on how far from optimal the plan is."""
    args = read(PlanArgs, argv, "exact plan", _plan.__doc__)
    record, checksums = Record.read(args.run)
    mdp = load(record.mdp, record.horizon)
    reward = reward_named(mdp, args.reward)
    plan = record.replay(mdp, checksums).plan(reward[None])
    best = mdp.problem.mean_start(mdp.optimal(reward).V[0])
    value = mdp.problem.mean_start(mdp.value(plan.policy[0, 0], reward)[0])
    out = args.out or args.run / "plans" / f"{Path(args.reward).stem}.safetensors"
    write_policy(out, plan.policy[0, 0])
    bound = None if plan.bound is None else float(plan.bound[0, 0])
    found = {
        "plan": str(out),
        "estimate": float(plan.value[0, 0]),
        "bound": bound,
        "certified": record.algorithm.certified,
        "value": float(value),
        "optimal": float(best),
        "suboptimality": float(best - value),
    }
    text = f"value {value:.4f} of {best:.4f} (estimated {plan.value[0, 0]:.4f}): {out}"
    if bound is not None:
        text += f"\nfrom the data alone: at most {bound:.4g} below the optimum{_heuristic(record.algorithm)}"
    show(found, args.json, text)


def _algorithm(name: str) -> Algorithm:
    stem, _, chosen = name.partition(":")
    found: Algorithm = preset(registry.load("algorithm", stem), chosen or None)
    return found


def _heuristic(config: Algorithm) -> str:
    return "" if config.certified else " (a heuristic: with these constants nothing is proven)"


COMMANDS: dict[str, Callable[[Sequence[str]], Any]] = {
    "compare": _compare,
    "explore": _explore,
    "plan": _plan,
}
