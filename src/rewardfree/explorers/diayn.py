"""DIAYN: skills that can be told apart by the states they visit (Eysenbach et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import Batch
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers._model import Learner, cross_entropy, descend, learner
from rewardfree.explorers._skills import SkillExplorer, one_hot
from rewardfree.interfaces import Metrics, Spec
from rewardfree.networks import Mlp, make_mlp


@dataclass(frozen=True)
class Diayn(SkillExplorer):
    """Skills z that a discriminator D recognises by the state they lead to.

        loss = mean of -log D(z | s')
        r    = log D(z | s') + log K

    Source: Eysenbach, Gupta, Ibarz and Levine, "Diversity is all you need" (2019).

    Differences: the source keeps a skill for an episode and learns with SAC; the release and this one draw a
    new one every 50 steps and learn with DDPG. The GFA-RFE paper's table lets D read 512 features; its
    release, on states, and this one let it read the observation.
    """

    skill_every: int = 50

    def draw(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, " K"]:
        return one_hot(rng, size)

    def init_model(self, spec: Spec, key: PRNGKeyArray) -> Learner[Mlp]:
        return learner(
            make_mlp(key, spec.observation, self.hidden, self.hidden, self.skills), self.learning_rate
        )

    def fit(self, model: Learner[Mlp], batch: Batch, key: PRNGKeyArray) -> tuple[Learner[Mlp], Metrics]:
        def loss(net: Mlp) -> tuple[Array, Array]:
            logits = net(batch.next_observation)
            recognised = logits.argmax(axis=-1) == batch.skill.argmax(axis=-1)
            return cross_entropy(logits, batch.skill).mean(), recognised.mean()

        model, value, recognised = descend(model, self.learning_rate, loss)
        return model, {"discriminator_loss": value, "skills_recognised": recognised}

    def intrinsic_reward(
        self, model: Learner[Mlp], batch: Batch, values: Values
    ) -> tuple[Learner[Mlp], Float[Array, " B"], Metrics]:
        surprise = cross_entropy(model.nets(batch.next_observation), batch.skill)
        return model, jnp.log(self.skills) - surprise, {}
