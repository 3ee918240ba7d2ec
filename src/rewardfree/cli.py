"""The command line: the typed configs are the flags, and each command mirrors a function of the pipeline."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.markup import escape
from rich.table import Table

from rewardfree import pipeline, registry
from rewardfree.bench.cli import bench, report
from rewardfree.command import algorithm, peek, read, show
from rewardfree.data import files
from rewardfree.data.dataset import Dataset
from rewardfree.demo import DemoArgs, demo
from rewardfree.durable import StoppedError
from rewardfree.errors import UserError, unknown
from rewardfree.exact.cli import exact
from rewardfree.exact.mdps import MDPS
from rewardfree.exchange.cli import export, import_
from rewardfree.pages import pages, plural
from rewardfree.rewards.page import lines
from rewardfree.rewards.resolve import resolve
from rewardfree.sizes import SIZES, SizeName, resize

ALGORITHMS = ("explorer", "planner", "oracle")
EXACT = ("algorithm", "function_class")


@dataclass(frozen=True)
class ExploreArgs:
    """Flags of `explore`."""

    domain: tyro.conf.Positional[str]
    """The domain to explore; `rewardfree list` names them. Or gymnasium:ID, gymnasium:module:factory."""
    explorer: str = "gfa-rfe"
    """The explorer; the flags below are its own."""
    preset: str | None = None
    """A named setting of the explorer; the explorer's first one by default."""
    size: SizeName = "compact"
    """Widths and budget."""
    frames: int | None = None
    """Frames to collect; the size's budget by default."""
    seed: int = 0
    """Seed: the same one gives the same data."""
    out: Path | None = None
    """Folder of the run; runs/DOMAIN-EXPLORER-SEED by default."""
    memory: float | None = None
    """Gigabytes for the replay, beyond which it is read from disk; half of the machine's by default."""
    resume: bool = False
    """Continue the run in that folder; it ends as if it had not been stopped."""
    tensorboard: bool = False
    """Write TensorBoard logs too."""
    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class PlanArgs:
    """Flags of `plan`."""

    run: tyro.conf.Positional[Path]
    """Folder of the run whose data to plan from."""
    reward: str
    """A task of the domain, an expression over its quantities, or path/to/file.py:function."""
    planner: str = "ddpg-twin"
    """The planner; the flags below are its own."""
    preset: str | None = None
    """A named setting of the planner; the planner's first one by default."""
    size: SizeName | None = None
    """Widths and budget; those of the run by default."""
    updates: int | None = None
    """Gradient steps; the size's budget by default."""
    seed: int = 0
    """Seed: the same one gives the same policy."""
    out: Path | None = None
    """Folder of the plan; RUN/plans/REWARD by default."""
    evaluate_every: int | None = None
    """Updates after which to run the policy in the simulator, to see its return grow; a multiple of 250."""
    memory: float | None = None
    """Gigabytes for the replay, beyond which it is read from disk; half of the machine's by default."""
    resume: bool = False
    """Continue the plan in that folder; it ends as if it had not been stopped."""
    tensorboard: bool = False
    """Write TensorBoard logs too."""
    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class EvaluateArgs:
    """Flags of `evaluate`."""

    plan: tyro.conf.Positional[Path]
    """Folder of the plan."""
    episodes: int = 10
    """Episodes to run."""
    seed: int = 0
    """Seed of the starts."""
    video: Path | None = None
    """Film the first episode to this mp4 file."""
    reward: str | None = None
    """The reward to count; the plan's own by default."""
    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class InspectArgs:
    """Flags of `inspect`."""

    run: tyro.conf.Positional[Path]
    """Folder of the run."""
    reward: tuple[str, ...] = ()
    """Rewards to look for in the data; the domain's tasks by default."""
    html: Path | None = None
    """Write the page with its plots to this file."""
    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class CheckArgs:
    """Flags of `check`."""

    run: tyro.conf.Positional[Path]
    """Folder of the run."""
    repair: bool = False
    """First drop what is incomplete or damaged, and say what it was."""
    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class ListArgs:
    """Flags of `list`."""

    what: tyro.conf.Positional[str | None] = None
    """A role (explorers, planners, oracles, domains, algorithms, function-classes) or a plug-in."""
    json: bool = False
    """Print one JSON object."""


