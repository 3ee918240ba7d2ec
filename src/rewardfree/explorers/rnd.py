"""RND: the error in predicting a fixed random network (Burda et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import Batch
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers._explorer import ActorCriticExplorer
from rewardfree.explorers._model import Learner, RunningMoments, descend, learner, merge, no_moments
from rewardfree.interfaces import Metrics, Spec
from rewardfree.networks import Mlp, make_mlp


class RndModel(NamedTuple):
    """The predictor, what it predicts, and the moments of its error."""

    predictor: Learner[Mlp]
    target: Mlp
    moments: RunningMoments


@dataclass(frozen=True)
class Rnd(ActorCriticExplorer):
    """Where a predictor of a fixed random network errs.

        e(s) = mean over the dimensions of (predictor(x) - target(x))^2,  x the batch-normalised s, clipped
        loss = mean e,  r = e / running std of e

    Source: Burda, Edwards, Storkey and Klimov, "Exploration by random network distillation" (2018).

    Differences: the source normalises observations with moments of all data; the release and this one with
    those of the minibatch. The reward is that of s, not of s', and taken after the predictor's step.
    """

    embedding: int = 512
    """Outputs of predictor and target."""
    clip: float = 5.0
    """Bound on the batch-normalised observation."""

    def init_model(self, spec: Spec, key: PRNGKeyArray) -> RndModel:
        sizes = (spec.observation, self.hidden, self.hidden, self.embedding)
        predictor, target = (make_mlp(k, *sizes) for k in jax.random.split(key))
        return RndModel(learner(predictor, self.learning_rate), target, no_moments())

    def fit(self, model: RndModel, batch: Batch, key: PRNGKeyArray) -> tuple[RndModel, Metrics]:
        def loss(predictor: Mlp) -> tuple[Array, None]:
            return self.error(predictor, model.target, batch.observation).mean(), None

        predictor, value, _ = descend(model.predictor, self.learning_rate, loss)
        return model._replace(predictor=predictor), {"prediction_error": value}

    def intrinsic_reward(
        self, model: RndModel, batch: Batch, values: Values
    ) -> tuple[RndModel, Float[Array, " B"], Metrics]:
        error = self.error(model.predictor.nets, model.target, batch.observation)
        model = model._replace(moments=merge(model.moments, error))
        return model, error / (jnp.sqrt(model.moments.variance) + 1e-8), {}

    def error(self, predictor: Mlp, target: Mlp, observation: Float[Array, "B O"]) -> Float[Array, " B"]:
        """e(s). Batch normalisation divides by the biased spread."""
        x = jnp.clip(jax.nn.standardize(observation, axis=0, epsilon=1e-5), -self.clip, self.clip)
        return jnp.square(target(x) - predictor(x)).mean(axis=-1)
