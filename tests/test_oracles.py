"""Bonus oracles: D in closed form against a calculation in float64, and how it moves with data."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import SPEC, make_episode

from rewardfree.data.replay import Batch, ReplayBuffer, take
from rewardfree.explorers._actor_critic import Values
from rewardfree.interfaces import Oracle
from rewardfree.normalise import point
from rewardfree.oracles.elliptical import Elliptical, EllipticalState
from rewardfree.oracles.elliptical_inverse import EllipticalInverse
from rewardfree.oracles.q_ensemble import QEnsemble
from rewardfree.oracles.random_returns import RandomReturns
from rewardfree.oracles.random_targets import RandomTargets

KEY = jax.random.PRNGKey(0)
ORACLE = Elliptical(features=12, length_scale=1.5, ridge=0.5, action_scale=0.7)
NONE = jnp.zeros((0, 0))
VALUE = jax.tree_util.Partial(lambda s, a: s[:, 0])  # type: ignore[no-untyped-call]
"""Some function of (s, a), in the place of the critics."""


def buffer_of(episodes: int) -> ReplayBuffer:
    buffer = ReplayBuffer(SPEC, 100, 3, 0.99)
    for seed in range(episodes):
        buffer.append(make_episode(5, seed))
    return buffer


def absorbed(oracle: Elliptical, episodes: int) -> EllipticalState:
    """The state after so many episodes, each noticed as it comes."""
    state, buffer = oracle.init(SPEC, KEY), buffer_of(0)
    for seed in range(episodes):
        buffer.append(make_episode(5, seed))
        state = oracle.absorb(state, buffer, VALUE)
    return state


def features_by_hand(state: EllipticalState, oracle: Elliptical, s: np.ndarray, a: np.ndarray) -> np.ndarray:
    seen = np.clip((s - np.asarray(state.seen.mean)) / np.asarray(state.seen.std), -5, 5)
    x = np.concatenate([seen, oracle.action_scale * a], axis=1).astype(np.float64)
    return np.sqrt(2 / oracle.features) * np.cos(x @ np.asarray(state.frequency) + np.asarray(state.phase))


def width(oracle: Elliptical, state: EllipticalState, s: np.ndarray, a: np.ndarray) -> np.ndarray:
    return np.asarray(oracle.width(state, jnp.asarray(s), jnp.asarray(a), NONE))


def test_disagreement_is_the_unbiased_standard_deviation() -> None:
    values = jnp.array([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]])
    d = QEnsemble().width((), jnp.zeros((2, 3)), jnp.zeros((2, 2)), values)
    np.testing.assert_allclose(d, [np.sqrt((4 + 1 + 9) / 2), 0.0], rtol=1e-6)  # mean 3, n - 1 = 2


@pytest.mark.parametrize("episodes", [4, 5, 7])  # with and without episodes since the last refresh
def test_elliptical_d_is_its_closed_form(episodes: int) -> None:
    state = absorbed(ORACLE, episodes)
    data = [make_episode(5, seed) for seed in range(episodes)]
    s = np.concatenate([episode["observation"][:-1] for episode in data])
    a = np.concatenate([episode["action"] for episode in data])
    phi = features_by_hand(state, ORACLE, s, a)
    precision = 0.5 * np.eye(12) + phi.T @ phi
    expected = np.sqrt(np.einsum("bi,ij,bj->b", phi, np.linalg.inv(precision), phi))
    np.testing.assert_allclose(width(ORACLE, state, s, a), expected, rtol=1e-4)


def test_d_can_be_one_of_states_alone() -> None:
    oracle = dataclasses.replace(ORACLE, action_scale=0.0)
    episode = make_episode(5, 0)
    s, a = episode["observation"][:-1], episode["action"]
    for one, same in ((oracle, True), (ORACLE, False)):
        state = absorbed(one, 4)
        np.testing.assert_equal(np.allclose(width(one, state, s, a), width(one, state, s, -a)), same)


def test_d_starts_at_the_prior_and_never_grows_with_data() -> None:
    probe = make_episode(5, 99)
    s, a = probe["observation"][:-1], probe["action"]
    start = ORACLE.init(SPEC, KEY)
    phi = features_by_hand(start, ORACLE, s, a)
    np.testing.assert_allclose(
        width(ORACLE, start, s, a), np.linalg.norm(phi, axis=1) / np.sqrt(0.5), rtol=1e-4
    )
    fourth, fifth = absorbed(ORACLE, 4), absorbed(ORACLE, 5)  # the normalisation is the same in both
    assert (width(ORACLE, fifth, s, a) <= width(ORACLE, fourth, s, a) + 1e-6).all()
    assert (width(ORACLE, fifth, s, a) < width(ORACLE, fourth, s, a)).any()


def test_sigma_bar_is_taken_when_a_transition_comes() -> None:
    oracle = dataclasses.replace(ORACLE, sigma_epistemic=2.0, sigma_floor=0.7)
    state = absorbed(oracle, 1)
    episode = make_episode(5, 0)
    phi = features_by_hand(state, oracle, episode["observation"][:-1], episode["action"])
    prior = np.linalg.norm(phi, axis=1) / np.sqrt(0.5)  # D before the episode
    sigma_bar = np.maximum(2.0 * np.sqrt(prior), 0.7)
    expected = 0.5 * np.eye(12) + phi.T @ (phi / sigma_bar[:, None] ** 2)
    np.testing.assert_allclose(state.precision, expected, rtol=1e-4, atol=1e-5)
    assert (sigma_bar > 0.7).all()


def test_the_aleatoric_term_reads_the_critics_when_a_transition_comes() -> None:
    oracle = dataclasses.replace(ORACLE, sigma_epistemic=0.5, sigma_aleatoric=3.0, sigma_floor=0.7)
    state = absorbed(oracle, 1)
    episode = make_episode(5, 0)
    s = episode["observation"][:-1]
    phi = features_by_hand(state, oracle, s, episode["action"])
    prior = np.linalg.norm(phi, axis=1) / np.sqrt(0.5)
    aleatoric = 3.0 * np.sqrt(np.clip(s[:, 0], 0.0, 1.0))  # Line 14, with VALUE for f
    sigma_bar = np.maximum(np.maximum(0.5 * np.sqrt(prior), aleatoric), 0.7)
    expected = 0.5 * np.eye(12) + phi.T @ (phi / sigma_bar[:, None] ** 2)
    np.testing.assert_allclose(state.precision, expected, rtol=1e-4, atol=1e-5)
    assert len({*np.sign(s[:, 0])}) == 2  # the clip at 0 was there to be seen


def fitted(oracle: Oracle, steps: int, rows: int) -> tuple[Any, Batch, Values]:
    """The oracle's state after so many steps on the first rows of some data."""
    buffer = buffer_of(4)
    batch = take(buffer.replay, jnp.arange(rows))
    values = Values(jnp.ones((2, rows)), jnp.ones((2, rows)), batch.action)
    state = oracle.absorb(oracle.init(SPEC, KEY), buffer, VALUE)
    step = jax.jit(oracle.fit)
    for _ in range(steps):
        state, _ = step(state, batch, values)
    return state, batch, values


