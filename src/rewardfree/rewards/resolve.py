"""From what a user calls a reward to a checked function of transitions."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float

from rewardfree.data.transitions import Transitions
from rewardfree.errors import UserError, unknown
from rewardfree.interfaces import Reward


@dataclass(frozen=True)
class NamedReward:
    """A reward with the name it is known by."""

    name: str
    kind: Literal["task", "file", "callable"]
    function: Reward

    @property
    def slug(self) -> str:
        """The name as a folder's name."""
        return (
            re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(self.name).name.replace(".py:", "-")).strip("-.")
            or "reward"
        )

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


def resolve(reward: str | Reward | NamedReward, tasks: Mapping[str, Reward]) -> NamedReward:
    """A task's name, `path/to/file.py:function`, or a callable."""
    if isinstance(reward, NamedReward):
        return reward
    if callable(reward):
        return NamedReward(getattr(reward, "__name__", "reward").strip("<>"), "callable", reward)
    if reward in tasks:
        return NamedReward(reward, "task", tasks[reward])
    file, colon, function = reward.rpartition(":")
    if colon and file.endswith(".py"):
        return NamedReward(reward, "file", _function_in(Path(file), function))
    raise unknown("reward", reward, tasks, "; or give path/to/file.py:function")


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
