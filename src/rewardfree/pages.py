"""A page about each plug-in, in Markdown, from its own docstrings: they cannot drift apart."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from rewardfree import registry
from rewardfree.errors import unknown
from rewardfree.explorers._explorer import ActorCriticExplorer
from rewardfree.interfaces import Domain
from rewardfree.planners._ddpg import DdpgFamily

SHARED: dict[str, type] = {"explorer": ActorCriticExplorer, "planner": DdpgFamily}
"""The settings that a role's plug-ins have in common: shown once."""
_IN_EXACT = {"algorithm": " (exact)", "function_class": " (exact)"}


def plural(role: str) -> str:
    """What the plug-ins of a role are called together."""
    return f"{role}es" if role.endswith("s") else f"{role}s"


def pages(what: str) -> str:
    """The pages of a role (`explorers`), or of whatever has this name (`icm`)."""
    roles = {plural(role).replace("_", "-"): role for role in registry.ROLES}
    if what in roles:
        role = roles[what]
        parts = [f"# The {what.replace('-', ' ')}\n", *(_page(role, name) for name in registry.names(role))]
        if role in SHARED:
            parts.append(f"## Settings that they share\n\n{_table(SHARED[role], _shared_fields(role))}")
        return "\n".join(parts)
    found = [role for role in registry.ROLES if what in registry.names(role)]
    if not found:
        every = {name for role in registry.ROLES for name in registry.names(role)}
        raise unknown("role or plug-in", what, [*roles, *every])
    return "\n".join(_page(role, what) for role in found)


def _page(role: str, name: str) -> str:
    cls: Any = registry.load(role, name)
    text = f"## {name}{_IN_EXACT.get(role, '')}\n\n{inspect.getdoc(cls)}\n"
    if role == "domain":
        return text + _domain(cls())
    if not dataclasses.is_dataclass(cls):
        return text
    shared = {field.name: field.default for field in _shared_fields(role)}
    own = [field for field in dataclasses.fields(cls) if shared.get(field.name, ...) != field.default]
    return f"{text}\nSettings that are its own or differ:\n\n{_table(cls, own)}" if own else text


def _domain(domain: Domain) -> str:
    """What a reward can be made of."""
    spec = domain.spec
    rows = ["\n| task | reward |", "|---|---|"]
    for name, task in domain.tasks.items():
        rows.append(f"| {name} | {f'`{task}`' if isinstance(task, str) else 'a function'} |")
    velocities = [f"{joint}_velocity" for joint in spec.joints]
    lists = {
        "Quantities": spec.quantities,
        "Of every step": ("action", "ctrl", "obs", "qpos", "qvel", "act"),
        "Joints": (*spec.joints, *velocities),
        "Entries of the observation": tuple(f"obs_{entry}" for entry in spec.observation_names),
        "Recomputed from stored states": domain.derived,
        "Not seen by a policy": spec.unseen,
    }
    texts = [
        f"{title}: {', '.join(f'`{name}`' for name in names)}.\n" for title, names in lists.items() if names
    ]
    return "\n".join([*rows, "", *texts])


def _shared_fields(role: str) -> tuple[dataclasses.Field[Any], ...]:
    cls: Any = SHARED.get(role)
    return dataclasses.fields(cls) if cls else ()


def _table(cls: Any, fields: Iterable[dataclasses.Field[Any]]) -> str:
    rows = ["| setting | default | what it is |", "|---|---|---|"]
    for field in fields:
        text = documentation(cls, field.name).replace("|", r"\|")
        rows.append(f"| `{field.name}` | {_default(field)} | {text} |")
    return "\n".join([*rows, ""])


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return registry.name_of(field.default_factory())
    return str(field.default)


def documentation(cls: type, name: str) -> str:
    """The string under a field's definition, in the class or the nearest base that has one."""
    for base in cls.__mro__:
        if name in vars(base).get("__annotations__", {}) and name in (found := _attribute_docs(base)):
            return found[name]
    return ""


@functools.cache
def _attribute_docs(cls: type) -> dict[str, str]:
    definition = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(definition, ast.ClassDef)
    return {
        ast.unparse(field.target): " ".join(str(text.value.value).split())
        for field, text in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }
