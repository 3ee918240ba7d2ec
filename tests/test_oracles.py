"""Bonus oracles: D in closed form against a calculation in float64, and how it moves with data."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import SPEC, make_episode

from rewardfree.data.replay import ReplayBuffer
from rewardfree.oracles.elliptical import Elliptical, EllipticalState
from rewardfree.oracles.q_ensemble import QEnsemble

KEY = jax.random.PRNGKey(0)
ORACLE = Elliptical(features=12, length_scale=1.5, ridge=0.5)
NONE = jnp.zeros((0, 0))


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
        state = oracle.absorb(state, buffer)
    return state


def features_by_hand(state: EllipticalState, oracle: Elliptical, s: np.ndarray, a: np.ndarray) -> np.ndarray:
    seen = np.clip((s - np.asarray(state.seen.mean)) / np.asarray(state.seen.std), -5, 5)
    x = np.concatenate([seen, a], axis=1).astype(np.float64)
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
