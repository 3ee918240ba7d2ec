"""The one network shape of the paper, alone and as an ensemble with stacked parameters."""

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
Normed = Literal["first", "both"]


class Net(eqx.Module):
    """x -> F -> LayerNorm -> tanh -> H -> [LayerNorm ->] ReLU -> out, [plus a fixed random network of x].

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
    prior: Net | None = None
    """Never learned: its gradient is zero, so Adam and the targets' average leave it as it is."""

    def __call__(self, x: Float[Array, "*n in"]) -> Float[Array, "*n out"]:
        h = jnp.tanh(layer_norm(x @ self.w1 + self.b1, self.scale, self.shift))
        h = h @ self.w2 + self.b2
        if self.scale2 is not None and self.shift2 is not None:
            h = layer_norm(h, self.scale2, self.shift2)
        out = jax.nn.relu(h) @ self.w3 + self.b3
        return out if self.prior is None else out + jax.lax.stop_gradient(self.prior)(x)


def layer_norm(
    h: Float[Array, "*n F"], scale: Float[Array, " F"], shift: Float[Array, " F"]
) -> Float[Array, "*n F"]:
    """Mean 0 and variance 1 over the units, then the affine map."""
    return jax.nn.standardize(h, axis=-1, epsilon=LAYER_NORM_EPSILON) * scale + shift


def make_net(
    key: PRNGKeyArray, sizes: tuple[int, int, int, int], init: Init, normed: Normed = "first"
) -> Net:
    """A network of sizes (in, F, H, out), with a LayerNorm in its first or in both hidden layers.

    orthogonal: orthogonal matrices, zero biases. kaiming: W, b ~ U(+-1/sqrt(fan in)), i.e. Kaiming with
    a = sqrt 5. released: the fan is read off the wrong axis, W, b ~ U(+-1/sqrt(fan out)).

    Drawn on the host: XLA's QR of several large matrices at once can hang on a CPU with few threads.
    """
    (w1, b1), (w2, b2), (w3, b3) = _layers(key, sizes, init)
    net = Net(w1, b1, jnp.ones(sizes[1]), jnp.zeros(sizes[1]), w2, b2, w3, b3)
    return net if normed == "first" else replace(net, scale2=jnp.ones(sizes[2]), shift2=jnp.zeros(sizes[2]))


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
    normed: Normed = "first",
    prior: float = 0.0,
) -> Net:
    """`members` networks stacked; they may share the first affine map, or the trunk up to the tanh.

    With a prior each has a fixed random network of its own added to it, of that scale (Osband, Aslanides and
    Cassirer, "Randomized prior functions for deep reinforcement learning", 2018).
    """
    keys = jax.random.split(key, members)
    nets = [make_net(k, sizes, init, normed) for k in keys]
    if prior:
        nets = [
            replace(net, prior=_scaled(make_net(jax.random.fold_in(k, 1), sizes, init, normed), prior))
            for k, net in zip(keys, nets, strict=True)
        ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *nets)
    shared = {"nothing": (), "norm": ("scale", "shift"), "trunk": ("w1", "b1", "scale", "shift")}[share]
    return replace(stacked, **{name: getattr(stacked, name)[:1] for name in shared})


def _scaled(net: Net, scale: float) -> Net:
    return replace(net, w3=scale * net.w3, b3=scale * net.b3)


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
