"""From what a user calls a reward to a checked function of transitions."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float

from rewardfree import registry
from rewardfree.data.transitions import Names, Transitions
from rewardfree.errors import UserError, unknown
from rewardfree.interfaces import Reward, Spec
from rewardfree.rewards.expression import parse


@dataclass(frozen=True)
class NamedReward:
    """A reward with the name it is known by."""

    name: str
    kind: Literal["task", "expression", "file", "callable"]
    function: Reward
    source: str | None = None
    """What the values depend on besides the data, as text; None if that cannot be told."""

    @property
    def slug(self) -> str:
        """The name as a folder's name; expressions that look alike in letters get different ones."""
        name = Path(self.name).name.replace(".py:", "-") if self.kind == "file" else self.name
        words = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:60] or "reward"
        return f"{words}-{_digest(self.name)[:6]}" if self.kind == "expression" else words

    def __call__(self, transitions: Transitions) -> Float[np.ndarray, " n"]:
        """float32, one per transition. Raises UserError if the function does not give that."""
        try:
            value = np.asarray(self.function(transitions))
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"reward '{self.name}' raised {type(error).__name__}: {error}") from error
        if value.shape != (len(transitions),):
            what = "a single number" if value.ndim == 0 else f"an array of shape {value.shape}"
            raise UserError(
                f"reward '{self.name}' returned {what} for {len(transitions)} transitions:"
                f" return one number for each, shape ({len(transitions)},)"
            )
        if value.dtype.kind not in "fiub":
            raise UserError(f"reward '{self.name}' returned {value.dtype} values: return numbers")
        value = value.astype(np.float32)
        if not np.isfinite(value).all():
            count = int((~np.isfinite(value)).sum())
            raise UserError(f"reward '{self.name}' is NaN or infinite at {count} of {len(value)} transitions")
        return value


def resolve(reward: str | Reward | NamedReward, spec: Spec) -> NamedReward:
    """A task's name, `path/to/file.py:function`, an expression, or a callable."""
    if isinstance(reward, NamedReward):
        return reward
    if not isinstance(reward, str):
        return NamedReward(getattr(reward, "__name__", "reward").strip("<>"), "callable", reward)
    tasks, names = registry.load("domain", spec.domain).tasks, Names(spec)
    if reward in tasks:
        task = tasks[reward]
        if not isinstance(task, str):
            return NamedReward(reward, "task", task)
        return NamedReward(reward, "task", parse(task, names), source=task)
    file, colon, function = reward.rpartition(":")
    if colon and file.endswith(".py"):
        return NamedReward(reward, "file", _function_in(Path(file), function), _source(Path(file), function))
    if reward.isidentifier() and reward not in names:  # one word is a task or a quantity that was misspelt
        raise unknown("reward", reward, [*tasks, *names], "; or an expression, or path/to/file.py:function")
    return NamedReward(reward, "expression", parse(reward, names), source=reward)


def _source(path: Path, function: str) -> str:
    return f"{function} in {_digest(path.read_text(encoding='utf-8', errors='replace'))}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _function_in(path: Path, name: str) -> Reward:
    if not path.is_file():
        raise UserError(f"there is no file {path} to read the reward '{name}' from")
    spec = importlib.util.spec_from_file_location(f"rewardfree_reward_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        here = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise unknown("function", name, here, f" (in {path})")
    return function
