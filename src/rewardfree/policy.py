"""The policy that a planner returns: an actor and what its observations are normalised with."""

from __future__ import annotations

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rewardfree.data import files
from rewardfree.errors import UserError
from rewardfree.networks import Net
from rewardfree.normalise import Moments, standardise


class ActorPolicy(eqx.Module):
    """tanh(mu(s)), without noise."""

    actor: Net
    seen: Moments

    def __call__(self, observation: Float[np.ndarray, "*n O"]) -> Float[np.ndarray, "*n A"]:
        return np.asarray(_mean_action(self, observation))

    def save(self, path: Path) -> None:
        files.write_arrays(path, files.tree_arrays(self))

    @classmethod
    def load(cls, path: Path) -> ActorPolicy:
        """Read a policy. Raises UserError if the file is damaged or holds something else."""
        arrays = files.map_arrays(path)
        try:
            actor = {name: jnp.array(arrays[f"actor.{name}"]) for name in Net.__dataclass_fields__}
            seen = {name: jnp.array(arrays[f"seen.{name}"]) for name in Moments._fields}
            policy = cls(Net(**actor), Moments(**seen))
            jax.eval_shape(_mean_action, policy, jnp.zeros(seen["mean"].shape))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} does not hold a policy: {error}") from error
        return policy


@jax.jit
def _mean_action(policy: ActorPolicy, observation: Float[Array, "*n O"]) -> Float[Array, "*n A"]:
    return jnp.tanh(policy.actor(standardise(policy.seen, observation)))
