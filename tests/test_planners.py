"""What sets the planners apart: whose targets, which weights, when the actor moves."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import SPEC, make_episode

from rewardfree.data.dataset import Dataset, DatasetWriter, LabelledDataset
from rewardfree.data.replay import Batch, labelled_replay
from rewardfree.errors import UserError
from rewardfree.explorers._actor_critic import Agent, Values
from rewardfree.explorers.gfa_rfe import GfaRfe
from rewardfree.networks import Normed, apply_looped, make_ensemble, make_net
from rewardfree.normalise import identity
from rewardfree.planners._ddpg import DdpgFamily
from rewardfree.planners.ddpg import Ddpg
from rewardfree.planners.ddpg_ensemble import DdpgEnsemble
from rewardfree.planners.ddpg_twin import DdpgTwin
from rewardfree.planners.td3 import Td3
from rewardfree.policy import ActorPolicy
from rewardfree.sizes import SIZES, resize

KEY = jax.random.PRNGKey(0)


def make_batch(size: int = 6) -> Batch:
    rng = np.random.default_rng(0)
    return Batch(
        observation=jnp.asarray(rng.normal(size=(size, 3)), jnp.float32),
        action=jnp.asarray(rng.uniform(-1, 1, (size, 2)), jnp.float32),
        reward=jnp.asarray(rng.normal(size=size), jnp.float32),
        discount=jnp.full(size, 0.9),
        next_observation=jnp.asarray(rng.normal(size=(size, 3)), jnp.float32),
        skill=jnp.zeros((size, 0)),
        next_quantities=jnp.zeros((size, 0)),
    )


def same(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_each_critic_of_the_ensemble_has_a_target_of_its_own() -> None:
    planner = DdpgEnsemble(hidden=4, critics=2)
    agent, batch = planner.init_agent(SPEC, KEY), make_batch()
    here = planner.target_values(agent, batch, KEY, here=True).here  # the targets are the critics still
    following = jnp.stack([jnp.zeros(6), jnp.full(6, 10.0)])
    values = Values(here, following, batch.action)
    _, metrics = planner.improve(agent, batch, batch.reward, jnp.ones(6), values, KEY)
    target = np.stack([batch.reward, batch.reward + 9.0])
    by_hand = np.mean((np.asarray(here) - target) ** 2, axis=1).sum()
    np.testing.assert_allclose(metrics["critic_loss"], by_hand, rtol=1e-5)


def test_td3_delays_the_actor_and_all_targets() -> None:
    planner = Td3(hidden=4)
    agent, batch = planner.init_agent(SPEC, KEY), make_batch()

    def step(agent: Agent) -> Agent:
        values = planner.target_values(agent, batch, KEY, here=False)
        return planner.improve(agent, batch, batch.reward, jnp.ones(6), values, KEY)[0]

    first = step(agent)
    second = step(first)
    assert not same(agent.actor, first.actor)
    assert same(first.actor, second.actor)
    assert same(first.targets, second.targets)
    assert same(first.target_actor, second.target_actor)
    assert not same(first.critics, second.critics)
    for slow, old, new in zip(
        jax.tree.leaves(first.target_actor),
        jax.tree.leaves(agent.actor),
        jax.tree.leaves(first.actor),
        strict=True,
    ):
        np.testing.assert_allclose(slow, 0.99 * old + 0.01 * new, atol=1e-6)


def test_the_behaviour_term_pulls_towards_the_stored_action() -> None:
    planner = dataclasses.replace(Td3(hidden=4), behaviour=0.5)
    batch, q = make_batch(), jnp.array([1.0, -3.0, 2.0, 2.0, -4.0, 0.0])
    action = jnp.zeros((6, 2))
    by_hand = -np.mean(q) / np.mean(np.abs(q)) + 0.5 * np.mean(np.square(batch.action))
    np.testing.assert_allclose(planner.actor_loss(q, action, batch), by_hand, rtol=1e-5)
    np.testing.assert_allclose(Td3(hidden=4).actor_loss(q, action, batch), -np.mean(q), rtol=1e-5)
    strong = dataclasses.replace(planner, behaviour=1e4, learning_rate=1e-2, actor_every=1)
    agent = strong.init_agent(SPEC, KEY)

    def away(agent: Agent) -> float:
        mean = strong.mean_action(agent, agent.actor, batch.observation, batch.skill)
        return float(jnp.square(mean - batch.action).mean())

    before = away(agent)
    for _ in range(100):
        values = strong.target_values(agent, batch, KEY, here=False)
        agent, _ = strong.improve(agent, batch, batch.reward, jnp.ones(6), values, KEY)
    assert away(agent) < 0.2 * before


def test_td3_bootstraps_at_a_smoothed_action_of_the_slow_actor() -> None:
    planner = dataclasses.replace(Td3(hidden=4), noise=0.0)
    agent, batch = planner.init_agent(SPEC, KEY), make_batch()
    other = planner.init_agent(SPEC, jax.random.PRNGKey(5)).actor
    values = planner.target_values(agent._replace(target_actor=other), batch, KEY, here=False)
    np.testing.assert_allclose(values.next_action, jnp.tanh(other(batch.next_observation)), rtol=1e-5)
    noisy = Td3(hidden=4).target_values(agent, batch, KEY, here=False).next_action
    assert 0 < np.abs(noisy - jnp.tanh(agent.actor(batch.next_observation))).max() <= 0.5


@pytest.fixture
def labelled(tmp_path: Path) -> LabelledDataset:
    writer = DatasetWriter(tmp_path / "data", SPEC)
    for seed in range(2):
        writer.append(make_episode(5, seed))
    writer.flush()
    reward = np.random.default_rng(1).normal(size=10).astype(np.float32)
    return LabelledDataset(Dataset.open(tmp_path), "known", reward)


def test_weights_are_one_over_the_critics_variance_at_the_stored_transitions(
    labelled: LabelledDataset,
) -> None:
    planner = DdpgEnsemble(hidden=4, critics=3, batch=8, weighted=True, weight_floor=0.05)
    agent = planner.init_agent(SPEC, KEY)
    seen: list[tuple[jax.Array, Values]] = []

    class Spy(DdpgEnsemble):
        def improve(
            self, agent: Agent, batch: Batch, reward: Any, weight: Any, values: Values, key: Any
        ) -> Any:
            seen.append((weight, values))
            return super().improve(agent, batch, reward, weight, values, key)

    spy = Spy(**{field.name: getattr(planner, field.name) for field in dataclasses.fields(planner)})
    replay = labelled_replay(labelled, planner.nstep, planner.gamma)
    spy._one_update(replay, agent, KEY)
    ((weight, values),) = seen
    sigma = np.maximum(np.std(np.asarray(values.here), axis=0, ddof=1), 0.05)
    np.testing.assert_allclose(weight, sigma**-2 / np.mean(sigma**-2), rtol=1e-5)
    assert np.std(weight) > 0.01
    assert not same(
        spy.fit(labelled, 3, 0)._arrays,
        dataclasses.replace(planner, weighted=False).fit(labelled, 3, 0)._arrays,
    )


def test_an_averaged_policy_is_the_mean_of_the_actors(labelled: LabelledDataset) -> None:
    """Over the whole plan: of the actors after 1, 2, 3, 4 updates, which shorter plans end with."""
    planner = DdpgTwin(hidden=4, batch=8, learning_rate=0.1, average=0.0)
    ends = [planner.fit(labelled, updates, 0).arrays for updates in (1, 2, 3, 4)]
    whole = dataclasses.replace(planner, average=1.0).fit(labelled, 4, 0).arrays
    for name, mean in whole.items():
        np.testing.assert_allclose(mean, np.mean([end[name] for end in ends], axis=0), rtol=1e-4, atol=1e-6)
    assert not same(whole, ends[-1])
    half = dataclasses.replace(planner, average=0.5).fit(labelled, 4, 0).arrays
    weights = np.array([0.125, 0.125, 0.25, 0.5])  # means move by 1, 1/2, then by 1 / (0.5 * 4)
    by_hand = sum(weight * end["actor.w1"] for weight, end in zip(weights, ends, strict=True))
    np.testing.assert_allclose(half["actor.w1"], by_hand, rtol=1e-4, atol=1e-6)


def test_weights_need_several_critics() -> None:
    with pytest.raises(UserError, match="critics of at least 2"):
        Ddpg(weighted=True)


@pytest.mark.parametrize("normed", ["first", "both"])
def test_a_policys_critics_in_numpy_are_those_that_learned(normed: Normed) -> None:
    critics = make_ensemble(KEY, 3, (6, 4, 5, 1), "kaiming", "nothing", normed)
    policy = ActorPolicy(make_net(KEY, (4, 4, 5, 2), "kaiming"), identity(4), critics)
    rng = np.random.default_rng(0)
    observation, action = (rng.standard_normal((7, n)).astype(np.float32) for n in (4, 2))
    values = apply_looped(critics, jnp.concatenate([observation, action], axis=1))[..., 0]
    spread = policy.disagreement(observation, action)
    assert spread is not None
    np.testing.assert_allclose(spread, values.std(axis=0), rtol=1e-4)


def test_the_family_is_told_apart_by_its_settings() -> None:
    def settings(planner: DdpgFamily) -> tuple[Any, ...]:
        return planner.critics, planner.bootstrap, planner.actor_objective, planner.actor_every

    assert settings(Ddpg()) == (1, "min", "min", 1)
    assert settings(DdpgTwin()) == (2, "mean", "mean", 1)
    assert settings(DdpgTwin.presets()["paper"]) == (2, "min", "min", 1)
    assert settings(DdpgEnsemble()) == (10, "own", "mean", 1)
    assert settings(Td3()) == (2, "min", "min", 2)


def test_a_size_has_a_minibatch_for_exploring_and_one_for_planning() -> None:
    size = SIZES["compact"]
    assert size.batch != size.plan_batch
    assert resize(GfaRfe(), "compact").batch == size.batch
    assert {resize(planner, "compact").batch for planner in (Ddpg(), DdpgTwin(), Td3())} == {size.plan_batch}


def test_the_papers_preset_has_the_settings_of_its_tables() -> None:
    paper = DdpgTwin.presets()["paper"]
    assert (paper.learning_rate, paper.nstep, paper.gamma, paper.tau) == (1e-4, 3, 0.99, 0.01)
    assert (paper.normalise, paper.behaviour, paper.average) == (False, 0.0, 0.0)
    assert (paper.share, paper.critic_norm, paper.bootstrap) == ("trunk", "first", "min")
    assert DdpgTwin() == next(iter(DdpgTwin.presets().values()))
    assert DdpgTwin().gamma < paper.gamma  # little data, a short horizon
