"""The network shape of the paper and a residual one, alone and as an ensemble with stacked parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

LAYER_NORM_EPSILON = 1e-5

Init = Literal["orthogonal", "kaiming", "released"]
Shape = Literal["plain", "normed", "residual"]
EXPAND = 2
"""Width of a residual block inside, in widths of the network."""


class Net(eqx.Module):
    """x -> F -> LayerNorm -> tanh -> H -> [LayerNorm ->] ReLU -> out.

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
    scale2: Float[Array, "*m H"] | None = None
    shift2: Float[Array, "*m H"] | None = None

    def __call__(self, x: Float[Array, "*n in"]) -> Float[Array, "*n out"]:
        h = jnp.tanh(layer_norm(x @ self.w1 + self.b1, self.scale, self.shift))
        h = h @ self.w2 + self.b2
        if self.scale2 is not None and self.shift2 is not None:
            h = layer_norm(h, self.scale2, self.shift2)
        return jax.nn.relu(h) @ self.w3 + self.b3


class Residual(eqx.Module):
    """x -> h of width F, h + W2 relu(W1 LayerNorm(h)), LayerNorm -> out: linear but for what the block adds.

    One block of SimBa (Lee et al., "Simplicity bias for scaling up parameters in deep reinforcement
    learning", 2025). Members are stacked as those of `Net`, and share nothing.
    """

    w0: Float[Array, "*m in F"]
    b0: Float[Array, "*m F"]
    scale: Float[Array, "*m F"]
    shift: Float[Array, "*m F"]
    w1: Float[Array, "*m F H"]
    b1: Float[Array, "*m H"]
    w2: Float[Array, "*m H F"]
    b2: Float[Array, "*m F"]
    scale2: Float[Array, "*m F"]
    shift2: Float[Array, "*m F"]
    w3: Float[Array, "*m F out"]
    b3: Float[Array, "*m out"]

    def __call__(self, x: Float[Array, "*n in"]) -> Float[Array, "*n out"]:
        h = x @ self.w0 + self.b0
        inside = jax.nn.relu(layer_norm(h, self.scale, self.shift) @ self.w1 + self.b1)
        h = h + inside @ self.w2 + self.b2
        return layer_norm(h, self.scale2, self.shift2) @ self.w3 + self.b3


Network = Net | Residual


def layer_norm(
    h: Float[Array, "*n F"], scale: Float[Array, " F"], shift: Float[Array, " F"]
) -> Float[Array, "*n F"]:
    """Mean 0 and variance 1 over the units, then the affine map."""
    return jax.nn.standardize(h, axis=-1, epsilon=LAYER_NORM_EPSILON) * scale + shift


def make_net(key: PRNGKeyArray, sizes: tuple[int, int, int, int], init: Init, shape: Shape = "plain") -> Net:
    """A network of sizes (in, F, H, out), with a LayerNorm in its first hidden layer or, `normed`, in both.

    orthogonal: orthogonal matrices, zero biases. kaiming: W, b ~ U(+-1/sqrt(fan in)), i.e. Kaiming with
    a = sqrt 5. released: the fan is read off the wrong axis, W, b ~ U(+-1/sqrt(fan out)).

    Drawn on the host: XLA's QR of several large matrices at once can hang on a CPU with few threads.
    """
    (w1, b1), (w2, b2), (w3, b3) = _layers(key, sizes, init)
    net = Net(w1, b1, *_unit(sizes[1]), w2, b2, w3, b3)
    if shape == "plain":
        return net
    scale2, shift2 = _unit(sizes[2])
    return replace(net, scale2=scale2, shift2=shift2)


def make_residual(key: PRNGKeyArray, sizes: tuple[int, int, int], init: Init) -> Residual:
    """A residual network of sizes (in, F, out)."""
    enter, width, out = sizes
    (w0, b0), (w1, b1), (w2, b2), (w3, b3) = _layers(key, (enter, width, EXPAND * width, width, out), init)
    return Residual(w0, b0, *_unit(width), w1, b1, w2, b2, *_unit(width), w3, b3)


