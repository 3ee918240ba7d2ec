"""The command line: the typed configs are the flags, and each command mirrors a function of the pipeline."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from rewardfree import pipeline, registry
from rewardfree.data import files
from rewardfree.data.dataset import Dataset
from rewardfree.demo import DemoArgs, demo
from rewardfree.errors import UserError, unknown
from rewardfree.pages import pages
from rewardfree.rewards.resolve import resolve
from rewardfree.sizes import SIZES, SizeName, resize

ALGORITHMS = ("explorer", "planner", "oracle")


@dataclass(frozen=True)
class ExploreArgs:
    """Flags of `explore`."""

    domain: tyro.conf.Positional[str]
    """The domain to explore; `rewardfree list` names them."""
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
    """A task of the domain, or path/to/file.py:function."""
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
    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class ListArgs:
    """Flags of `list`."""

    what: tyro.conf.Positional[str | None] = None
    """A role (explorers, planners, oracles, domains) or a plug-in, to read about."""
    json: bool = False
    """Print one JSON object."""


def _explore(argv: Sequence[str]) -> None:
    """Explore a domain without a reward and keep the data."""
    args, explorer = _parse(ExploreArgs, "explorer", argv, "compact")
    registry.load("domain", args.domain)
    out = args.out or Path("runs") / f"{args.domain}-{args.explorer}-{args.seed}"
    frames = SIZES[args.size].frames if args.frames is None else args.frames
    data = pipeline.explore(
        args.domain,
        explorer,
        frames=frames,
        seed=args.seed,
        out=out,
        size=args.size,
        quiet=False,
        tensorboard=args.tensorboard,
    )
    record = files.read_json(out / "run.json")
    shown = {key: record[key] for key in ("frames", "episodes", "updates", "seconds")}
    text = f"{data.frames} frames in {data.episodes} episodes, {shown['seconds']:.0f} s: {out}"
    _print({"run": str(out), **shown}, args.json, text)


def _plan(argv: Sequence[str]) -> None:
    """Solve one reward from a run's data, offline."""
    first = _peek(argv, "size")
    positional = [word for word in argv if not word.startswith("-")]
    args, planner = _parse(PlanArgs, "planner", argv, first["size"] or _size_of(positional))
    size: SizeName = args.size or _size_of([str(args.run)])
    data = Dataset.open(args.run)
    reward = resolve(args.reward, registry.load("domain", data.spec.domain).tasks)
    out = args.out or args.run / "plans" / reward.slug
    pipeline.plan(
        data,
        reward,
        planner,
        updates=SIZES[size].updates if args.updates is None else args.updates,
        seed=args.seed,
        out=out,
        quiet=False,
        tensorboard=args.tensorboard,
    )
    record = files.read_json(out / "plan.json")
    shown = {"plan": str(out), "updates": record["updates"], "seconds": record["seconds"]}
    _print(shown, args.json, f"{record['updates']} updates, {record['seconds']:.0f} s: {out}")


def _evaluate(argv: Sequence[str]) -> None:
    """Run a plan's policy in the simulator."""
    args = _cli(EvaluateArgs, argv, "evaluate", _evaluate.__doc__)
    plan = pipeline.Plan.load(args.plan, args.reward)
    result = pipeline.evaluate(plan, episodes=args.episodes, seed=args.seed, video=args.video)
    film = f"; film: {args.video}" if args.video else ""
    _print(result.to_json(), args.json, f"return {result}{film}")


def _inspect(argv: Sequence[str]) -> None:
    """Show what a run's data holds: coverage, and how much of each reward it has seen."""
    args = _cli(InspectArgs, argv, "inspect", _inspect.__doc__)
    found = pipeline.inspect(args.run, list(args.reward) or None)
    table = Table("reward", "mean", "max", "share non-zero")
    for name, row in found["rewards"].items():
        table.add_row(name, f"{row['mean']:.4f}", f"{row['max']:.4f}", f"{row['nonzero']:.2%}")
    cover = found["coverage"]
    text = (
        f"{found['domain']}: {found['frames']} frames in {found['episodes']} episodes\n"
        f"coverage: {cover['cells']} of {cover['of']} cells of {' x '.join(cover['quantities'])}"
    )
    if found["skills"]["length"]:
        text += (
            f"\nskills: {found['skills']['distinct']} different ones of length {found['skills']['length']}"
        )
    _print(found, args.json, text, table)


