"""APS: entropy of states, and successor features for the skills (Liu and Abbeel 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import Batch
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers._model import (
    Learner,
    RunningMoments,
    descend,
    learner,
    merge,
    nearest,
    no_moments,
    norm,
    particle_entropy,
)
from rewardfree.explorers._skills import SkillExplorer, direction
from rewardfree.interfaces import Metrics, Spec
from rewardfree.networks import Mlp, make_mlp


class ApsModel(NamedTuple):
    """The features phi, and the moments of the distances between them."""

    phi: Learner[Mlp]
    moments: RunningMoments


@dataclass(frozen=True)
class Aps(SkillExplorer):
    """Far-apart states, in features phi that line up with the skill w.

        loss = -mean of w.phi(s') / |phi(s')|
        r    = log(1 + mean over the k nearest of max(d / m - clip, 0)) + w.phi(s') / |phi(s')|
        Q    = psi(s, a, w).w

    with d the distance of phi(s') to a near one in the minibatch and m the running mean of d.

    Source: Liu and Abbeel, "APS: active pretraining with successor features" (2021).

    Differences: the GFA-RFE paper's table gives phi one hidden layer; its release and this one have two. The
    release can also infer w from rewards by least squares (a batch of 4096) when it adapts to a task; here
    tasks are planned offline, so nothing is inferred. A point counts among its own k nearest, as released.
    """

    skills: int = 10
    skill_every: int = 5
    neighbours: int = 12
    """k, the point itself among them."""
    clip: float = 1e-4
    """Subtracted from the distances, once they are divided by their running mean; floored at 0."""

    @property
    def critic_outputs(self) -> int:
        return self.skills

    def draw(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, " K"]:
        return direction(rng, size)

    def init_model(self, spec: Spec, key: PRNGKeyArray) -> ApsModel:
        phi = make_mlp(key, spec.observation, self.hidden, self.hidden, self.skills)
        return ApsModel(learner(phi, self.learning_rate), no_moments())

    def fit(self, model: ApsModel, batch: Batch, key: PRNGKeyArray) -> tuple[ApsModel, Metrics]:
        def loss(phi: Mlp) -> tuple[Array, None]:
            return -along(phi(batch.next_observation), batch.skill).mean(), None

        phi, value, _ = descend(model.phi, self.learning_rate, loss)
        return model._replace(phi=phi), {"feature_loss": value}

    def intrinsic_reward(
        self, model: ApsModel, batch: Batch, values: Values
    ) -> tuple[ApsModel, Float[Array, " B"], Metrics]:
        phi = model.phi.nets(batch.next_observation)
        distances = nearest(phi, self.neighbours)
        model = model._replace(moments=merge(model.moments, distances))
        entropy = particle_entropy(distances, model.moments.mean, self.clip)
        lined_up = along(phi, batch.skill)
        return model, entropy + lined_up, {"entropy": entropy.mean(), "along_skill": lined_up.mean()}


def along(phi: Float[Array, "B K"], skill: Float[Array, "B K"]) -> Float[Array, " B"]:
    """w.phi / |phi|, 0 where phi is 0."""
    length = norm(phi)
    return jnp.sum(phi * skill, axis=-1) / jnp.where(length > 0, length, 1.0)
