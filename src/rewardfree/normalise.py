"""Moments of the observations in the data, looked at again at a slowing pace."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rewardfree.data.replay import ReplayBuffer

CLIP = 5.0
FLOOR = 1e-3
"""Least spread: an observation that never moved must not blow up when it first does."""


class Moments(NamedTuple):
    """Mean and spread of observations, and how far out a normalised one may lie."""

    mean: Float[Array, " O"]
    std: Float[Array, " O"]
    clip: Float[Array, ""]


def identity(size: int) -> Moments:
    """Moments that leave an observation as it is."""
    return Moments(jnp.zeros(size), jnp.ones(size), jnp.float32(jnp.inf))


def standardise(moments: Moments, observation: Float[Array, "*n O"]) -> Float[Array, "*n O"]:
    """The observation with the moments taken out, clipped."""
    return jnp.clip((observation - moments.mean) / moments.std, -moments.clip, moments.clip)


def is_refresh(episodes: int) -> bool:
    """True at episode 1, 2, 3, 4, 6, 8, 12, 16, ...: powers of two and three times them."""
    odd = episodes >> (episodes & -episodes).bit_length() - 1
    return odd in (1, 3)


def point(
    moments: Moments, observation: Float[Array, "*n O"], action: Float[Array, "*n A"]
) -> Float[Array, "*n x"]:
    """x = [normalised s, a]: what functions of (s, a) are functions of."""
    return jnp.concatenate([standardise(moments, observation), action], axis=-1)


def refreshed(moments: Moments, buffer: ReplayBuffer) -> Moments:
    """The moments of all that the replay holds, if it is time to look again."""
    return observation_moments(buffer) if is_refresh(buffer.episodes) else moments


def observation_moments(buffer: ReplayBuffer) -> Moments:
    """Moments of all observations that a replay holds."""
    return moments_of(buffer.replay.observation, buffer.size + buffer.episodes)


@jax.jit
def moments_of(observation: Float[Array, "R O"], rows: int) -> Moments:
    """Mean and spread of the first so many rows."""
    filled = (jnp.arange(observation.shape[0]) < rows)[:, None]
    mean = jnp.sum(observation, axis=0, where=filled) / rows
    variance = jnp.sum(jnp.square(observation - mean), axis=0, where=filled) / rows
    return Moments(mean, jnp.maximum(jnp.sqrt(variance), FLOOR), jnp.float32(CLIP))
