"""Uniformly random actions: the explorer to be better than."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rewardfree.data.replay import Replay, ReplayBuffer
from rewardfree.interfaces import Behaviour, Explorer, Metrics, Moment, Spec


class RandomState(NamedTuple):
    """Nothing is learned."""

    action_size: Int[Array, ""]


@dataclass(frozen=True)
class Random(Explorer):
    """Uniform actions and no learning: seed frames that never end.

    a ~ U(-1, 1)
    """

    seed_frames = sys.maxsize
    update_every = 1
    chunk = 1
    nstep = 1
    gamma = 0.99

    def init(self, spec: Spec, key: PRNGKeyArray) -> RandomState:
        return RandomState(jnp.int32(spec.action))

    def behaviour(self, state: RandomState) -> Behaviour:
        size = int(state.action_size)

        def act(now: Moment) -> Float[np.ndarray, " A"]:
            return np.random.default_rng([*now.key, now.step]).uniform(-1.0, 1.0, size).astype(np.float32)

        return act

    def absorb(self, state: RandomState, replay: ReplayBuffer) -> RandomState:
        return state

    def update(
        self, state: RandomState, replay: Replay, key: PRNGKeyArray, updates: int
    ) -> tuple[RandomState, Metrics]:
        return state, {}