def _unit(width: int) -> tuple[Array, Array]:
    """A LayerNorm's affine map that changes nothing."""
    return jnp.ones(width), jnp.zeros(width)


def _layers(key: PRNGKeyArray, sizes: Sequence[int], init: Init) -> list[tuple[Array, Array]]:
    rng = np.random.default_rng(np.asarray(key))

    def layer(fan_in: int, fan_out: int) -> tuple[Array, Array]:
        if init == "orthogonal":
            return jnp.asarray(_orthogonal(rng, fan_in, fan_out)), jnp.zeros(fan_out)
        bound = (fan_in if init == "kaiming" else fan_out) ** -0.5
        w, b = rng.uniform(-bound, bound, (fan_in, fan_out)), rng.uniform(-bound, bound, fan_out)
        return jnp.asarray(w, jnp.float32), jnp.asarray(b, jnp.float32)

    return [layer(fan_in, fan_out) for fan_in, fan_out in pairwise(sizes)]


class Mlp(eqx.Module):
    """Linear layers with a ReLU between them: the models behind the baselines' rewards."""

    layers: list[tuple[Float[Array, "in out"], Float[Array, " out"]]]

    def __call__(self, x: Float[Array, "*n in"]) -> Float[Array, "*n out"]:
        for number, (w, b) in enumerate(self.layers):
            x = (jax.nn.relu(x) if number else x) @ w + b
        return x


def make_mlp(key: PRNGKeyArray, *sizes: int) -> Mlp:
    """Orthogonal matrices, zero biases."""
    return Mlp(_layers(key, sizes, "orthogonal"))


def _orthogonal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Uniform over matrices with orthonormal rows or columns, whichever are fewer."""
    q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
    q *= np.sign(np.diag(r))
    return (q if rows >= columns else q.T).astype(np.float32)


def make_ensemble(
    key: PRNGKeyArray,
    members: int,
    sizes: tuple[int, int, int, int],
    init: Init,
    share: Literal["nothing", "norm", "trunk"],
    shape: Shape = "plain",
) -> Network:
    """`members` networks stacked; they may share the first affine map, or the trunk up to the tanh.

    Residual ones have no such trunk and share nothing.
    """
    keys = jax.random.split(key, members)
    if shape == "residual":
        enter, width, _, out = sizes
        residuals = [make_residual(k, (enter, width, out), init) for k in keys]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *residuals)
    nets = [make_net(k, sizes, init, shape) for k in keys]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *nets)
    shared = {"nothing": (), "norm": ("scale", "shift"), "trunk": ("w1", "b1", "scale", "shift")}[share]
    return replace(stacked, **{name: getattr(stacked, name)[:1] for name in shared})


def member(ensemble: Network, i: Int[Array, ""] | int) -> Network:
    """One network of the ensemble; a shared leaf (leading axis 1) serves every member."""
    return jax.tree.map(lambda leaf: leaf[i if leaf.shape[0] > 1 else 0], ensemble)


def apply_looped(ensemble: Network, x: Float[Array, "B in"]) -> Float[Array, "N B out"]:
    """Member by member: on a CPU separate matrix products are faster than one batched product."""
    return jnp.stack([member(ensemble, i)(x) for i in range(ensemble.w3.shape[0])])


def apply_batched(ensemble: Network, x: Float[Array, "B in"]) -> Float[Array, "N B out"]:
    """All members in batched products, as an accelerator wants it."""
    axes = jax.tree.map(lambda leaf: 0 if leaf.shape[0] > 1 else None, ensemble)
    flat = jax.tree.map(lambda leaf: leaf if leaf.shape[0] > 1 else leaf[0], ensemble)
    call: Callable[..., Array] = jax.vmap(lambda net, x: net(x), in_axes=(axes, None))
    return call(flat, x)


def apply(ensemble: Network, x: Float[Array, "B in"]) -> Float[Array, "N B out"]:
    """Every member at the same inputs."""
    alone = ensemble.w3.shape[0] == 1
    return (
        apply_looped(ensemble, x) if alone or jax.default_backend() == "cpu" else apply_batched(ensemble, x)
    )
