"""The network against NumPy, and the ensemble's two ways of running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rewardfree.networks import (
    Net,
    Normed,
    apply,
    apply_batched,
    apply_looped,
    make_ensemble,
    make_net,
    member,
)

SIZES = (5, 6, 7, 2)


@pytest.mark.parametrize("normed", ["first", "both"])
def test_a_network_computes_what_its_formula_says(normed: Normed) -> None:
    def layer_norm(h: np.ndarray) -> np.ndarray:
        normed: np.ndarray = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-5)
        return normed

    net = make_net(jax.random.PRNGKey(0), SIZES, "kaiming", normed)
    x = np.random.default_rng(0).normal(size=(4, 5))
    h = np.tanh(layer_norm(x @ np.asarray(net.w1) + np.asarray(net.b1)))
    h = h @ np.asarray(net.w2) + np.asarray(net.b2)
    if normed == "both":
        shift2 = np.linspace(-1, 1, 7)
        net = replace(net, shift2=jnp.asarray(shift2, jnp.float32))
        h = layer_norm(h) + shift2
    h = np.maximum(h, 0)
    np.testing.assert_allclose(net(jnp.asarray(x)), h @ np.asarray(net.w3) + np.asarray(net.b3), atol=1e-5)


@pytest.mark.parametrize("normed", ["first", "both"])
@pytest.mark.parametrize("share", ["nothing", "norm", "trunk"])
def test_looped_and_batched_ensembles_agree(
    share: Literal["nothing", "norm", "trunk"], normed: Normed
) -> None:
    ensemble = make_ensemble(jax.random.PRNGKey(1), 3, SIZES, "kaiming", share, normed)
    x = jax.random.normal(jax.random.PRNGKey(2), (4, 5))
    looped = apply_looped(ensemble, x)
    assert looped.shape == (3, 4, 2)
    np.testing.assert_allclose(looped, apply_batched(ensemble, x), atol=1e-5)
    np.testing.assert_allclose(looped[2], member(ensemble, 2)(x), atol=1e-6)


@pytest.mark.parametrize("share", ["nothing", "norm", "trunk"])
def test_looped_and_batched_ensembles_learn_the_same(share: Literal["nothing", "norm", "trunk"]) -> None:
    ensemble = make_ensemble(jax.random.PRNGKey(1), 3, SIZES, "kaiming", share, "both")
    x = jax.random.normal(jax.random.PRNGKey(2), (4, 5))
    target = jax.random.normal(jax.random.PRNGKey(3), (3, 4, 2))

    def gradients(run: Callable[[Net, jax.Array], jax.Array]) -> tuple[Net, jax.Array]:
        return jax.grad(lambda net, x: jnp.square(run(net, x) - target).sum(), argnums=(0, 1))(ensemble, x)

    looped, batched = gradients(apply_looped), gradients(apply_batched)
    for one, other in zip(jax.tree.leaves(looped), jax.tree.leaves(batched), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(("platform", "products"), [("cpu", 9), ("gpu", 3), ("tpu", 3)])
def test_the_platform_decides_how_an_ensemble_runs(
    platform: str, products: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    ensemble = make_ensemble(jax.random.PRNGKey(1), 3, SIZES, "kaiming", "nothing")
    fresh = partial(apply)  # traced anew: a program is kept by its function
    program = str(jax.make_jaxpr(fresh)(ensemble, jnp.ones((4, 5))))
    assert program.count("dot_general") == products  # three layers of three members, or three batched layers


def test_sharing_is_a_leading_axis_of_one() -> None:
    def leading(share: Literal["nothing", "norm", "trunk"]) -> set[str]:
        net = make_ensemble(jax.random.PRNGKey(0), 3, SIZES, "kaiming", share, "both")
        return {name for name, leaf in vars(net).items() if leaf is not None and leaf.shape[0] == 1}

    assert leading("nothing") == set()
    assert leading("norm") == {"scale", "shift"}
    assert leading("trunk") == {"w1", "b1", "scale", "shift"}


@pytest.mark.parametrize("share", ["nothing", "trunk"])
def test_a_prior_is_a_fixed_random_network_of_its_own_for_each_member(
    share: Literal["nothing", "trunk"],
) -> None:
    plain = make_ensemble(jax.random.PRNGKey(1), 3, SIZES, "kaiming", share)
    ensemble = make_ensemble(jax.random.PRNGKey(1), 3, SIZES, "kaiming", share, prior=2.0)
    x = jax.random.normal(jax.random.PRNGKey(2), (4, 5))
    assert ensemble.prior is not None
    added = apply_looped(ensemble.prior, x)
    np.testing.assert_allclose(apply_looped(ensemble, x), apply_looped(plain, x) + added, atol=1e-5)
    np.testing.assert_allclose(apply_batched(ensemble, x), apply_looped(ensemble, x), atol=1e-5)
    assert np.abs(added - added[:1])[1:].max() > 0.1

    def total(net: Net, x: jax.Array) -> jax.Array:
        return apply_looped(net, x).sum()

    by_weights, by_input = jax.grad(total, argnums=(0, 1))(ensemble, x)
    assert all(not leaf.any() for leaf in jax.tree.leaves(by_weights.prior))
    by_hand = jax.grad(total, argnums=1)(plain, x) + jax.grad(total, argnums=1)(ensemble.prior, x)
    np.testing.assert_allclose(by_input, by_hand, atol=1e-5)  # the actor feels it


def test_initialisations_have_their_bounds() -> None:
    sizes = (100, 400, 400, 1)
    kaiming = make_net(jax.random.PRNGKey(0), sizes, "kaiming")
    released = make_net(jax.random.PRNGKey(0), sizes, "released")
    orthogonal = make_net(jax.random.PRNGKey(0), sizes, "orthogonal")
    # the largest of many uniform numbers is close to the bound: 1/sqrt(in), or 1/sqrt(out)
    for net, bounds in ((kaiming, (0.1, 0.05, 0.05)), (released, (0.05, 0.05, 1.0))):
        for w, b, bound in zip((net.w1, net.w2, net.w3), (net.b1, net.b2, net.b3), bounds, strict=True):
            assert 0.97 * bound < np.abs(w).max() <= bound
            assert 0 < np.abs(b).max() <= bound
    np.testing.assert_allclose(orthogonal.w2 @ orthogonal.w2.T, np.eye(400), atol=1e-4)
    assert not orthogonal.b1.any()
