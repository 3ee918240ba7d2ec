"""The error of networks that learn fixed random functions of (s, a)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import Batch, ReplayBuffer
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers._model import Learner, descend, learner
from rewardfree.interfaces import Metrics, Oracle, Spec, Value
from rewardfree.networks import Mlp, make_mlp
from rewardfree.normalise import Moments, identity, point, refreshed
from rewardfree.oracles._sigma import SigmaBar


class RandomTargetsState(NamedTuple):
    """What is learned, what it is learned from, and how observations are normalised."""

    predictor: Learner[Mlp]
    target: Mlp
    seen: Moments


@dataclass(frozen=True)
class RandomTargets(SigmaBar, Oracle):
    """D(s, a) = sqrt(mean_k (f_k - g_k)^2): f has learned the fixed random g where there is data.

    loss = mean over the batch of D^2 / sigma_bar^2
    """

    net_width: int = 256
    """Width of the hidden layers."""
    targets: int = 64
    """Number of random functions."""
    net_rate: float = 1e-3
    """Adam's step size."""

    @property
    def reads_critics(self) -> bool:
        return self.sigma_aleatoric > 0

    def init(self, spec: Spec, key: PRNGKeyArray) -> RandomTargetsState:
        sizes = (spec.observation + spec.action, self.net_width, self.net_width, self.targets)
        predictor, target = (make_mlp(k, *sizes) for k in jax.random.split(key))
        return RandomTargetsState(learner(predictor, self.net_rate), target, identity(spec.observation))

    def absorb(self, state: RandomTargetsState, replay: ReplayBuffer, value: Value) -> RandomTargetsState:
        """Look at the data's moments again, if it is time."""
        return state._replace(seen=refreshed(state.seen, replay))

    def fit(
        self, state: RandomTargetsState, batch: Batch, values: Values
    ) -> tuple[RandomTargetsState, Metrics]:
        x = point(state.seen, batch.observation, batch.action)
        aim = state.target(x)
        sigma_bar = self.sigma_bar(
            lambda: _rms(state.predictor.nets(x) - aim), lambda: values.here.mean(axis=0)
        )

        def loss(predictor: Mlp) -> tuple[Array, None]:
            return jnp.mean(jnp.square(predictor(x) - aim).mean(axis=-1) / sigma_bar**2), None

        predictor, value, _ = descend(state.predictor, self.net_rate, loss)
        return state._replace(predictor=predictor), {"prediction_error": value}

    def width(
        self,
        state: RandomTargetsState,
        observation: Float[Array, "B O"],
        action: Float[Array, "B A"],
        values: Float[Array, "N B"],
    ) -> Float[Array, " B"]:
        x = point(state.seen, observation, action)
        return _rms(state.predictor.nets(x) - state.target(x))


def _rms(error: Float[Array, "B K"]) -> Float[Array, " B"]:
    return jnp.sqrt(jnp.square(error).mean(axis=-1))
