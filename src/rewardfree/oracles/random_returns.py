"""Disagreement on the returns of fixed random rewards: width for any reward, not for one."""

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


class RandomReturnsState(NamedTuple):
    """An ensemble that predicts the returns, its slow copy, and the rewards."""

    nets: Learner[list[Mlp]]
    targets: list[Mlp]
    rewards: Mlp
    seen: Moments


@dataclass(frozen=True)
class RandomReturns(SigmaBar, Oracle):
    """D(s, a)^2 = mean over K random rewards of the variance over N members of their predicted returns.

        Q_ik(s, a) <- r_k(s, a) + gamma^n T_ik(s', a'),  a' of the exploring policy, T the slow copy of Q
        loss = mean over the batch of (Q - target)^2 / sigma_bar^2

    The rewards r_k are a fixed random network of (s, a). The theory's D bounds how much functions that fit
    the data may differ for any reward; these K stand for the rewards that may come.
    """

    members: int = 5
    """Members N of the ensemble."""
    rewards: int = 16
    """Random rewards K."""
    net_width: int = 256
    """Width of the hidden layers."""
    horizon: float = 1.0
    """Factor on the discount: less than 1 looks less far ahead than the explorer, 0 not at all."""
    net_tau: float = 0.01
    """Rate at which the slow copy follows."""
    net_rate: float = 1e-3
    """Adam's step size."""

    @property
    def reads_critics(self) -> bool:
        return self.sigma_aleatoric > 0

    def init(self, spec: Spec, key: PRNGKeyArray) -> RandomReturnsState:
        key_rewards, *keys = jax.random.split(key, self.members + 1)
        sizes = (spec.observation + spec.action, self.net_width, self.net_width, self.rewards)
        nets = [make_mlp(k, *sizes) for k in keys]
        return RandomReturnsState(
            learner(nets, self.net_rate),
            jax.tree.map(jnp.copy, nets),
            make_mlp(key_rewards, *sizes),
            identity(spec.observation),
        )

    def absorb(self, state: RandomReturnsState, replay: ReplayBuffer, value: Value) -> RandomReturnsState:
        """Look at the data's moments again, if it is time."""
        return state._replace(seen=refreshed(state.seen, replay))

    def fit(
        self, state: RandomReturnsState, batch: Batch, values: Values
    ) -> tuple[RandomReturnsState, Metrics]:
        x = point(state.seen, batch.observation, batch.action)
        ahead = point(state.seen, batch.next_observation, values.next_action)
        discount = self.horizon * batch.discount[:, None]
        aims = [state.rewards(x) + discount * net(ahead) for net in state.targets]
        sigma_bar = self.sigma_bar(lambda: _spread(state.nets.nets, x), lambda: values.here.mean(axis=0))

        def loss(nets: list[Mlp]) -> tuple[Array, None]:
            errors = [jnp.square(net(x) - aim).mean(axis=-1) for net, aim in zip(nets, aims, strict=True)]
            return jnp.mean(jnp.stack(errors).sum(axis=0) / sigma_bar**2), None

        nets, value, _ = descend(state.nets, self.net_rate, loss)
        slow = jax.tree.map(lambda slow, fast: slow + self.net_tau * (fast - slow), state.targets, nets.nets)
        return state._replace(nets=nets, targets=slow), {"return_error": value}

    def width(
        self,
        state: RandomReturnsState,
        observation: Float[Array, "B O"],
        action: Float[Array, "B A"],
        values: Float[Array, "N B"],
    ) -> Float[Array, " B"]:
        return _spread(state.nets.nets, point(state.seen, observation, action))


def _spread(nets: list[Mlp], x: Float[Array, "B x"]) -> Float[Array, " B"]:
    return jnp.sqrt(jnp.stack([net(x) for net in nets]).var(axis=0, ddof=1).mean(axis=-1))