def _list(argv: Sequence[str]) -> None:
    """List domains with their tasks and quantities, explorers, planners and oracles; or read about one."""
    args = _cli(ListArgs, argv, "list", _list.__doc__)
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
    }
    first = Table("domain", "what it is", "tasks", "quantities")
    for name, domain in domains.items():
        tasks, quantities = ", ".join(domain.tasks), ", ".join(domain.spec.quantities)
        first.add_row(name, registry.summary(type(domain)), tasks, quantities)
    tables = [first]
    for role in ALGORITHMS:
        table = Table(role, "what it is", "presets")
        for name in registry.names(role):
            cls = registry.load(role, name)
            table.add_row(name, registry.summary(cls), ", ".join(getattr(cls, "presets", dict)()))
        tables.append(table)
    _print(found, args.json, "", *tables)


def _demo(argv: Sequence[str]) -> None:
    """The whole story in minutes: explore a maze, plan four goals, compare with random actions."""
    args = _cli(DemoArgs, argv, "demo", _demo.__doc__)
    found, text, table = demo(args)
    _print(found, args.json, text, table)


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "explore": _explore,
    "plan": _plan,
    "evaluate": _evaluate,
    "inspect": _inspect,
    "list": _list,
    "demo": _demo,
}


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
    except UserError as error:
        print(f"rewardfree: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("rewardfree: stopped", file=sys.stderr)
        return 130
    return 0


def _parse(kind: type, role: str, argv: Sequence[str], default_size: SizeName) -> tuple[Any, Any]:
    """Parse a command that runs an algorithm: its name, preset and size decide which flags there are."""
    first = _peek(argv, role, "preset", "size")
    defaults: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(kind)}
    cls = registry.load(role, first[role] or defaults[role])
    presets = cls.presets()
    preset = first["preset"] or next(iter(presets))
    if preset not in presets:
        raise unknown("preset", preset, presets)
    size = first["size"] or default_size
    config = resize(presets[preset], size if size in SIZES else default_size)
    parts = {
        field.name: registry.name_of(getattr(config, field.name))
        for field in dataclasses.fields(config)
        if field.name in registry.ROLES
    }
    chosen = _peek(argv, *parts)
    for name, now in parts.items():
        if chosen[name] and chosen[name] != now:
            config = dataclasses.replace(config, **{name: registry.load(name, chosen[name])()})
    omit = tyro.conf.OmitArgPrefixes
    choices = [
        (name, _documented(str, f"The {name}: {', '.join(registry.names(name))}."), now)
        for name, now in parts.items()
    ]
    parser = dataclasses.make_dataclass(
        "Command",
        [
            ("command", omit[kind]),
            ("parts", omit[dataclasses.make_dataclass("Parts", choices)]),
            ("algorithm", omit[cls], dataclasses.field(default=config)),
        ],
    )
    parsed = _cli(parser, argv, "explore" if role == "explorer" else "plan", COMMANDS_DOC[role])
    return parsed.command, parsed.algorithm


def _documented(kind: type, text: str) -> Any:
    return Annotated[kind, tyro.conf.arg(help=text)]


COMMANDS_DOC = {"explorer": _explore.__doc__, "planner": _plan.__doc__}


def _cli(kind: Any, argv: Sequence[str], command: str, description: str | None) -> Any:
    return tyro.cli(kind, args=argv, prog=f"rewardfree {command}", description=description)


def _peek(argv: Sequence[str], *names: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in names:
        parser.add_argument(f"--{name}", nargs="?")
    return vars(parser.parse_known_args(list(argv))[0])


def _size_of(runs: Sequence[str]) -> SizeName:
    """The size that a run was made with."""
    for run in runs:
        record = Path(run) / "run.json"
        if record.is_file() and (size := files.read_json(record).get("size")) in SIZES:
            return size
    return "compact"


def _print(value: dict[str, Any], as_json: bool, text: str, *tables: Table) -> None:
    if as_json:
        print(json.dumps(value))
        return
    console = Console()
    if text:
        console.print(text, highlight=False, soft_wrap=True)
    for table in tables:
        console.print(table)