LEARNED = [
    RandomTargets(net_width=32, targets=4),
    RandomReturns(net_width=32, members=3, rewards=4, horizon=0.0),
]


@pytest.mark.parametrize("oracle", LEARNED, ids=lambda oracle: type(oracle).__name__)
def test_a_learned_width_falls_where_there_is_data_and_less_elsewhere(oracle: Oracle) -> None:
    state, batch, _ = fitted(oracle, 400, rows=10)
    before, _, _ = fitted(oracle, 0, rows=10)
    far = make_episode(5, 77)

    def ratio(s: np.ndarray, a: np.ndarray) -> float:
        points = jnp.asarray(s), jnp.asarray(a)
        return float(oracle.width(state, *points, NONE).mean() / oracle.width(before, *points, NONE).mean())

    here = ratio(np.asarray(batch.observation), np.asarray(batch.action))
    assert here < 0.2
    assert ratio(far["observation"][:-1], far["action"]) > 2 * here


@pytest.mark.parametrize("oracle", LEARNED, ids=lambda oracle: type(oracle).__name__)
def test_learned_oracles_weigh_by_sigma_bar(oracle: Any) -> None:
    """With sigma_bar = alpha the loss is that without weights over alpha^2."""
    _, batch, values = fitted(oracle, 0, rows=10)
    state = oracle.init(SPEC, KEY)
    (plain,) = oracle.fit(state, batch, values)[1].values()
    (scaled,) = dataclasses.replace(oracle, sigma_floor=2.0).fit(state, batch, values)[1].values()
    np.testing.assert_allclose(scaled, plain / 4, rtol=1e-5)
    aleatoric = dataclasses.replace(oracle, sigma_aleatoric=3.0)
    assert aleatoric.reads_critics
    assert not oracle.reads_critics
    (noisy,) = aleatoric.fit(state, batch, values)[1].values()  # c sqrt(min(1, 1)) = 3 everywhere
    np.testing.assert_allclose(noisy, plain / 9, rtol=1e-5)


