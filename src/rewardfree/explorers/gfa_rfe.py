"""GFA-RFE, exploration phase (Algorithm 2), over any bonus oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import Batch, ReplayBuffer
from rewardfree.explorers._actor_critic import Values, regression_weight
from rewardfree.explorers._skills import ScheduledExplorer, direction
from rewardfree.interfaces import Metrics, Oracle, Spec, Value
from rewardfree.normalise import Moments, identity, is_refresh, moments_of, standardise
from rewardfree.oracles.elliptical import Elliptical
from rewardfree.oracles.q_ensemble import QEnsemble


class GfaRfeModel(NamedTuple):
    """The oracle's state, and what the reward is scaled with."""

    oracle: Any
    variance: Float[Array, ""]
    """Running variance of D over minibatches."""
    quantities: Moments
    """What the named quantities are normalised with in an aim."""


@dataclass(frozen=True)
class GfaRfe(ScheduledExplorer):
    """Uncertainty as reward, bonus and regression weight, with D from a bonus oracle.

        target = r + b + gamma^n combine_i T_i(s', a'),  r = intrinsic * D(s, a),  b = beta * D(s, a)
        loss   = mean over the batch of (Q_i(s, a) - target)^2 / sigma^2

    In `fast` r also pays for an aim z, a random direction in the space of the domain's named quantities q,
    which actor and critics see: r = intrinsic * D + aim * z'q(s'). The data is then that of policies which
    pursue rewards of the kind that will be planned for, with the bonus on top, and not of tumbling from one
    rare state to the next.

    Source: "Uncertainty-aware reward-free exploration with general function approximation", Algorithm 2.

    Differences: `paper` is the text and `released` the authors' code; docs/algorithms.md sets them side by
    side, row by row. The defaults are the preset `fast`: another oracle, the elliptical one, and the aims.
    """

    oracle: Oracle = field(default_factory=Elliptical)
    """The bonus oracle D: elliptical, elliptical-inverse, q-ensemble, random-targets or random-returns."""
    intrinsic: float = 1.0
    """Scale of D in the intrinsic reward; 1 - gamma in the paper."""
    beta: float = 0.0
    """Scale of D in the bonus added to the target; 1 in the paper's text, 2 in its table."""
    reward_clip: float | None = None
    """The intrinsic reward is clamped to [0, this]."""
    standardise: bool = True
    """The intrinsic reward is (D - batch mean) / running std of D, times its scale."""
    weight_at: Literal["none", "here", "next"] = "none"
    """Where sigma in the regression weight 1 / sigma^2 is D: nowhere, at (s, a), or at (s', a')."""
    weight_by: Literal["width", "sigma-bar"] = "width"
    """Whether sigma in that weight is D, or the oracle's sigma_bar."""
    weight_floor: float = 0.1
    """Least sigma (the theory's alpha): 1 / 0 must not happen."""
    weight_ceiling: float | None = None
    """Largest sigma."""
    weight_mean_one: bool = True
    """Weights are scaled to mean 1 in a batch."""

    aim: float = 3.0
    """Scale of an aim's reward z'q with |z| = 1 and q in standard deviations; 0: no aims, D alone."""
    aim_clip: float = 2.0
    """Standard deviations up to which a quantity counts: beyond, more of it is no better."""
    aim_none: float = 0.25
    """Share of aims that are z = 0: there the reward is D alone."""
    aim_anew: float = 0.75
    """Share of a minibatch that is learned for aims drawn anew, not for those that it was collected with."""
    skill_every: int = 250
    """Frames after which another aim is drawn; 0: one for the whole episode."""

    prior: float = 0.0
    """Scale of a fixed random network added to each critic: it keeps critics apart where there is no data."""
    critics: int = 2
    share: Literal["nothing", "norm", "trunk"] = "nothing"
    bootstrap: Literal["min", "mean", "own"] = "mean"
    actor_objective: Literal["min", "mean", "sum"] = "mean"
    learning_rate: float = 3e-4
    normalise: bool = True
    chunk: int = 50

    @classmethod
    def presets(cls) -> Mapping[str, GfaRfe]:
        """fast: the default. paper: as the text has it. released: as the authors' code runs.

        weighted: `fast` with Algorithm 1's weights, 1 / sigma_bar^2 in Lambda and in the critics' regression.
        """
        ensemble = cls(
            oracle=QEnsemble(),
            aim=0.0,
            critics=10,
            trained="cycle",
            standardise=False,
            learning_rate=1e-4,
            normalise=False,
            chunk=2,
        )
        paper = replace(
            ensemble,
            intrinsic=0.01,
            beta=1.0,
            weight_at="here",
            weight_floor=1e-3,
            optimiser="own",
            averaged="cycle",
            epsilon=0.2,
            critic_init="kaiming",
            feature=50,
            actor_objective="sum",
        )
        released = replace(
            ensemble,
            intrinsic=2.0,
            reward_clip=10.0,
            target_clip=500.0,
            weight_at="next",
            weight_floor=0.1,
            weight_ceiling=10.0,
            weight_mean_one=False,
            optimiser="joint",
            tau=0.001,  # tau / N, on every member
            critic_init="released",
            share="norm",
        )
        weighted = cls(
            oracle=Elliptical(sigma_epistemic=1.0, sigma_floor=0.1), weight_at="here", weight_by="sigma-bar"
        )
        return {"fast": cls(), "paper": paper, "released": released, "weighted": weighted}

    @property
    def needs_values_here(self) -> bool:
        return self.oracle.reads_critics or (self.weight_at == "here" and self.weight_by == "sigma-bar")

    @property
    def critic_prior(self) -> float:
        return self.prior

    def skill_size(self, spec: Spec) -> int:
        """An aim has an entry for every quantity."""
        return len(spec.quantities) if self.aim else 0

    def draw(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, " Q"]:
        return direction(rng, size) * (rng.random() >= self.aim_none)

    def relabel(self, batch: Batch, key: PRNGKeyArray) -> Batch:
        """Most transitions serve other aims too: off-policy, each is as good for one as for another."""
        if not self.aim:
            return batch
        key_aim, key_none, key_anew = jax.random.split(key, 3)
        aim = jax.random.normal(key_aim, batch.skill.shape)
        aim /= jnp.linalg.norm(aim, axis=-1, keepdims=True)
        aim *= jax.random.uniform(key_none, (len(aim), 1)) >= self.aim_none
        anew = jax.random.uniform(key_anew, (len(aim), 1)) < self.aim_anew
        return batch._replace(skill=jnp.where(anew, aim, batch.skill))

    def init_model(self, spec: Spec, key: PRNGKeyArray) -> GfaRfeModel:
        return GfaRfeModel(self.oracle.init(spec, key), jnp.float32(1.0), identity(len(spec.quantities)))

    def absorb_model(self, model: GfaRfeModel, replay: ReplayBuffer, value: Value) -> GfaRfeModel:
        if self.aim and is_refresh(replay.episodes):
            seen = moments_of(replay.replay.quantities, replay.size + replay.episodes)
            model = model._replace(quantities=seen)
        return model._replace(oracle=self.oracle.absorb(model.oracle, replay, value))

    def intrinsic_reward(
        self, model: GfaRfeModel, batch: Batch, values: Values
    ) -> tuple[GfaRfeModel, Float[Array, " B"], Metrics]:
        """r + b: the intrinsic reward, an aim's and the bonus enter the target alike."""
        oracle, fitted = self.oracle.fit(model.oracle, batch, values)
        model = model._replace(oracle=oracle)
        bonus = self.oracle.width(model.oracle, batch.observation, batch.action, values.here)
        metrics = {**fitted, "bonus": bonus.mean(), "bonus_spread": bonus.std()}
        reward = bonus
        if self.standardise:
            model = model._replace(variance=0.99 * model.variance + 0.01 * bonus.var())
            reward = (bonus - bonus.mean()) / jnp.sqrt(model.variance)
        reward = self.intrinsic * reward
        if self.reward_clip is not None:
            metrics["reward_clipped"] = jnp.mean(reward > self.reward_clip)
            reward = jnp.clip(reward, 0.0, self.reward_clip)
        if self.aim:
            quantities = standardise(model.quantities, batch.next_quantities)
            aimed = jnp.sum(batch.skill * jnp.clip(quantities, -self.aim_clip, self.aim_clip), axis=-1)
            metrics["aimed"] = aimed.mean()
            reward = reward + self.aim * aimed
        if self.oracle.reads_critics:
            metrics["bonus_per_q"] = bonus.mean() / (jnp.abs(values.here).mean() + 1e-8)
        return model, reward + self.beta * bonus, metrics

    def weight(self, model: GfaRfeModel, batch: Batch, values: Values) -> tuple[Float[Array, " B"], Metrics]:
        """1 / sigma^2 with sigma = D between its floor and ceiling."""
        if self.weight_at == "none":
            return jnp.ones_like(batch.discount), {}
        if self.weight_at == "here":
            observation, action, critics = batch.observation, batch.action, values.here
        else:
            observation, action, critics = batch.next_observation, values.next_action, values.next
        width = self.oracle.width(model.oracle, observation, action, critics)
        sigma = width
        if self.weight_by == "sigma-bar":
            sigma_bar = self.oracle.sigma_bar(lambda: width, lambda: critics.mean(axis=0))
            sigma = jnp.broadcast_to(sigma_bar, width.shape)
        weight = regression_weight(sigma, self.weight_floor, self.weight_ceiling, self.weight_mean_one)
        return weight, {"weight_spread": weight.std() / weight.mean()}
