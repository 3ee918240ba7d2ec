"""ICM: curiosity, the error of a learned forward model (Pathak et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import Batch
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers._explorer import ActorCriticExplorer
from rewardfree.explorers._model import Learner, descend, learner, norm
from rewardfree.interfaces import Metrics, Spec
from rewardfree.networks import Mlp, make_mlp


class Dynamics(NamedTuple):
    """A forward model f: (s, a) -> s' and an inverse model g: (s, s') -> a."""

    forward: Mlp
    inverse: Mlp


@dataclass(frozen=True)
class Icm(ActorCriticExplorer):
    """Curiosity: where a forward model errs.

        loss = mean |s' - f(s, a)| + mean |a - tanh g(s, s')|
        r    = log(1 + |s' - f(s, a)|),  norms not squared

    Source: Pathak, Agrawal, Efros and Darrell, "Curiosity-driven exploration by self-supervised prediction"
    (2017).

    Differences: the source predicts in the features of the inverse model and pays the squared error; the
    release predicts observations and pays the logarithm, as here. The GFA-RFE paper's table gives f two
    hidden layers; its release and this one have one. s' lies three steps on.
    """

    def init_model(self, spec: Spec, key: PRNGKeyArray) -> Learner[Dynamics]:
        return learner(make_dynamics(key, spec.observation, spec.action, self.hidden), self.learning_rate)

    def fit(
        self, model: Learner[Dynamics], batch: Batch, key: PRNGKeyArray
    ) -> tuple[Learner[Dynamics], Metrics]:
        def loss(nets: Dynamics) -> tuple[Array, Metrics]:
            return dynamics_loss(nets, batch.observation, batch.action, batch.next_observation)

        model, _, metrics = descend(model, self.learning_rate, loss)
        return model, metrics

    def intrinsic_reward(
        self, model: Learner[Dynamics], batch: Batch, values: Values
    ) -> tuple[Learner[Dynamics], Float[Array, " B"], Metrics]:
        ahead = forward_error(model.nets, batch.observation, batch.action, batch.next_observation)
        return model, jnp.log1p(ahead), {}


def make_dynamics(key: PRNGKeyArray, state: int, action: int, hidden: int) -> Dynamics:
    """f: (state + action) -> hidden -> state, g: 2 state -> hidden -> action."""
    key_forward, key_inverse = jax.random.split(key)
    return Dynamics(
        make_mlp(key_forward, state + action, hidden, state), make_mlp(key_inverse, 2 * state, hidden, action)
    )


def forward_error(nets: Dynamics, s: Array, a: Array, s_next: Array) -> Float[Array, " B"]:
    """|s' - f(s, a)|."""
    return norm(s_next - nets.forward(jnp.concatenate([s, a], axis=-1)))


def dynamics_loss(nets: Dynamics, s: Array, a: Array, s_next: Array) -> tuple[Array, Metrics]:
    """mean |s' - f(s, a)| + mean |a - tanh g(s, s')|."""
    ahead = forward_error(nets, s, a, s_next).mean()
    back = norm(a - jnp.tanh(nets.inverse(jnp.concatenate([s, s_next], axis=-1)))).mean()
    return ahead + back, {"forward_error": ahead, "inverse_error": back}
