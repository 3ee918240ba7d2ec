"""The one update: each step of it against a calculation by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rewardfree.data.replay import Batch
from rewardfree.errors import UserError
from rewardfree.explorers._actor_critic import ActorCritic, Agent
from rewardfree.interfaces import Spec
from rewardfree.networks import Net, apply, member
from rewardfree.normalise import Moments, is_refresh, moments_of, standardise
from rewardfree.policy import ActorPolicy

SPEC = Spec("maze", 3, 2, 10, 0.1, (), {}, ())
CYCLE = ActorCritic(
    hidden=4, critics=3, share="nothing", trained="cycle", averaged="cycle", critic_init="kaiming"
)
KEY = jax.random.PRNGKey(0)
ONES = jnp.ones(6)


def make_batch(size: int = 6) -> Batch:
    keys = jax.random.split(jax.random.PRNGKey(7), 4)
    return Batch(
        observation=jax.random.normal(keys[0], (size, 3)),
        action=jax.random.uniform(keys[1], (size, 2), minval=-1, maxval=1),
        reward=jax.random.normal(keys[2], (size,)),
        discount=jnp.full(size, 0.9),
        next_observation=jax.random.normal(keys[3], (size, 3)),
        skill=jnp.zeros((size, 0)),
        next_quantities=jnp.zeros((size, 0)),
    )


@partial(jax.jit, static_argnums=0)
def improve(
    config: ActorCritic, agent: Agent, weight: jax.Array = ONES, reward: jax.Array | None = None
) -> tuple[Agent, dict[str, jax.Array]]:
    batch = make_batch()
    values = config.target_values(agent, batch, KEY, here=False)
    return config.improve(agent, batch, batch.reward if reward is None else reward, weight, values, KEY)


def unchanged(before: Net, after: Net, i: int) -> bool:
    return all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(member(before, i)), jax.tree.leaves(member(after, i)), strict=True)
    )


def test_in_a_cycle_only_member_t_mod_n_moves() -> None:
    agent = CYCLE.init_agent(SPEC, KEY)
    for t in range(4):
        after, _ = improve(CYCLE, agent)
        for i in range(3):
            assert unchanged(agent.critics, after.critics, i) == (i != t % 3)
            assert unchanged(agent.targets, after.targets, i) == (i != t % 3)
        agent = after
    np.testing.assert_array_equal(agent.critic_optimiser[0].count, [2, 1, 1])


def test_with_one_adam_idle_members_drift_on_momentum() -> None:
    config = replace(CYCLE, optimiser="joint", averaged="all", share="norm")
    first = config.init_agent(SPEC, KEY)
    second, _ = improve(config, first)
    assert not unchanged(first.critics, second.critics, 0)
    assert unchanged(replace_norm(first.critics), replace_norm(second.critics), 1)  # no momentum yet
    third, _ = improve(config, second)
    assert not unchanged(second.critics, third.critics, 0)  # idle now, but it drifts


def replace_norm(net: Net) -> Net:
    """The network without what its members share."""
    return replace(net, scale=net.scale * 0, shift=net.shift * 0)


def test_own_optimisers_cannot_share_parameters() -> None:
    with pytest.raises(UserError, match="cannot share"):
        replace(CYCLE, share="norm")


def test_the_loss_is_the_weighted_squared_error_on_the_target() -> None:
    config = ActorCritic(hidden=4, critics=2, bootstrap="min", critic_init="kaiming")
    agent, batch = config.init_agent(SPEC, KEY), make_batch()
    weight = jnp.arange(6.0)
    values = config.target_values(agent, batch, KEY, here=False)
    _, metrics = improve(config, agent, weight)
    target = np.asarray(batch.reward) + 0.9 * np.asarray(values.next).min(axis=0)
    q = np.asarray(apply(agent.critics, jnp.concatenate([batch.observation, batch.action], axis=1)))[..., 0]
    expected = sum((np.asarray(weight) * (q[i] - target) ** 2).mean() for i in range(2))
    np.testing.assert_allclose(metrics["critic_loss"], expected, rtol=1e-5)
    np.testing.assert_allclose(metrics["target"], target.mean(), rtol=1e-5)


def test_targets_are_clamped() -> None:
    config = ActorCritic(hidden=4, target_clip=0.25)
    agent = config.init_agent(SPEC, KEY)
    assert improve(config, agent, ONES, 99 * ONES)[1]["target"] == 0.25
    assert improve(config, agent, ONES, -99 * ONES)[1]["target"] == 0.0


def test_targets_follow_at_their_rate() -> None:
    config = ActorCritic(hidden=4, tau=0.25)
    agent = config.init_agent(SPEC, KEY)
    after, _ = improve(config, agent)
    for old, new, critic in zip(
        *map(jax.tree.leaves, (agent.targets, after.targets, after.critics)), strict=True
    ):
        np.testing.assert_allclose(new, 0.75 * old + 0.25 * critic, atol=1e-6)


def test_the_first_adam_step_goes_up_the_actors_objective() -> None:
    config = ActorCritic(hidden=16, learning_rate=1e-3, noise=0.0)
    agent, batch = config.init_agent(SPEC, KEY), make_batch()

    def objective(agent: Agent, critics: Net) -> float:
        action = config.mean_action(agent, agent.actor, batch.observation, batch.skill)
        q = apply(critics, jnp.concatenate([batch.observation, action], axis=1))[..., 0]
        return float(q.min(axis=0).mean())

    after, metrics = improve(config, agent)
    assert objective(after, after.critics) > objective(agent, after.critics)
    np.testing.assert_allclose(metrics["actor_objective"], objective(agent, after.critics), rtol=1e-5)


def test_values_here_and_next_come_from_one_stacked_batch() -> None:
    agent, batch = CYCLE.init_agent(SPEC, KEY), make_batch()
    values = CYCLE.target_values(agent, batch, KEY, here=True)
    here = apply(agent.targets, jnp.concatenate([batch.observation, batch.action], axis=1))[..., 0]
    later = apply(agent.targets, jnp.concatenate([batch.next_observation, values.next_action], axis=1))[
        ..., 0
    ]
    np.testing.assert_allclose(values.here, here, atol=1e-6)
    np.testing.assert_allclose(values.next, later, atol=1e-6)


def test_noise_is_clipped_and_lets_the_gradient_pass() -> None:
    config = ActorCritic(noise=5.0, noise_clip=0.3)
    action = jnp.array([[0.0, 0.5], [0.9, -1.0]])
    noisy = config.noisy(action, KEY)
    assert float(jnp.abs(noisy).max()) <= 1.0
    assert float(jnp.abs(noisy - action).max()) <= 0.3 + 1e-6
    np.testing.assert_array_equal(jax.grad(lambda a: config.noisy(a, KEY).sum())(action), jnp.ones((2, 2)))


def test_normalisation_refreshes_at_a_slowing_pace() -> None:
    assert [n for n in range(1, 50) if is_refresh(n)] == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]


def test_moments_are_those_of_the_filled_rows() -> None:
    rows = np.random.default_rng(0).normal(2.0, 3.0, (10, 3)).astype(np.float32)
    rows[:, 2] = 1.0
    moments = moments_of(jnp.concatenate([rows, np.full((5, 3), 1e6, np.float32)]), 10)
    np.testing.assert_allclose(moments.mean, rows.mean(0), rtol=1e-5)
    np.testing.assert_allclose(moments.std, [*rows.std(0)[:2], 1e-3], rtol=1e-4)  # a constant keeps a floor
    far = standardise(Moments(jnp.zeros(1), jnp.full(1, 0.1), jnp.float32(5.0)), jnp.array([100.0]))
    assert far == 5.0


def test_the_policy_acts_as_the_trained_actor_does() -> None:
    config = ActorCritic(hidden=16)
    moments = Moments(jnp.array([0.5, -1.0, 0.0]), jnp.array([0.1, 2.0, 1.0]), jnp.float32(5.0))
    agent = config.init_agent(SPEC, KEY)._replace(seen=moments)
    observation = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    expected = config.mean_action(
        agent, agent.actor, jnp.asarray(observation), jnp.zeros((len(observation), 0))
    )
    policy = ActorPolicy(agent.actor, agent.seen)
    np.testing.assert_allclose(policy(observation), expected, atol=1e-5)
    np.testing.assert_allclose(policy(observation[7]), expected[7], atol=1e-5)
    assert policy(observation[0]).dtype == np.float32
