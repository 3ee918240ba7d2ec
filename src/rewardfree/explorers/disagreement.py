"""Disagreement of an ensemble of forward models (Pathak, Gandhi and Gupta 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import Batch
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers._explorer import ActorCriticExplorer
from rewardfree.explorers._model import Learner, descend, learner, norm
from rewardfree.interfaces import Metrics, Spec
from rewardfree.networks import Mlp, make_mlp


@dataclass(frozen=True)
class Disagreement(ActorCriticExplorer):
    """Where forward models f_k: (s, a) -> s' disagree.

        loss = mean over batch and k of |s' - f_k(s, a)|
        r    = mean over the dimensions of the unbiased variance over k of f_k(s, a)

    Source: Pathak, Gandhi and Gupta, "Self-supervised exploration via disagreement" (2019).

    Differences: the source trains each model on data of its own (a bootstrap) and differentiates the reward;
    the release and this one train all on the same batch, so that only their initialisations differ. The
    GFA-RFE paper's table gives f_k two hidden layers; its release and this one have one.
    """

    models: int = 5
    """Number of forward models."""

    def init_model(self, spec: Spec, key: PRNGKeyArray) -> Learner[list[Mlp]]:
        sizes = (spec.observation + spec.action, self.hidden, spec.observation)
        return learner([make_mlp(k, *sizes) for k in jax.random.split(key, self.models)], self.learning_rate)

    def fit(
        self, model: Learner[list[Mlp]], batch: Batch, key: PRNGKeyArray
    ) -> tuple[Learner[list[Mlp]], Metrics]:
        def loss(nets: list[Mlp]) -> tuple[Array, None]:
            return jnp.stack(
                [norm(batch.next_observation - ahead) for ahead in _ahead(nets, batch)]
            ).mean(), None

        model, value, _ = descend(model, self.learning_rate, loss)
        return model, {"forward_error": value}

    def intrinsic_reward(
        self, model: Learner[list[Mlp]], batch: Batch, values: Values
    ) -> tuple[Learner[list[Mlp]], Float[Array, " B"], Metrics]:
        return model, jnp.stack(_ahead(model.nets, batch)).var(axis=0, ddof=1).mean(axis=-1), {}


def _ahead(nets: list[Mlp], batch: Batch) -> list[Float[Array, "B O"]]:
    x = jnp.concatenate([batch.observation, batch.action], axis=-1)
    return [net(x) for net in nets]
