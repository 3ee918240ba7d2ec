"""What every command does: read its flags from a typed config, and print text or one JSON object."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from rewardfree import registry
from rewardfree.errors import unknown


def read(kind: Any, argv: Sequence[str], command: str, description: str | None) -> Any:
    """The flags of a command, as its dataclass."""
    return tyro.cli(kind, args=argv, prog=f"rewardfree {command}", description=description)


def algorithm(
    kind: type,
    role: str,
    argv: Sequence[str],
    command: str,
    description: str | None,
    prepare: Callable[[Any], Any] = lambda config: config,
) -> tuple[Any, Any]:
    """The flags of a command that runs an algorithm: its name and preset decide which others there are."""
    first = peek(argv, role, "preset")
    defaults: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(kind)}
    cls = registry.load(role, first[role] or defaults[role])
    config = prepare(preset(cls, first["preset"]))
    parts = {
        field.name: registry.name_of(getattr(config, field.name))
        for field in dataclasses.fields(config)
        if field.name in registry.ROLES
    }
    chosen = peek(argv, *parts)
    for name, now in parts.items():
        if chosen[name] and chosen[name] != now:
            config = dataclasses.replace(config, **{name: registry.load(name, chosen[name])()})
    omit = tyro.conf.OmitArgPrefixes
    choices = [
        (name, _documented(str, f"The {name.replace('_', ' ')}: {', '.join(registry.names(name))}."), now)
        for name, now in parts.items()
    ]
    parser = dataclasses.make_dataclass(
        "Command",
        [
            ("command", omit[kind]),
            ("parts", omit[dataclasses.make_dataclass("Parts", choices)]),
            ("settings", omit[cls], dataclasses.field(default=config)),
        ],
    )
    parsed = read(parser, argv, command, description)
    return parsed.command, parsed.settings


def preset(cls: Any, name: str | None) -> Any:
    """A preset of an algorithm by its name; the first one if there is none."""
    presets = cls.presets()
    if name is not None and name not in presets:
        raise unknown("preset", name, presets)
    return presets[name or next(iter(presets))]


def peek(argv: Sequence[str], *names: str) -> dict[str, Any]:
    """The values of some flags, before the others are known."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in names:
        flags = {f"--{name}", f"--{name.replace('_', '-')}"}
        parser.add_argument(*sorted(flags), dest=name, nargs="?")
    return vars(parser.parse_known_args(list(argv))[0])


def show(value: dict[str, Any], as_json: bool, text: str, *tables: Table) -> None:
    """Print one JSON object, or text and tables."""
    if as_json:
        print(json.dumps(value))
        return
    console = Console()
    if text:
        console.print(text, highlight=False, soft_wrap=True, markup=False)  # [x] is text, not a style
    for table in tables:
        console.print(table)


def _documented(kind: type, text: str) -> Any:
    return Annotated[kind, tyro.conf.arg(help=text)]
