"""What explorers that maximise a reward of their own have in common: acting, and the order of an update."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import Batch, Replay, ReplayBuffer, sample
from rewardfree.explorers._actor_critic import ActorCritic, Agent, Values
from rewardfree.interfaces import Behaviour, Explorer, Metrics, Moment, Spec, Value
from rewardfree.policy import ActorPolicy

HELD, NOISE, SKILL = 0, 1, 2
"""Streams of random numbers of an episode."""
RELABEL = 4
"""What an update's key is folded with for the skills; its splits are for the rest."""


class ExplorerState(NamedTuple):
    """An actor-critic and the explorer's own model (whatever its reward needs)."""

    agent: Agent
    model: Any


@dataclass(frozen=True)
class ActorCriticExplorer(ActorCritic, Explorer):
    """An explorer that maximises its own reward. A subclass writes `fit` and `intrinsic_reward`."""

    seed_frames: int = 4000
    """Frames of uniformly random actions before the first update."""
    update_every: int = 2
    """Frames per update."""
    chunk: int = 2
    """Frames between two calls of the learner, during which the actor of the call before acts."""
    epsilon: float = 0.0
    """Probability of a uniformly random action."""
    epsilon_hold: int = 1
    """Frames for which that is decided at once: a random action is held so long, and gets somewhere."""
    partition: int = 1
    """Update t draws from the episodes whose number is t modulo this; 4 repeats the released loaders."""

    def init_model(self, spec: Spec, key: PRNGKeyArray) -> Any:
        return ()

    def absorb_model(self, model: Any, replay: ReplayBuffer, value: Value) -> Any:
        return model

    def relabel(self, batch: Batch, key: PRNGKeyArray) -> Batch:
        """The minibatch with the skills that it is to be learned for."""
        return batch

    def fit(self, model: Any, batch: Batch, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        """One step of the model behind the reward."""
        return model, {}

    @abstractmethod
    def intrinsic_reward(
        self, model: Any, batch: Batch, values: Values
    ) -> tuple[Any, Float[Array, " B"], Metrics]:
        """The reward of each transition, from the model that `fit` returned."""

    def weight(self, model: Any, batch: Batch, values: Values) -> tuple[Float[Array, " B"], Metrics]:
        """The regression weight of each transition."""
        return jnp.ones_like(batch.discount), {}

    @property
    def needs_values_here(self) -> bool:
        """Whether reward or weight read the target critics at (s, a)."""
        return False

    def init(self, spec: Spec, key: PRNGKeyArray) -> ExplorerState:
        key_agent, key_model = jax.random.split(key)
        agent = self.init_agent(spec, key_agent, self.skill_size(spec))
        return ExplorerState(agent, self.init_model(spec, key_model))

    def behaviour(self, state: ExplorerState) -> Behaviour:
        """tanh(mu) plus unclipped noise, clamped to the range; with probability epsilon uniform."""
        mean_action = ActorPolicy(state.agent.actor, state.agent.seen)

        def act(now: Moment) -> Float[np.ndarray, " A"]:
            mean = mean_action(now.observation, now.skill)
            if self.epsilon:
                held = np.random.default_rng([*now.key, HELD, now.step // self.epsilon_hold])
                if held.random() < self.epsilon:
                    return held.uniform(-1.0, 1.0, mean.shape).astype(np.float32)
            noise = np.random.default_rng([*now.key, NOISE, now.step]).standard_normal(mean.shape, np.float32)
            return np.clip(mean + self.noise * noise, -1.0, 1.0)

        return act

    def absorb(self, state: ExplorerState, replay: ReplayBuffer) -> ExplorerState:
        agent = self.refresh(state.agent, replay)
        value = jax.tree_util.Partial(self.mean_value, agent)  # type: ignore[no-untyped-call]
        return ExplorerState(agent, self.absorb_model(state.model, replay, value))

    @partial(jax.jit, static_argnums=(0, 4), donate_argnums=1)
    def update(
        self, state: ExplorerState, replay: Replay, key: PRNGKeyArray, updates: int
    ) -> tuple[ExplorerState, Metrics]:
        step = partial(self._one_update, replay)
        state, metrics = jax.lax.scan(step, state, jax.random.split(key, updates))
        return state, jax.tree.map(jnp.mean, metrics)

    def _one_update(
        self, replay: Replay, state: ExplorerState, key: PRNGKeyArray
    ) -> tuple[ExplorerState, Metrics]:
        keys = jax.random.split(key, 4)
        agent = state.agent
        batch = sample(replay, keys[0], self.batch, self.partition, agent.step)
        batch = self.relabel(batch, jax.random.fold_in(key, RELABEL))
        model, fitted = self.fit(state.model, batch, keys[1])
        values = self.target_values(agent, batch, keys[2], self.needs_values_here)
        model, reward, rewarded = self.intrinsic_reward(model, batch, values)
        weight, weighted = self.weight(model, batch, values)
        agent, improved = self.improve(agent, batch, reward, weight, values, keys[3])
        metrics = {**fitted, **rewarded, **weighted, **improved, "intrinsic_reward": reward.mean()}
        return ExplorerState(agent, model), metrics
