"""APT: entropy of the visited states in a learned latent space (Liu and Abbeel 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import Batch
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers._explorer import ActorCriticExplorer
from rewardfree.explorers._model import Learner, descend, learner, nearest, particle_entropy
from rewardfree.explorers.icm import Dynamics, dynamics_loss, make_dynamics
from rewardfree.interfaces import Metrics, Spec
from rewardfree.networks import Mlp, layer_norm, make_mlp


class Trunk(eqx.Module):
    """s -> latent -> LayerNorm -> tanh."""

    linear: Mlp
    scale: Float[Array, " d"]
    shift: Float[Array, " d"]

    def __call__(self, s: Float[Array, "B O"]) -> Float[Array, "B d"]:
        return jnp.tanh(layer_norm(self.linear(s), self.scale, self.shift))


class AptNets(NamedTuple):
    """The trunk, and the ICM on top of it that trains it."""

    trunk: Trunk
    dynamics: Dynamics


@dataclass(frozen=True)
class Apt(ActorCriticExplorer):
    """Where the states of a batch lie far from each other, in the latent space of an ICM.

        loss = mean |z' - f(z, a)| + mean |a - tanh g(z, z')|,  z = trunk(s),  z' = trunk(s')
        r    = log(1 + mean distance of z to its k nearest in the minibatch)

    Source: Liu and Abbeel, "Behavior from the void: unsupervised active pre-training" (2021).

    Differences: the source learns its latent space by contrast between views of an image; the release and
    this one by an ICM. A point counts among its own k nearest, at distance 0, as released. Distances come
    from the Gram matrix: B x B numbers, not B x B x dimension.
    """

    latent: int = 512
    """Width of the latent space."""
    neighbours: int = 12
    """k, the point itself among them."""

    def init_model(self, spec: Spec, key: PRNGKeyArray) -> Learner[AptNets]:
        key_trunk, key_dynamics = jax.random.split(key)
        linear = make_mlp(key_trunk, spec.observation, self.latent)
        trunk = Trunk(linear, jnp.ones(self.latent), jnp.zeros(self.latent))
        dynamics = make_dynamics(key_dynamics, self.latent, spec.action, self.hidden)
        return learner(AptNets(trunk, dynamics), self.learning_rate)

    def fit(
        self, model: Learner[AptNets], batch: Batch, key: PRNGKeyArray
    ) -> tuple[Learner[AptNets], Metrics]:
        def loss(nets: AptNets) -> tuple[Array, Metrics]:
            z, z_next = nets.trunk(batch.observation), nets.trunk(batch.next_observation)
            return dynamics_loss(nets.dynamics, z, batch.action, z_next)

        model, _, metrics = descend(model, self.learning_rate, loss)
        return model, metrics

    def intrinsic_reward(
        self, model: Learner[AptNets], batch: Batch, values: Values
    ) -> tuple[Learner[AptNets], Float[Array, " B"], Metrics]:
        z = model.nets.trunk(batch.observation)
        return model, particle_entropy(nearest(z, self.neighbours)), {}
