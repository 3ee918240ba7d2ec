"""The DDPG family of planners: the shared actor-critic on labelled data, with fresh networks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data import files
from rewardfree.data.dataset import LabelledDataset
from rewardfree.data.replay import Batch, Replay, labelled_replay, sample
from rewardfree.durable import Checkpoint, Checkpoints
from rewardfree.errors import UserError
from rewardfree.explorers._actor_critic import ActorCritic, Agent, regression_weight
from rewardfree.interfaces import Metrics, Planner, Report, Spec
from rewardfree.networks import Net
from rewardfree.normalise import moments_of
from rewardfree.policy import ActorPolicy

CHUNK = 250
"""Updates in one compiled call."""
CHECKPOINT_EVERY = 2500
"""Updates from one checkpoint to the next: several chunks."""


def update_keys(updates: int, seed: int) -> np.ndarray:
    """A key per update, uint32 [updates, 2]; those of a shorter plan are the first of a longer one."""
    return np.random.default_rng([seed, 1]).integers(0, 2**32, (updates, 2), np.uint32)


class Learned(NamedTuple):
    """The actor-critic, and the average of its actor, if it is asked for."""

    agent: Agent
    average: Net | None


@dataclass(frozen=True)
class DdpgFamily(ActorCritic, Planner):
    """What the planners of the family have in common: Algorithm 3 with any number of critics."""

    batch: int = 64
    weighted: bool = False
    """Algorithm 1's weighted regression: 1 / sigma^2, with sigma the critics' spread at (s, a), mean 1."""
    weight_floor: float = 1e-3
    """Least sigma (the theory's alpha)."""

    behaviour: float = 0.0
    """Weight of |pi(s) - a|^2 in the actor's loss, with Q scaled to size 1, as in TD3+BC; 0 leaves it out."""
    average: float = 0.0
    """The policy is the actor averaged over about this share of the updates; 0: the last actor."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weighted and self.critics < 2:
            raise UserError("weights come from the spread of critics: weighted needs critics of at least 2")

    def fit(
        self,
        data: LabelledDataset,
        updates: int,
        seed: int,
        report: Report = lambda done, metrics, policy: None,
        checkpoints: Checkpoints | None = None,
        since: Checkpoint | None = None,
    ) -> ActorPolicy:
        replay = labelled_replay(data, self.nstep, self.gamma)
        learned = self.init(data.data.spec, replay, seed)
        rate = 1 / max(1.0, self.average * updates)
        keys = update_keys(updates, seed)
        first = 0
        if since is not None:
            learned, first = files.fill_tree(learned, since.arrays), since.done
        for done in range(first, updates, CHUNK):
            chunk = keys[done : done + CHUNK]
            learned, metrics = self._updates(learned, replay, chunk, rate)
            report(done + len(chunk), metrics, partial(self._policy, learned))
            if checkpoints is not None and (done + CHUNK) % CHECKPOINT_EVERY == 0:
                reports = {"reports": done // CHUNK + 1}
                checkpoints.write(Checkpoint(done + CHUNK, files.tree_arrays(learned), reports))
        return self._policy(learned)

    def init(self, spec: Spec, replay: Replay, seed: int) -> Learned:
        """What is learned, before the first update."""
        agent = self.init_agent(spec, jax.random.PRNGKey(seed))
        if self.normalise:
            agent = agent._replace(seen=moments_of(replay.observation, len(replay.observation)))
        return Learned(agent, jax.tree.map(jnp.copy, agent.actor) if self.average else None)

    @staticmethod
    def _policy(learned: Learned) -> ActorPolicy:
        agent = learned.agent
        actor = agent.actor if learned.average is None else learned.average
        return ActorPolicy(actor, agent.seen, agent.critics)

    @partial(jax.jit, static_argnums=0, donate_argnums=1)
    def _updates(
        self, learned: Learned, replay: Replay, keys: PRNGKeyArray, rate: float
    ) -> tuple[Learned, Metrics]:
        """One update per key; the average moves by 1 / t at first and by the rate later."""

        def step(learned: Learned, key: PRNGKeyArray) -> tuple[Learned, Metrics]:
            agent, metrics = self._one_update(replay, learned.agent, key)
            moved = jnp.maximum(rate, 1 / agent.step)
            average = learned.average and jax.tree.map(
                lambda mean, new: mean + moved * (new - mean), learned.average, agent.actor
            )
            return Learned(agent, average), metrics

        learned, metrics = jax.lax.scan(step, learned, keys)
        return learned, jax.tree.map(jnp.mean, metrics)

    def actor_loss(
        self, q: Float[Array, " B"], action: Float[Array, "B A"], batch: Batch
    ) -> Float[Array, ""]:
        """-Q, or -Q / mean |Q| + behaviour * mean |pi(s) - a|^2, which keeps to what the data did."""
        if not self.behaviour:
            return super().actor_loss(q, action, batch)
        scale = jax.lax.stop_gradient(jnp.abs(q).mean())
        away = jnp.square(action - batch.action).mean()
        return -jnp.mean(q) / scale + self.behaviour * away

    def _one_update(self, replay: Replay, agent: Agent, key: PRNGKeyArray) -> tuple[Agent, Metrics]:
        key_sample, key_next, key_actor = jax.random.split(key, 3)
        batch = sample(replay, key_sample, self.batch)
        values = self.target_values(agent, batch, key_next, here=self.weighted)
        weight = jnp.ones_like(batch.reward)
        if self.weighted:
            weight = regression_weight(
                values.here.std(axis=0, ddof=1), self.weight_floor, None, mean_one=True
            )
        return self.improve(agent, batch, batch.reward, weight, values, key_actor)
