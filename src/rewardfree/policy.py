"""The policy that a planner returns: an actor and what its observations are normalised with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float

from rewardfree.data import files
from rewardfree.data.files import Arrays
from rewardfree.errors import UserError
from rewardfree.networks import LAYER_NORM_EPSILON, Net
from rewardfree.normalise import Moments


class ActorPolicy:
    """tanh(mu(s)), without noise, in NumPy: calling a compiled program costs more than the arithmetic."""

    def __init__(self, actor: Net, seen: Moments) -> None:
        arrays = files.tree_arrays({"actor": vars(actor), "seen": seen._asdict()})
        # Copies: a view would change when the learner's next update reuses the device's memory.
        self._arrays: Arrays = {name: array.copy() for name, array in arrays.items()}

    def __call__(
        self, observation: Float[np.ndarray, "*n O"], skill: Float[np.ndarray, "*n K"] | None = None
    ) -> Float[np.ndarray, "*n A"]:
        get = self._arrays.__getitem__
        bound = get("seen.clip")
        x = np.minimum(np.maximum((observation - get("seen.mean")) / get("seen.std"), -bound), bound)
        if skill is not None:
            x = np.concatenate([x, skill], axis=-1)
        h = x @ get("actor.w1") + get("actor.b1")
        h = h - h.mean(axis=-1, keepdims=True)
        h = h / np.sqrt(np.square(h).mean(axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
        h = np.tanh(h * get("actor.scale") + get("actor.shift"))
        h = np.maximum(h @ get("actor.w2") + get("actor.b2"), 0.0)
        return np.tanh(h @ get("actor.w3") + get("actor.b3"))

    def save(self, path: Path) -> None:
        files.write_arrays(path, self._arrays)

    @classmethod
    def load(cls, path: Path) -> ActorPolicy:
        """Read a policy. Raises UserError if the file is damaged or holds something else."""
        policy = cls.__new__(cls)
        policy._arrays = files.map_arrays(path)
        try:
            policy(np.zeros(policy._arrays["seen.mean"].shape, np.float32))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} does not hold a policy: {error}") from error
        return policy
