"""SMM: a mixture of skills that together cover the states (Lee et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import Batch
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers._model import Learner, cross_entropy, descend, learner
from rewardfree.explorers._skills import SkillExplorer, one_hot
from rewardfree.interfaces import Metrics, Spec
from rewardfree.networks import Mlp, make_mlp


class Vae(NamedTuple):
    """A density model of x = [s, z]: encoder to a Gaussian code, decoder back."""

    encoder: Mlp
    decoder: Mlp


class SmmModel(NamedTuple):
    """Density, discriminator, and what both made of the last batch before they learned from it."""

    density: Learner[Vae]
    discriminator: Learner[Mlp]
    reconstruction: Float[Array, " B"]
    surprise: Float[Array, " B"]


@dataclass(frozen=True)
class Smm(SkillExplorer):
    """Skills z that visit states which are rare under a density model.

        density:       loss = kl_scale * KL + mean squared error of the decoded x,  x = [s, z]
        discriminator: loss = mean of -log D(z | s)
        r = |x - decoded x|^2 + log K + sign * (-log D(z | s)),  before the models' step

    Source: Lee, Eysenbach, Parisotto, Xing, Levine and Salakhutdinov, "Efficient exploration via state
    marginal matching" (2019).

    Differences: the objective implies a minus before the cross-entropy; the release has a plus, which is the
    default here, and `--sign objective` has the minus. The discriminator's widths are not printed in the
    GFA-RFE paper: two hidden layers here.
    """

    skills: int = 4
    sign: Literal["released", "objective"] = "released"
    """Sign of the cross-entropy in the reward: plus as released; the objective implies minus."""
    discriminator_rate: float = 1e-3
    """Adam's step size of the discriminator."""
    density_rate: float = 1e-2
    """Adam's step size of the density model."""
    density_hidden: int = 150
    """Width of the density model's two hidden layers, on either side."""
    code: int = 128
    """Length of the density model's code."""
    kl_scale: float = 0.5
    """Scale of the KL term."""

    def draw(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, " K"]:
        return one_hot(rng, size)

    def init_model(self, spec: Spec, key: PRNGKeyArray) -> SmmModel:
        keys = jax.random.split(key, 3)
        inputs, wide = spec.observation + self.skills, self.density_hidden
        vae = Vae(
            make_mlp(keys[0], inputs, wide, wide, 2 * self.code),
            make_mlp(keys[1], self.code, wide, wide, inputs),
        )
        discriminator = make_mlp(keys[2], spec.observation, self.hidden, self.hidden, self.skills)
        return SmmModel(
            learner(vae, self.density_rate),
            learner(discriminator, self.discriminator_rate),
            jnp.zeros(self.batch),
            jnp.zeros(self.batch),
        )

    def fit(self, model: SmmModel, batch: Batch, key: PRNGKeyArray) -> tuple[SmmModel, Metrics]:
        x = jnp.concatenate([batch.observation, batch.skill], axis=-1)
        noise = jax.random.normal(key, (len(x), self.code))

        def density_loss(vae: Vae) -> tuple[Array, Array]:
            kl, error = evidence(vae, x, noise)
            return self.kl_scale * kl.mean() + error.mean(), error.sum(axis=-1)

        def discriminator_loss(net: Mlp) -> tuple[Array, Array]:
            surprise = cross_entropy(net(batch.observation), batch.skill)
            return surprise.mean(), surprise

        density, density_value, reconstruction = descend(model.density, self.density_rate, density_loss)
        discriminator, value, surprise = descend(
            model.discriminator, self.discriminator_rate, discriminator_loss
        )
        metrics = {"density_loss": density_value, "discriminator_loss": value}
        return SmmModel(density, discriminator, reconstruction, surprise), metrics

    def intrinsic_reward(
        self, model: SmmModel, batch: Batch, values: Values
    ) -> tuple[SmmModel, Float[Array, " B"], Metrics]:
        sign = 1.0 if self.sign == "released" else -1.0
        return model, model.reconstruction + jnp.log(self.skills) + sign * model.surprise, {}


def evidence(
    vae: Vae, x: Float[Array, "B x"], noise: Float[Array, "B c"]
) -> tuple[Float[Array, " B"], Float[Array, "B x"]]:
    """KL(code | N(0, 1)) and the squared error of every input."""
    mean, log_variance = jnp.split(vae.encoder(x), 2, axis=-1)
    kl = 0.5 * jnp.sum(jnp.square(mean) + jnp.exp(log_variance) - 1 - log_variance, axis=-1)
    code = mean + jnp.exp(0.5 * log_variance) * noise
    return kl, jnp.square(x - vae.decoder(code))
