"""The one network shape of the paper, alone and as an ensemble with stacked parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

LAYER_NORM_EPSILON = 1e-5

Init = Literal["orthogonal", "kaiming", "released"]


class Net(eqx.Module):
    """x -> F -> LayerNorm -> tanh -> H -> ReLU -> out.

    As an ensemble every leaf has a leading member axis; its size is 1 where all members share the leaf.
    """

    w1: Float[Array, "*m in F"]
    b1: Float[Array, "*m F"]
    scale: Float[Array, "*m F"]
    shift: Float[Array, "*m F"]
    w2: Float[Array, "*m F H"]
    b2: Float[Array, "*m H"]
    w3: Float[Array, "*m H out"]
    b3: Float[Array, "*m out"]

    def __call__(self, x: Float[Array, "*n in"]) -> Float[Array, "*n out"]:
        h = x @ self.w1 + self.b1
        h = jax.nn.standardize(h, axis=-1, epsilon=LAYER_NORM_EPSILON) * self.scale + self.shift
        h = jax.nn.relu(jnp.tanh(h) @ self.w2 + self.b2)
        return h @ self.w3 + self.b3


@partial(jax.jit, static_argnums=(1, 2))
def make_net(key: PRNGKeyArray, sizes: tuple[int, int, int, int], init: Init) -> Net:
    """A network of sizes (in, F, H, out).

    orthogonal: orthogonal matrices, zero biases. kaiming: W, b ~ U(+-1/sqrt(fan in)), i.e. Kaiming with
    a = sqrt 5. released: the fan is read off the wrong axis, W, b ~ U(+-1/sqrt(fan out)).
    """
    keys = jax.random.split(key, 6)
    inputs, feature, hidden, out = sizes

    def layer(i: int, fan_in: int, fan_out: int) -> tuple[Array, Array]:
        if init == "orthogonal":
            return jax.nn.initializers.orthogonal()(keys[i], (fan_in, fan_out)), jnp.zeros(fan_out)
        bound = (fan_in if init == "kaiming" else fan_out) ** -0.5
        w = jax.random.uniform(keys[i], (fan_in, fan_out), minval=-bound, maxval=bound)
        return w, jax.random.uniform(keys[i + 3], (fan_out,), minval=-bound, maxval=bound)

    (w1, b1), (w2, b2), (w3, b3) = layer(0, inputs, feature), layer(1, feature, hidden), layer(2, hidden, out)
    return Net(w1, b1, jnp.ones(feature), jnp.zeros(feature), w2, b2, w3, b3)


@partial(jax.jit, static_argnums=(1, 2, 3, 4))
def make_ensemble(
    key: PRNGKeyArray,
    members: int,
    sizes: tuple[int, int, int, int],
    init: Init,
    share: Literal["nothing", "norm", "trunk"],
) -> Net:
    """`members` networks stacked; they may share the LayerNorm's affine map, or the trunk up to the tanh."""
    stacked = jax.vmap(lambda k: make_net(k, sizes, init))(jax.random.split(key, members))
    shared = {"nothing": (), "norm": ("scale", "shift"), "trunk": ("w1", "b1", "scale", "shift")}[share]
    return replace(stacked, **{name: getattr(stacked, name)[:1] for name in shared})


def member(ensemble: Net, i: Int[Array, ""] | int) -> Net:
    """One network of the ensemble; a shared leaf (leading axis 1) serves every member."""
    return jax.tree.map(lambda leaf: leaf[i if leaf.shape[0] > 1 else 0], ensemble)


def apply_looped(ensemble: Net, x: Float[Array, "B in"]) -> Float[Array, "N B out"]:
    """Member by member: on a CPU separate matrix products are faster than one batched product."""
    return jnp.stack([member(ensemble, i)(x) for i in range(ensemble.w3.shape[0])])


def apply_batched(ensemble: Net, x: Float[Array, "B in"]) -> Float[Array, "N B out"]:
    """All members in batched products, as an accelerator wants it."""
    axes = jax.tree.map(lambda leaf: 0 if leaf.shape[0] > 1 else None, ensemble)
    flat = jax.tree.map(lambda leaf: leaf if leaf.shape[0] > 1 else leaf[0], ensemble)
    call: Callable[..., Array] = jax.vmap(lambda net, x: net(x), in_axes=(axes, None))
    return call(flat, x)


def apply(ensemble: Net, x: Float[Array, "B in"]) -> Float[Array, "N B out"]:
    """Every member at the same inputs."""
    alone = ensemble.w3.shape[0] == 1
    return (
        apply_looped(ensemble, x) if alone or jax.default_backend() == "cpu" else apply_batched(ensemble, x)
    )
