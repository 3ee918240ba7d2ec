"""The elliptical bonus on features of what the agent controls: those of an inverse model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import Batch, ReplayBuffer
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers._model import Learner, descend, learner
from rewardfree.interfaces import Metrics, Spec, Value
from rewardfree.networks import Mlp, make_mlp
from rewardfree.normalise import is_refresh, standardise
from rewardfree.oracles.elliptical import Elliptical, EllipticalState


class Inverse(NamedTuple):
    """a ~ tanh g(h(s), h(s')): what of s changes with the action is in h(s)."""

    trunk: Mlp
    """h"""
    head: Mlp
    """g"""


class Lens(NamedTuple):
    """The inverse model as it learns, and its trunk as Lambda knows it."""

    model: Learner[Inverse]
    trunk: Mlp


@dataclass(frozen=True)
class EllipticalInverse(Elliptical):
    """The elliptical oracle with x = [LayerNorm h(s), action_scale a], h the trunk of an inverse model.

        loss = mean |a - tanh g(h(s), h(s'))|^2

    h goes on learning, but phi is that of h as it was when the normalisation was last refreshed: Lambda is
    built from the data with it.
    """

    embedding: int = 32
    """Width of h(s)."""
    net_width: int = 256
    """Width of the hidden layers."""
    net_rate: float = 1e-3
    """Adam's step size."""

    def init(self, spec: Spec, key: PRNGKeyArray) -> EllipticalState:
        key_base, key_trunk, key_head = jax.random.split(key, 3)
        trunk = make_mlp(key_trunk, spec.observation, self.net_width, self.embedding)
        head = make_mlp(key_head, 2 * self.embedding, self.net_width, spec.action)
        lens = Lens(learner(Inverse(trunk, head), self.net_rate), jax.tree.map(jnp.copy, trunk))
        return super().init(spec, key_base)._replace(lens=lens)

    def view_of(self, spec: Spec) -> int:
        return self.embedding

    def view(self, state: EllipticalState, observation: Float[Array, "B O"]) -> Float[Array, "B v"]:
        return jax.nn.standardize(state.lens.trunk(standardise(state.seen, observation)))

    def absorb(self, state: EllipticalState, replay: ReplayBuffer, value: Value) -> EllipticalState:
        if is_refresh(replay.episodes):
            trunk = jax.tree.map(jnp.copy, state.lens.model.nets.trunk)
            state = state._replace(lens=state.lens._replace(trunk=trunk))
        return super().absorb(state, replay, value)

    def fit(self, state: EllipticalState, batch: Batch, values: Values) -> tuple[EllipticalState, Metrics]:
        here, there = (standardise(state.seen, s) for s in (batch.observation, batch.next_observation))

        def loss(nets: Inverse) -> tuple[Array, None]:
            ends = jnp.concatenate([nets.trunk(here), nets.trunk(there)], axis=-1)
            return jnp.square(batch.action - jnp.tanh(nets.head(ends))).mean(), None

        model, value, _ = descend(state.lens.model, self.net_rate, loss)
        return state._replace(lens=state.lens._replace(model=model)), {"inverse_error": value}