def test_random_returns_are_the_returns_of_the_rewards() -> None:
    """In a state that leads to itself, Q_k = r_k / (1 - gamma^n)."""
    oracle = RandomReturns(net_width=32, members=2, rewards=3, net_tau=0.1, net_rate=3e-3)
    rows = 4
    s, a = jnp.full((rows, 3), 0.3), jnp.zeros((rows, 2))
    zeros = jnp.zeros(rows)
    batch = Batch(s, a, zeros, zeros + 0.5, s, *jnp.zeros((2, rows, 0)))
    values = Values(jnp.ones((2, rows)), jnp.ones((2, rows)), a)
    state = oracle.init(SPEC, KEY)
    step = jax.jit(oracle.fit)
    for _ in range(1500):
        state, _ = step(state, batch, values)
    x = point(state.seen, s, a)
    for net in state.nets.nets:
        np.testing.assert_allclose(net(x), state.rewards(x) / 0.5, rtol=1e-2, atol=1e-2)


def test_an_inverse_model_sees_what_actions_change() -> None:
    """The first entry of s moves with the action, the others are noise: h ends up moving with the first."""
    oracle = EllipticalInverse(features=12, embedding=2, net_width=32)
    rng = np.random.default_rng(0)
    s = rng.standard_normal((256, 3)).astype(np.float32)
    a = rng.uniform(-1, 1, (256, 2)).astype(np.float32)
    after = np.concatenate([s[:, :1] + a[:, :1], rng.standard_normal((256, 2))], axis=1).astype(np.float32)
    zeros = jnp.zeros(256)
    batch = Batch(jnp.asarray(s), jnp.asarray(a), zeros, zeros, jnp.asarray(after), *jnp.zeros((2, 256, 0)))
    values = Values(jnp.zeros((2, 256)), jnp.zeros((2, 256)), batch.action)
    state = oracle.init(SPEC, KEY)
    step = jax.jit(oracle.fit)
    errors = []
    for _ in range(600):
        state, metrics = step(state, batch, values)
        errors.append(float(metrics["inverse_error"]))
    assert errors[-1] < 0.6 * errors[0]  # the second action leaves no trace: its variance stays
    slope = jax.jacobian(state.lens.model.nets.trunk)(jnp.zeros(3))  # (embedding, O)
    assert (jnp.linalg.norm(slope, axis=0)[0] > 2 * jnp.linalg.norm(slope, axis=0)[1:]).all()


def test_lambda_knows_the_trunk_of_the_last_refresh() -> None:
    """Between refreshes the trunk learns and D stays; at a refresh all data is looked at anew with it."""
    oracle = EllipticalInverse(features=12, embedding=4, net_width=8)
    state, buffer = absorbed(oracle, 4), buffer_of(4)
    batch = take(buffer.replay, jnp.arange(10))
    values = Values(jnp.ones((2, 10)), jnp.ones((2, 10)), batch.action)
    s, a = np.asarray(batch.observation), np.asarray(batch.action)
    learned, _ = oracle.fit(state, batch, values)
    np.testing.assert_array_equal(width(oracle, learned, s, a), width(oracle, state, s, a))
    buffer.append(make_episode(5, 4))
    fifth = oracle.absorb(learned, buffer, VALUE)  # 5 is not a refresh, 6 is
    np.testing.assert_array_equal(fifth.lens.trunk.layers[0][0], state.lens.trunk.layers[0][0])
    buffer.append(make_episode(5, 5))
    sixth = oracle.absorb(fifth, buffer, VALUE)
    np.testing.assert_array_equal(sixth.lens.trunk.layers[0][0], learned.lens.model.nets.trunk.layers[0][0])
    every = take(buffer.replay, jnp.arange(30))
    phi = np.asarray(oracle.phi(sixth, every.observation, every.action), np.float64)
    np.testing.assert_allclose(sixth.precision, np.eye(12) + phi.T @ phi, rtol=1e-4, atol=1e-5)
