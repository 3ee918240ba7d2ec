"""GFA-RFE: reward, bonus and weight by hand, and the presets as the paper and its release have them."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import SPEC, make_episode

from rewardfree import registry
from rewardfree.data.replay import Batch, ReplayBuffer, take
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers.gfa_rfe import GfaRfe, GfaRfeModel
from rewardfree.interfaces import Moment
from rewardfree.normalise import Moments, identity
from rewardfree.oracles.elliptical import Elliptical
from rewardfree.oracles.q_ensemble import QEnsemble
from rewardfree.policy import ActorPolicy

# Two critics at three transitions: unbiased standard deviations sqrt(2)/2 * |difference|.
HERE = jnp.array([[1.0, 4.0, 5.0], [3.0, 4.0, 15.0]])
STD_HERE = np.sqrt(0.5) * np.array([2.0, 0.0, 10.0])
NEXT = jnp.array([[0.0, 1.0, 1.0], [0.1, 3.0, 31.0]])
STD_NEXT = np.sqrt(0.5) * np.array([0.1, 2.0, 30.0])
VALUES = Values(HERE, NEXT, jnp.zeros((3, 2)))
BATCH = Batch(
    jnp.zeros((3, 3)), jnp.zeros((3, 2)), jnp.zeros(3), jnp.ones(3), jnp.zeros((3, 3)),
    skill=jnp.array([[1.0, 0.0], [0.6, -0.8], [0.0, 0.0]]),
    next_quantities=jnp.array([[3.0, 7.0], [3.0, -9.0], [5.0, 5.0]]),
)  # fmt: skip
MODEL = GfaRfeModel((), jnp.float32(1.0), identity(2))
PRESETS = GfaRfe.presets()
KEY = jax.random.PRNGKey(0)


def test_paper_reward_is_one_minus_gamma_plus_beta_times_d() -> None:
    _, reward, _ = PRESETS["paper"].intrinsic_reward(MODEL, BATCH, VALUES)
    np.testing.assert_allclose(reward, (1 - 0.99 + 1) * STD_HERE, rtol=1e-5)


def test_paper_weight_is_one_over_variance_here_with_mean_one() -> None:
    weight, _ = PRESETS["paper"].weight(MODEL, BATCH, VALUES)
    raw = np.maximum(STD_HERE, 1e-3) ** -2.0
    np.testing.assert_allclose(weight, raw / raw.mean(), rtol=1e-4)
    np.testing.assert_allclose(weight.mean(), 1.0, rtol=1e-5)


def test_released_reward_is_merged_and_clamped() -> None:
    _, reward, metrics = PRESETS["released"].intrinsic_reward(MODEL, BATCH, VALUES)
    np.testing.assert_allclose(reward, [2 * STD_HERE[0], 0.0, 10.0], rtol=1e-5)
    np.testing.assert_allclose(metrics["reward_clipped"], 1 / 3, rtol=1e-5)


def test_released_weight_reads_the_next_point_between_its_bounds() -> None:
    weight, _ = PRESETS["released"].weight(MODEL, BATCH, VALUES)
    np.testing.assert_allclose(weight, np.clip(STD_NEXT, 0.1, 10.0) ** -2.0, rtol=1e-5)


def test_sigma_bar_of_algorithm_1_can_weigh_the_critics() -> None:
    oracle = QEnsemble(sigma_epistemic=2.0, sigma_aleatoric=1.5, sigma_floor=0.5)
    explorer = dataclasses.replace(
        PRESETS["paper"], oracle=oracle, weight_by="sigma-bar", weight_floor=0.0, weight_mean_one=False
    )
    weight, _ = explorer.weight(MODEL, BATCH, VALUES)
    sigma_bar = np.maximum(np.maximum(2.0 * np.sqrt(STD_HERE), 1.5), 0.5)  # every mean value is above 1
    np.testing.assert_allclose(weight, sigma_bar**-2.0, rtol=1e-5)
    assert explorer.needs_values_here


def test_fast_reward_is_centred_and_scaled_by_the_running_spread() -> None:
    fast = dataclasses.replace(PRESETS["fast"], oracle=QEnsemble(), aim=0.0)
    model, reward, _ = fast.intrinsic_reward(MODEL, BATCH, VALUES)
    variance = 0.99 + 0.01 * STD_HERE.var()
    np.testing.assert_allclose(model.variance, variance, rtol=1e-5)
    np.testing.assert_allclose(reward, (STD_HERE - STD_HERE.mean()) / np.sqrt(variance), rtol=1e-5)
    np.testing.assert_array_equal(fast.weight(model, BATCH, VALUES)[0], np.ones(3))


def test_an_aim_pays_along_its_direction_of_the_quantities() -> None:
    """q is (3 - 1) / 2 = 1 and (7 - -1) / 4 = 2 spreads out, then 1 and -2; an aim of 0 pays nothing."""
    alone = dataclasses.replace(PRESETS["fast"], oracle=QEnsemble(), aim=0.0)
    aimed = dataclasses.replace(alone, aim=5.0, aim_clip=1.5)
    model = MODEL._replace(quantities=Moments(jnp.array([1.0, -1.0]), jnp.array([2.0, 4.0]), jnp.float32(9)))
    without, reward = (one.intrinsic_reward(model, BATCH, VALUES)[1] for one in (alone, aimed))
    np.testing.assert_allclose(reward - without, [5 * 1.0, 5 * (0.6 * 1.0 + 0.8 * 1.5), 0.0], rtol=1e-4)


def test_aims_are_held_for_a_while_and_some_are_none() -> None:
    explorer = dataclasses.replace(PRESETS["fast"], aim_none=0.3, skill_every=20)
    aims = np.stack([explorer.skill(SPEC, np.array([1, 2], np.uint32), step) for step in range(8000)])
    aims = aims.reshape(400, 20, 2)
    assert (aims == aims[:, :1]).all()
    length = np.linalg.norm(aims[:, 0], axis=1)
    assert (np.isclose(length, 1) | (length == 0)).all()
    assert abs((length == 0).mean() - 0.3) < 4 * (0.3 * 0.7 / 400) ** 0.5
    assert np.abs(aims[:, 0].mean(axis=0)).max() < 4 / 400**0.5
    assert PRESETS["paper"].skill_size(SPEC) == PRESETS["released"].skill_size(SPEC) == 0


def test_a_minibatch_is_learned_for_aims_drawn_anew_too() -> None:
    explorer = dataclasses.replace(PRESETS["fast"], aim_none=0.3, aim_anew=0.6)
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf[:1], 1000, axis=0), BATCH)
    batch = explorer.relabel(many, jax.random.PRNGKey(0))
    kept = (batch.skill == many.skill).all(axis=1)
    assert abs(kept.mean() - 0.4) < 4 * (0.4 * 0.6 / 1000) ** 0.5
    length = jnp.linalg.norm(batch.skill[~kept], axis=1)
    assert (jnp.isclose(length, 1) | (length == 0)).all()
    assert abs((length == 0).mean() - 0.3) < 4 * (0.3 * 0.7 / 600) ** 0.5
    assert PRESETS["paper"].relabel(many, jax.random.PRNGKey(0)) is many


@pytest.mark.parametrize("preset", ["fast", "paper", "released"])
def test_a_prior_is_added_to_the_critics_and_never_learned(preset: str) -> None:
    explorer = dataclasses.replace(PRESETS[preset], hidden=4, critics=2, prior=3.0, seed_frames=0)
    buffer = ReplayBuffer(SPEC, 100, 3, 0.99, explorer.skill_size(SPEC))
    for seed in range(2):
        episode = make_episode(5, seed)
        buffer.append(episode | {"skill": np.zeros((5, explorer.skill_size(SPEC)), np.float32)})
    state = explorer.absorb(explorer.init(SPEC, KEY), buffer)
    before = jax.tree.map(np.array, state.agent.critics)
    after, _ = explorer.update(state, buffer.replay, KEY, 3)
    assert before.prior is not None
    for critics in (after.agent.critics, after.agent.targets):
        jax.tree.map(np.testing.assert_array_equal, critics.prior, before.prior)
        assert not np.array_equal(critics.w2, before.w2)


def test_presets_differ_where_the_paper_and_its_release_do() -> None:
    paper, released = PRESETS["paper"], PRESETS["released"]
    common = {
        "critics": 10,
        "nstep": 3,
        "noise": 0.2,
        "noise_clip": 0.3,
        "gamma": 0.99,
        "learning_rate": 1e-4,
    }
    more = {"seed_frames": 4000, "update_every": 2, "chunk": 2, "partition": 1, "bootstrap": "mean"}
    differ = {
        "intrinsic": (0.01, 2.0),
        "beta": (1.0, 0.0),
        "reward_clip": (None, 10.0),
        "target_clip": (None, 500.0),
        "weight_at": ("here", "next"),
        "weight_floor": (1e-3, 0.1),
        "weight_ceiling": (None, 10.0),
        "weight_mean_one": (True, False),
        "trained": ("cycle", "cycle"),
        "optimiser": ("own", "joint"),
        "averaged": ("cycle", "all"),
        "tau": (0.01, 0.001),
        "epsilon": (0.2, 0.0),
        "critic_init": ("kaiming", "released"),
        "share": ("nothing", "norm"),
        "feature": (50, 0),
        "actor_objective": ("sum", "mean"),
    }
    for name, value in [*common.items(), *more.items()]:
        assert getattr(paper, name) == getattr(released, name) == value
    for name, values in differ.items():
        assert (getattr(paper, name), getattr(released, name)) == values


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_learns_from_a_replay_and_repeats_itself(preset: str) -> None:
    small = dataclasses.replace(PRESETS[preset], hidden=8, batch=8, critics=3)
    if preset == "fast":
        small = dataclasses.replace(small, oracle=dataclasses.replace(small.oracle, features=8))  # type: ignore[type-var]
    buffer = ReplayBuffer(SPEC, 20, small.nstep, small.gamma, small.skill_size(SPEC))

    def run() -> list[np.ndarray]:
        state = small.init(SPEC, jax.random.PRNGKey(0))
        state = small.absorb(state, buffer)
        state, metrics = small.update(state, buffer.replay, jax.random.PRNGKey(1), 4)
        assert all(np.isfinite(value) for value in metrics.values())
        assert int(state.agent.step) == 4
        return [np.asarray(leaf) for leaf in jax.tree.leaves(state)]

    episode = make_episode(5, 0)
    buffer.append(episode | {"skill": np.zeros((5, small.skill_size(SPEC)), np.float32)})
    first, second = run(), run()
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_the_aleatoric_term_reads_critics_that_see_an_aim() -> None:
    """Lambda's weights come from the value of the aim 0, which is D alone."""
    oracle = Elliptical(features=8, sigma_aleatoric=3.0, sigma_floor=0.1)
    explorer = dataclasses.replace(PRESETS["fast"], hidden=8, oracle=oracle)
    state, buffer = explorer.init(SPEC, KEY), ReplayBuffer(SPEC, 20, 3, 0.99, 2)
    buffer.append(make_episode(5, 0) | {"skill": np.ones((5, 2), np.float32)})
    after = explorer.absorb(state, buffer)
    episode = take(buffer.replay, jnp.arange(5))._replace(skill=jnp.zeros((5, 2)))
    values = explorer.target_values(after.agent, episode, KEY, here=True).here.mean(axis=0)
    sigma_bar = jnp.maximum(3.0 * jnp.sqrt(jnp.clip(values, 0.0, 1.0)), 0.1)
    phi = oracle.phi(after.model.oracle, episode.observation, episode.action)
    expected = jnp.eye(8) + phi.T @ (phi / sigma_bar[:, None] ** 2)
    np.testing.assert_allclose(after.model.oracle.precision, expected, rtol=1e-4, atol=1e-4)
    assert (sigma_bar > 0.1).any()


def test_configs_round_trip_through_json() -> None:
    for explorer in PRESETS.values():
        assert registry.from_json("explorer", registry.to_json(explorer)) == explorer


def test_a_random_action_is_held_as_long_as_asked_for() -> None:
    explorer = dataclasses.replace(PRESETS["fast"], hidden=8, epsilon=0.5, epsilon_hold=5, noise=0.0, aim=0.0)
    state = explorer.init(SPEC, jax.random.PRNGKey(0))
    act = explorer.behaviour(state)
    observation, key, skill = np.zeros(3, np.float32), np.array([1, 2], np.uint32), np.zeros(0, np.float32)
    actions = np.array([act(Moment(observation, skill, key, step)) for step in range(1000)]).reshape(
        200, 5, 2
    )
    greedy = ActorPolicy(state.agent.actor, state.agent.seen)(observation)
    assert (actions == actions[:, :1]).all()  # noiseless: within a block nothing changes
    random = np.abs(actions[:, 0] - greedy).max(axis=1) > 1e-5
    assert 70 < random.sum() < 130  # 200 blocks at 1/2: four standard deviations are 28
    assert len(np.unique(actions[random, 0], axis=0)) == random.sum()
    assert np.abs(actions[random, 0].mean()) < 0.2