def _explore(argv: Sequence[str]) -> None:
    """Explore a domain without a reward and keep the data."""
    args, explorer = _sized(ExploreArgs, "explorer", argv, "explore", _explore.__doc__, "compact")
    registry.load("domain", args.domain)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", args.domain)
    out = args.out or Path("runs") / f"{name}-{args.explorer}-{args.seed}"
    frames = SIZES[args.size].frames if args.frames is None else args.frames
    data = pipeline.explore(
        args.domain,
        explorer,
        frames=frames,
        seed=args.seed,
        out=out,
        size=args.size,
        resume=args.resume,
        quiet=False,
        memory=args.memory,
        tensorboard=args.tensorboard,
    )
    record = files.read_json(out / "run.json")
    shown = {key: record[key] for key in ("frames", "episodes", "updates", "seconds")}
    text = f"{data.frames} frames in {data.episodes} episodes, {shown['seconds']:.0f} s: {out}"
    show({"run": str(out), **shown}, args.json, text)


def _plan(argv: Sequence[str]) -> None:
    """Solve one reward from a run's data, offline."""
    positional = [word for word in argv if not word.startswith("-")]
    args, planner = _sized(PlanArgs, "planner", argv, "plan", _plan.__doc__, _size_of(positional))
    size: SizeName = args.size or _size_of([str(args.run)])
    data = Dataset.open(args.run)
    reward = resolve(args.reward, data.spec)
    out = args.out or args.run / "plans" / reward.slug
    pipeline.plan(
        data,
        reward,
        planner,
        updates=SIZES[size].updates if args.updates is None else args.updates,
        seed=args.seed,
        out=out,
        evaluate_every=args.evaluate_every,
        resume=args.resume,
        quiet=False,
        memory=args.memory,
        tensorboard=args.tensorboard,
    )
    record = files.read_json(out / "plan.json")
    shown = {"plan": str(out), "updates": record["updates"], "seconds": record["seconds"]}
    show(shown, args.json, f"{record['updates']} updates, {record['seconds']:.0f} s: {out}")


def _evaluate(argv: Sequence[str]) -> None:
    """Run a plan's policy in the simulator."""
    args = read(EvaluateArgs, argv, "evaluate", _evaluate.__doc__)
    plan = pipeline.Plan.load(args.plan, args.reward)
    result = pipeline.evaluate(plan, episodes=args.episodes, seed=args.seed, video=args.video)
    film = f"; film: {args.video}" if args.video else ""
    show(result.to_json(), args.json, f"return {result}{film}")


def _inspect(argv: Sequence[str]) -> None:
    """Can this data solve it? Coverage, how much of each reward it has seen, a verdict, and its plans."""
    args = read(InspectArgs, argv, "inspect", _inspect.__doc__)
    found = pipeline.inspect(args.run, list(args.reward) or None, args.html, quiet=False)
    if args.html is not None:
        found["html"] = str(args.html)
    show(found, args.json, "\n".join(lines(found)))


def _check(argv: Sequence[str]) -> None:
    """Verify a run's checksums, and repeat sampled episodes with the installed simulator."""
    args = read(CheckArgs, argv, "check", _check.__doc__)
    dropped = pipeline.repair(args.run) if args.repair else []
    found = pipeline.check(args.run) | {"dropped": dropped}
    text = [f"{found['shards']} shards, {found['episodes']} episodes, {found['frames']} frames: intact"]
    if (proven := found["round_trip"]["shards"]) > 0:
        text.append(
            f"round trip proven when {proven} of {found['shards']} shards were written,"
            f" largest error of a reward {found['round_trip']['worst']:.2g}"
        )
    recorded, installed = found["versions"]["recorded"], found["versions"]["installed"]
    changed = [f"{name} {recorded[name]} -> {installed[name]}" for name in found["changed"]]
    text.append(f"versions: {', '.join(changed) if changed else 'those it was recorded with'}")
    for one in found["repeated"]:
        same = "repeats" if one["same_until"] == one["steps"] else f"drifts after {one['same_until']} steps"
        text.append(f"episode {one['episode']} {same}: positions differ by {one['drift']:.2g} at most")
    text += [f"dropped {one}" for one in dropped] or (["nothing to drop"] if args.repair else [])
    show(found, args.json, "\n".join(text))


