"""Finds plug-ins by file: a file's name is the plug-in's name, and nothing has to be registered.

Besides the package's own folders, every folder named in REWARDFREE_PLUGINS (separated like PATH) may hold
`explorers/`, `planners/`, `oracles/`, `domains/`, `exact/peers/` and `exact/classes/` with further files.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import inspect
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from rewardfree.errors import UserError, unknown
from rewardfree.exact.interfaces import Algorithm, FunctionClass
from rewardfree.interfaces import Domain, Explorer, Oracle, Planner

ROLES: dict[str, type] = {
    "explorer": Explorer,
    "planner": Planner,
    "oracle": Oracle,
    "domain": Domain,
    "algorithm": Algorithm,
    "function_class": FunctionClass,
}
_FILES: dict[str, tuple[str, ...]] = {
    **{role: (f"{role}s/[!_]*.py",) for role in ("explorer", "planner", "oracle", "domain")},
    "algorithm": ("exact/gfa_rfe.py", "exact/peers/[!_]*.py"),
    "function_class": ("exact/classes/[!_]*.py",),
}
"""Where a role's plug-ins live, below this package and below each folder of plug-ins."""
_PACKAGE = Path(__file__).parent


FAMILIES = {"domain": ("gymnasium",)}
"""Plug-ins that stand for many: FAMILY:MEMBER is a name, FAMILY alone is not."""


def names(role: str) -> list[str]:
    """The names of a role's plug-ins. Nothing is imported."""
    return sorted(name for name in _files(role) if name not in FAMILIES.get(role, ()))


def load(role: str, name: str) -> Any:
    """The class of a plug-in. Raises UserError with the near matches if there is none."""
    found = _files(role)
    family, colon, member = name.partition(":")
    if colon and family in FAMILIES.get(role, ()):
        many: Any = _class_in(*found[family], role)
        return many.named(member)
    if name not in found or name in FAMILIES.get(role, ()):
        known = [f"{one}:ID" if one in FAMILIES.get(role, ()) else one for one in found]
        raise unknown(role, name, known)
    return _class_in(*found[name], role)


def name_of(plugin: object) -> str:
    """The name under which a plug-in's class, or an instance of it, is found."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    role = next(role for role, base in ROLES.items() if issubclass(cls, base))
    return _cli_name(role, cls.__module__.rpartition(".")[2])


def to_json(config: Any) -> dict[str, Any]:
    """An algorithm's name and fields, as plain values."""
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return {"name": name_of(config)} | {
        name: to_json(value) if dataclasses.is_dataclass(value) else value for name, value in fields.items()
    }


def from_json(role: str, value: Mapping[str, Any]) -> Any:
    """The algorithm that `to_json` wrote down."""
    fields = dict(value)
    cls = load(role, fields.pop("name"))
    nested = {name: from_json(name, inner) for name, inner in fields.items() if isinstance(inner, Mapping)}
    try:
        return cls(**(fields | nested))
    except (TypeError, ValueError) as error:
        raise UserError(f"the configuration of {role} '{value['name']}' does not fit: {error}") from error


def summary(plugin: object) -> str:
    """The first line of a plug-in's documentation."""
    return (inspect.getdoc(plugin) or "").partition("\n")[0]


def _cli_name(role: str, stem: str) -> str:
    return stem if role == "domain" else stem.replace("_", "-")


def _files(role: str) -> dict[str, tuple[Path, Path]]:
    """The folder of plug-ins and the file in it, by name."""
    extra = [Path(folder) for folder in os.environ.get("REWARDFREE_PLUGINS", "").split(os.pathsep) if folder]
    found: dict[str, tuple[Path, Path]] = {}
    for folder in [_PACKAGE, *extra]:
        for path in sorted(path for pattern in _FILES[role] for path in folder.glob(pattern)):
            name = _cli_name(role, path.stem)
            if name in found:
                raise UserError(f"two {role}s are called '{name}': {found[name][1]} and {path}; rename one")
            found[name] = folder, path
    return found


def _class_in(folder: Path, path: Path, role: str) -> type:
    module = _import(folder, path)
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and issubclass(value, ROLES[role])
    ]
    if len(found) != 1:
        raise UserError(
            f"{path} must define one class that inherits from {ROLES[role].__name__}, not {len(found)}"
        )
    return found[0]


@functools.cache
def _import(folder: Path, path: Path) -> ModuleType:
    inside = ".".join(path.relative_to(folder).with_suffix("").parts)
    if folder == _PACKAGE:
        return importlib.import_module(f"rewardfree.{inside}")
    name = f"rewardfree_plugins.{inside}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
