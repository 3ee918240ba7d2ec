"""The policy that a planner returns: an actor, what its observations are normalised with, and its critics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float

from rewardfree.data import files
from rewardfree.data.files import Arrays
from rewardfree.networks import LAYER_NORM_EPSILON, Net
from rewardfree.normalise import Moments

CRITICS = "critics.safetensors"
"""Beside the policy's own file: what is needed to tell where the critics disagree, and not to act."""


class ActorPolicy:
    """tanh(mu(s)), without noise, in NumPy: calling a compiled program costs more than the arithmetic."""

    def __init__(self, actor: Net, seen: Moments, critics: Net | None = None) -> None:
        self._arrays = _copied({"actor": vars(actor), "seen": seen._asdict()})
        self._critics = None if critics is None else _copied({"critics": vars(critics)})

    def __call__(
        self, observation: Float[np.ndarray, "*n O"], skill: Float[np.ndarray, "*n K"] | None = None
    ) -> Float[np.ndarray, "*n A"]:
        x = self._normalised(observation)
        if skill is not None:
            x = np.concatenate([x, skill], axis=-1)
        return np.tanh(_net(self._arrays, "actor", x))

    def disagreement(
        self, observation: Float[np.ndarray, "n O"], action: Float[np.ndarray, "n A"]
    ) -> Float[np.ndarray, " n"] | None:
        """Standard deviation of the critics' values; None without at least two critics."""
        if self._critics is None or len(self._critics["critics.w3"]) < 2:
            return None
        x = np.concatenate([self._normalised(observation), action], axis=-1)
        ensemble = {  # members go first, their biases to every row
            name: array[:, None] if array.ndim == 2 else array for name, array in self._critics.items()
        }
        values = _net(ensemble, "critics", x[None])[..., 0]  # (N, n)
        return values.std(axis=0)

    @property
    def arrays(self) -> Arrays:
        """The actor's weights and what its observations are normalised with."""
        return self._arrays

    def save(self, path: Path) -> None:
        files.write_arrays(path, self._arrays)
        if self._critics is not None:
            files.write_arrays(path.parent / CRITICS, self._critics)

    @classmethod
    def load(cls, path: Path) -> ActorPolicy:
        """Read a policy, and its critics if they are there. Raises UserError if the file is damaged."""
        policy = cls.__new__(cls)
        policy._arrays = files.map_arrays(path)
        critics = path.parent / CRITICS
        policy._critics = files.map_arrays(critics) if critics.is_file() else None
        with files.parsing(path), np.errstate(all="ignore"):
            if any(array.dtype != np.float32 for array in policy._arrays.values()):
                raise TypeError("a policy is of float32")
            if not (policy._arrays["seen.std"] > 0).all():
                raise ValueError("it divides by zero")
            zeros = np.zeros((1, *policy._arrays["seen.mean"].shape), np.float32)
            action = policy(zeros)
            if not np.isfinite(action).all():
                raise ValueError("its action is not a number")
            policy.disagreement(zeros, action)
        return policy

    def _normalised(self, observation: np.ndarray) -> np.ndarray:
        get = self._arrays.__getitem__
        bound = get("seen.clip")
        return np.minimum(np.maximum((observation - get("seen.mean")) / get("seen.std"), -bound), bound)


def _net(arrays: Arrays, prefix: str, x: np.ndarray) -> np.ndarray:
    """networks.Net in NumPy."""

    def get(name: str) -> np.ndarray:
        return arrays[f"{prefix}.{name}"]

    h = np.tanh(_layer_norm(x @ get("w1") + get("b1"), get("scale"), get("shift")))
    h = h @ get("w2") + get("b2")
    if f"{prefix}.scale2" in arrays:
        h = _layer_norm(h, get("scale2"), get("shift2"))
    out: np.ndarray = np.maximum(h, 0.0) @ get("w3") + get("b3")
    return out


def _layer_norm(h: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    h = h - h.mean(axis=-1, keepdims=True)
    h = h / np.sqrt(np.square(h).mean(axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
    normed: np.ndarray = h * scale + shift
    return normed


def _copied(tree: object) -> Arrays:
    """Copies: a view would change when the learner's next update reuses the device's memory."""
    return {name: array.copy() for name, array in files.tree_arrays(tree).items()}