def _list(argv: Sequence[str]) -> None:
    """List domains with their tasks, explorers, planners, the exact algorithms; or read about one."""
    args = read(ListArgs, argv, "list", _list.__doc__)
    if args.what is not None:
        text = pages(args.what)
        print(json.dumps({"page": text}) if args.json else text, end="")
        return
    domains = {name: pipeline.make_domain(name) for name in registry.names("domain")}
    found = {
        "domains": {
            name: {"tasks": list(domain.tasks), "quantities": list(domain.spec.quantities)}
            for name, domain in domains.items()
        },
        **{f"{role}s": registry.names(role) for role in ALGORITHMS},
        "exact": {"mdps": list(MDPS), **{plural(role): registry.names(role) for role in EXACT}},
    }
    first = Table("domain", "what it is", "tasks", "quantities")
    for name, domain in domains.items():
        tasks, quantities = ", ".join(domain.tasks), ", ".join(domain.spec.quantities)
        first.add_row(name, escape(registry.summary(type(domain))), tasks, quantities)
    tables = [first]
    for role in (*ALGORITHMS, *EXACT):
        title = f"exact {role.replace('_', ' ')}" if role in EXACT else role
        table = Table(title, "what it is", "presets")
        for name in registry.names(role):
            cls = registry.load(role, name)
            table.add_row(name, escape(registry.summary(cls)), ", ".join(getattr(cls, "presets", dict)()))
        tables.append(table)
    mdps = Table("exact MDP", "what it is")
    for name, builder in MDPS.items():
        mdps.add_row(name, escape(registry.summary(builder)))
    show(found, args.json, "", *tables, mdps)


def _demo(argv: Sequence[str]) -> None:
    """The whole story in minutes: explore a maze, plan four goals, compare with random actions."""
    args = read(DemoArgs, argv, "demo", _demo.__doc__)
    found, text, table = demo(args)
    show(found, args.json, text, table)


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "explore": _explore,
    "plan": _plan,
    "evaluate": _evaluate,
    "inspect": _inspect,
    "check": _check,
    "export": export,
    "import": import_,
    "bench": bench,
    "report": report,
    "list": _list,
    "exact": exact,
    "demo": _demo,
}


RESUMED = ("explore", "plan")
"""Commands that go on with --resume; a benchmark goes on by itself."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. 0 on success, 2 with one line on a user's mistake."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: rewardfree COMMAND ...   (rewardfree COMMAND --help)\n")
        print("\n".join(f"  {name:<10}{function.__doc__}" for name, function in COMMANDS.items()))
        return 0
    try:
        if argv[0] not in COMMANDS:
            raise unknown("command", argv[0], COMMANDS)
        COMMANDS[argv[0]](argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads, `head` perhaps, has seen enough; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except StoppedError as stopped:
        resume = ["--resume"] if argv[0] in RESUMED and "--resume" not in argv else []
        again = shlex.join([*argv, *resume])
        print(f"rewardfree: {stopped}: rewardfree {again}", file=sys.stderr)
        return 130
    except UserError as error:
        print(f"rewardfree: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("rewardfree: stopped", file=sys.stderr)
        return 130
    return 0


def _sized(
    kind: type, role: str, argv: Sequence[str], command: str, description: str | None, default: SizeName
) -> tuple[Any, Any]:
    """Parse a command that runs an algorithm at a size."""
    size = peek(argv, "size")["size"]
    return algorithm(
        kind,
        role,
        argv,
        command,
        description,
        lambda config: resize(config, size if size in SIZES else default),
    )


def _size_of(runs: Sequence[str]) -> SizeName:
    """The size that a run was made with."""
    for run in runs:
        record = Path(run) / "run.json"
        if record.is_file() and (size := files.read_json(record).get("size")) in SIZES:
            return size
    return "compact"
