"""What the models behind the baselines' rewards have in common: an optimiser, moments, entropies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

T = TypeVar("T")


class Learner(NamedTuple, Generic[T]):
    """Networks and the state of their Adam."""

    nets: T
    optimiser: optax.OptState


def learner(nets: T, learning_rate: float) -> Learner[T]:
    """Networks before their first step."""
    return Learner(nets, optax.adam(learning_rate).init(nets))


def descend(
    model: Learner[T], learning_rate: float, loss: Callable[[T], tuple[Array, Any]]
) -> tuple[Learner[T], Array, Any]:
    """One Adam step down a loss; returns the loss and what came with it, both before the step."""
    (value, aside), gradient = jax.value_and_grad(loss, has_aux=True)(model.nets)
    step, state = optax.adam(learning_rate).update(gradient, model.optimiser)
    return Learner(optax.apply_updates(model.nets, step), state), value, aside


def norm(x: Float[Array, "B d"]) -> Float[Array, " B"]:
    """Euclidean norms of the rows, with gradient 0 where a row is 0."""
    square = jnp.sum(jnp.square(x), axis=-1)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


class RunningMoments(NamedTuple):
    """Mean and variance of all numbers seen so far."""

    mean: Float[Array, ""]
    variance: Float[Array, ""]
    n: Float[Array, ""]


def no_moments() -> RunningMoments:
    return RunningMoments(jnp.float32(0.0), jnp.float32(1.0), jnp.float32(1e-4))


def merge(seen: RunningMoments, x: Array) -> RunningMoments:
    """The moments with x in them: the parallel formula, with x's unbiased variance."""
    total = seen.n + x.size
    delta = x.mean() - seen.mean
    squares = seen.variance * seen.n + x.var(ddof=1) * x.size + jnp.square(delta) * seen.n * x.size / total
    return RunningMoments(seen.mean + delta * x.size / total, squares / total, total)


def nearest(x: Float[Array, "B d"], k: int) -> Float[Array, "B k"]:
    """Distances to the k nearest points of the batch, the point itself (distance 0) among them.

    From the Gram matrix, B x B: |x - y|^2 = |x|^2 + |y|^2 - 2 xy, about the mean so that little cancels.
    """
    x = x - x.mean(axis=0)
    square = jnp.sum(jnp.square(x), axis=-1)
    distance = square[:, None] + square[None, :] - 2 * x @ x.T
    distance = jnp.fill_diagonal(jnp.maximum(distance, 0.0), 0.0, inplace=False)
    return jnp.sqrt(-jax.lax.top_k(-distance, k)[0])


def particle_entropy(
    distances: Float[Array, "B k"], scale: Float[Array, ""] | float = 1.0, clip: float = 0.0
) -> Float[Array, " B"]:
    """log(1 + mean over k of max(distance / scale - clip, 0))."""
    return jnp.log1p(jnp.maximum(distances / scale - clip, 0.0).mean(axis=1))


def cross_entropy(logits: Float[Array, "B K"], skill: Float[Array, "B K"]) -> Float[Array, " B"]:
    """-log D(z | s) of a one-hot z."""
    return -jnp.sum(skill * jax.nn.log_softmax(logits), axis=-1)
