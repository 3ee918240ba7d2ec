"""The linear class's bonus in closed form, on random Fourier features of (s, a)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rewardfree.data.replay import Replay, ReplayBuffer, take
from rewardfree.interfaces import Oracle, Spec, Value
from rewardfree.normalise import Moments, identity, is_refresh, observation_moments, standardise
from rewardfree.oracles._sigma import SigmaBar

BLOCK = 1000
"""Transitions whose features are added at once."""


class EllipticalState(NamedTuple):
    """The feature map and what the data has told about it."""

    frequency: Float[Array, "x d"]
    phase: Float[Array, " d"]
    seen: Moments
    precision: Float[Array, "d d"]
    """Lambda = ridge I + sum phi phi' / sigma_bar^2 over all data."""
    whiten: Float[Array, "d d"]
    """C^-1 of Lambda = C C', so that phi' Lambda^-1 phi = norm(C^-1 phi)^2."""
    absorbed: Int[Array, ""]
    """Transitions that are in Lambda."""
    lens: Any
    """What else the features are features of; nothing unless it is learned."""


@dataclass(frozen=True)
class Elliptical(SigmaBar, Oracle):
    """D(s, a) = sqrt(phi' Lambda^-1 phi), phi = sqrt(2/d) cos(W x + b), x = [normalised s, action_scale a].

    Nothing is learned, so D is right as soon as an episode is in Lambda. sigma_bar is that of the time a
    transition came, as in Algorithm 1.
    """

    features: int = 512
    """Number of random features d."""
    length_scale: float = 2.0
    """W ~ N(0, 1 / (length_scale^2 dim x)): larger is smoother."""
    ridge: float = 1.0
    """Lambda before any data is this times the identity."""
    action_scale: float = 0.0
    """How much of x is the action. At 0 D is one of states alone: it pays for where actions lead, not for
    actions as such."""

    @property
    def reads_critics(self) -> bool:
        return False

    def init(self, spec: Spec, key: PRNGKeyArray) -> EllipticalState:
        key_frequency, key_phase = jax.random.split(key)
        size, d = self.view_of(spec) + spec.action, self.features
        spread = 1.0 / (self.length_scale * size**0.5)
        return EllipticalState(
            frequency=spread * jax.random.normal(key_frequency, (size, d)),
            phase=jax.random.uniform(key_phase, (d,), maxval=2 * jnp.pi),
            seen=identity(spec.observation),
            lens=(),
            **self._empty(),
        )

    def view_of(self, spec: Spec) -> int:
        """Numbers that x holds of a state."""
        return spec.observation

    def view(self, state: EllipticalState, observation: Float[Array, "B O"]) -> Float[Array, "B v"]:
        """What x holds of a state."""
        return standardise(state.seen, observation)

    def _empty(self) -> dict[str, Array]:
        identity = jnp.eye(self.features)
        return {
            "precision": self.ridge * identity,
            "whiten": self.ridge**-0.5 * identity,
            "absorbed": jnp.int32(0),
        }

    def phi(
        self, state: EllipticalState, observation: Float[Array, "B O"], action: Float[Array, "B A"]
    ) -> Float[Array, "B d"]:
        x = jnp.concatenate([self.view(state, observation), self.action_scale * action], axis=-1)
        turn = x @ state.frequency + state.phase
        return (2 / self.features) ** 0.5 * jnp.cos(turn)

    def width(
        self,
        state: EllipticalState,
        observation: Float[Array, "B O"],
        action: Float[Array, "B A"],
        values: Float[Array, "N B"],
    ) -> Float[Array, " B"]:
        return _norm(self.phi(state, observation, action), state.whiten)

    def absorb(self, state: EllipticalState, replay: ReplayBuffer, value: Value) -> EllipticalState:
        """Add the new transitions; when the normalisation is refreshed, phi changes: add all anew."""
        if is_refresh(replay.episodes):
            state = state._replace(seen=observation_moments(replay), **self._empty())
        return self._add(state, replay.replay, value)

    @partial(jax.jit, static_argnums=0)
    def _add(self, state: EllipticalState, replay: Replay, value: Value) -> EllipticalState:
        """Lambda += sum phi phi' / sigma_bar^2 over the transitions that are not in it yet."""

        def add_block(block: Array, state: EllipticalState) -> EllipticalState:
            index = first + block * BLOCK + jnp.arange(BLOCK)
            batch = take(replay, index)
            phi = self.phi(state, batch.observation, batch.action)
            sigma_bar = self.sigma_bar(
                lambda: _norm(phi, state.whiten), lambda: value(batch.observation, batch.action)
            )
            weight = jnp.where(index < replay.size, 1.0, 0.0) / sigma_bar**2
            precision = state.precision + phi.T @ (weight[:, None] * phi)
            whiten = _inverse_factor(precision) if self.sigma_epistemic else state.whiten
            return state._replace(precision=precision, whiten=whiten)

        first = state.absorbed
        state = jax.lax.fori_loop(0, -(-(replay.size - first) // BLOCK), add_block, state)
        return state._replace(whiten=_inverse_factor(state.precision), absorbed=replay.size)


def _norm(phi: Float[Array, "B d"], whiten: Float[Array, "d d"]) -> Float[Array, " B"]:
    return jnp.linalg.norm(phi @ whiten.T, axis=-1)


def _inverse_factor(precision: Float[Array, "d d"]) -> Float[Array, "d d"]:
    factor = jnp.linalg.cholesky(precision)
    return jax.scipy.linalg.solve_triangular(factor, jnp.eye(len(precision)), lower=True)
