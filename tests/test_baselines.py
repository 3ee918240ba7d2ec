"""The baselines' rewards and losses, worked out by hand on a few numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import SPEC

from rewardfree import registry
from rewardfree.data.replay import Batch
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers._model import (
    descend,
    learner,
    merge,
    nearest,
    no_moments,
    norm,
    particle_entropy,
)
from rewardfree.explorers.aps import Aps, ApsModel, along
from rewardfree.explorers.apt import Apt, AptNets, Trunk
from rewardfree.explorers.diayn import Diayn
from rewardfree.explorers.disagreement import Disagreement
from rewardfree.explorers.icm import Dynamics, Icm
from rewardfree.explorers.rnd import Rnd, RndModel
from rewardfree.explorers.smm import Smm, SmmModel, Vae, evidence
from rewardfree.interfaces import Moment
from rewardfree.networks import Mlp, apply

KEY = jax.random.PRNGKey(0)
NO_VALUES = Values(jnp.zeros((2, 0)), jnp.zeros((2, 2)), jnp.zeros((2, 1)))
RATE = 1e-4


def linear(w: Any, b: Any) -> Mlp:
    return Mlp([(jnp.array(w, jnp.float32), jnp.array(b, jnp.float32))])


def batch(**arrays: Any) -> Batch:
    """Two transitions; what is not given is zero."""
    shapes = {"observation": (2, 2), "action": (2, 1), "reward": (2,), "discount": (2,)}
    full = {**shapes, "next_observation": (2, 2), "skill": (2, 0), "next_quantities": (2, 0)}
    return Batch(**{
        name: jnp.array(arrays[name], jnp.float32) if name in arrays else jnp.zeros(shape)
        for name, shape in full.items()
    })  # fmt: skip


def first_loss(explorer: Any, model: Any, data: Batch) -> dict[str, float]:
    _, metrics = explorer.fit(model, data, KEY)
    return {name: float(value) for name, value in metrics.items()}


def test_norms_are_not_squared_and_have_a_gradient_at_zero() -> None:
    x = jnp.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(norm(x), [5.0, 0.0])
    gradient = jax.grad(lambda x: norm(x).sum())(x)
    np.testing.assert_allclose(gradient, [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)


def test_an_mlp_has_relus_between_its_layers_only() -> None:
    net = Mlp(
        [(jnp.array([[1.0, -1.0]]), jnp.array([0.0, 1.0])), (jnp.array([[1.0], [10.0]]), jnp.array([-50.0]))]
    )
    # x = 2: relu([2, -1]) = [2, 0] -> 2 - 50.   x = -3: relu([-3, 4]) = [0, 4] -> 40 - 50.
    np.testing.assert_allclose(net(jnp.array([[2.0], [-3.0]])), [[-48.0], [-10.0]])


def test_adams_first_step_is_the_rate_against_the_gradients_sign() -> None:
    model, value, aside = descend(
        learner(jnp.array([2.0, -1.0]), 0.1), 0.1, lambda x: (jnp.sum(x**2), "aside")
    )
    assert (float(value), aside) == (5.0, "aside")
    np.testing.assert_allclose(model.nets, [1.9, -0.9], rtol=1e-5)


def test_running_moments_merge_with_the_unbiased_variance() -> None:
    x = jnp.array([1.0, 2.0, 6.0])  # mean 3, unbiased variance (4 + 1 + 9) / 2 = 7
    n = 1e-4
    moments = merge(no_moments(), x)
    np.testing.assert_allclose(moments.mean, 3 * 3 / (3 + n), rtol=1e-6)
    np.testing.assert_allclose(moments.variance, (n * 1 + 3 * 7 + 9 * n * 3 / (3 + n)) / (3 + n), rtol=1e-6)
    np.testing.assert_allclose(moments.n, 3 + n)
    second = merge(moments, jnp.array([3.0, 5.0]))  # mean 4, unbiased variance 2
    mean, variance, before = float(moments.mean), float(moments.variance), 3 + n
    total = before + 2
    np.testing.assert_allclose(second.mean, mean + (4 - mean) * 2 / total, rtol=1e-6)
    squares = variance * before + 2 * 2 + (4 - mean) ** 2 * before * 2 / total
    np.testing.assert_allclose(second.variance, squares / total, rtol=1e-6)


def test_the_point_itself_is_its_nearest_neighbour() -> None:
    x = jnp.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    by_hand = [[0.0, 1.0], [0.0, 18**0.5], [0.0, 1.0]]
    np.testing.assert_allclose(nearest(x, 2), by_hand, atol=1e-6)
    np.testing.assert_allclose(particle_entropy(nearest(x, 2)), np.log1p([0.5, 18**0.5 / 2, 0.5]), rtol=1e-6)
    # Divided by a running mean of 2, less 0.25, floored at 0: [0, .25], [0, 1.871], [0, .25].
    scaled = particle_entropy(nearest(x, 2), 2.0, 0.25)
    np.testing.assert_allclose(scaled, np.log1p([0.125, (18**0.5 / 2 - 0.25) / 2, 0.125]), rtol=1e-6)


def test_nearest_agrees_with_differences_far_from_the_origin() -> None:
    x = 100 + np.random.default_rng(0).normal(size=(40, 7))
    distances = np.sort(np.linalg.norm(x[:, None] - x[None], axis=-1), axis=1)[:, :12]
    np.testing.assert_allclose(nearest(jnp.asarray(x, jnp.float32), 12), distances, atol=2e-3)


def test_the_entropy_of_a_large_batch_needs_little_memory() -> None:
    x = jnp.zeros((1024, 512))
    analysis = jax.jit(lambda x: particle_entropy(nearest(x, 12))).lower(x).compile().memory_analysis()
    assert analysis is not None
    assert analysis.temp_size_in_bytes + analysis.argument_size_in_bytes < 50e6


def test_icm_pays_the_log_of_the_forward_models_error() -> None:
    # f(s, a) = s + (a, 0);  g(s, s') = 0, so tanh g = 0.
    forward = linear([[1, 0], [0, 1], [1, 0]], [0, 0])
    model = learner(Dynamics(forward, linear(np.zeros((4, 1)), [0])), RATE)
    data = batch(observation=[[1, 1], [0, 0]], action=[[0.5], [-1]], next_observation=[[1.5, 1], [2, 4]])
    # Errors: |(1.5, 1) - (1.5, 1)| = 0 and |(2, 4) - (-1, 0)| = 5; inverse |0.5| and |-1|.
    _, reward, _ = Icm().intrinsic_reward(model, data, NO_VALUES)
    np.testing.assert_allclose(reward, np.log([1.0, 6.0]), atol=1e-6)
    assert first_loss(Icm(), model, data) == pytest.approx({"forward_error": 2.5, "inverse_error": 0.75})


def test_disagreement_pays_the_mean_unbiased_variance_over_models() -> None:
    # Three models that predict the constants (0, 0), (1, 2), (2, 10).
    nets = [linear(np.zeros((3, 2)), b) for b in ([0, 0], [1, 2], [2, 10])]
    data = batch(next_observation=[[0, 0], [1, 2]])
    _, reward, _ = Disagreement().intrinsic_reward(learner(nets, RATE), data, NO_VALUES)
    # Variances: (1 + 0 + 1) / 2 = 1 and (16 + 4 + 36) / 2 = 28.
    np.testing.assert_allclose(reward, [14.5, 14.5], rtol=1e-6)
    errors = [0, 5**0.5, 104**0.5, 5**0.5, 0, 65**0.5]
    assert first_loss(Disagreement(), learner(nets, RATE), data)["forward_error"] == pytest.approx(
        np.mean(errors)
    )


def test_rnd_pays_the_error_over_its_running_spread() -> None:
    # Batch-normalised, two observations are -1 and +1 in each dimension that varies, 0 in one that does not.
    target, predictor = linear([[1, 0], [0, 1]], [0, 0]), linear([[1, 0], [0, 1]], [2, 0])
    swapped = linear([[3, 0], [0, 1]], [2, 0])
    data = batch(observation=[[10, 5], [30, 5]])
    error = Rnd().error(predictor, target, data.observation)
    np.testing.assert_allclose(error, [2.0, 2.0], rtol=1e-5)  # ((+-1 + 2 -+ 1)^2 + 0) / 2
    error = Rnd().error(swapped, target, data.observation)
    np.testing.assert_allclose(error, [0.0, 8.0], atol=1e-4)  # (-3 + 2 + 1)^2 / 2 and (3 + 2 - 1)^2 / 2
    model = RndModel(learner(swapped, RATE), target, no_moments())
    assert first_loss(Rnd(), model, data)["prediction_error"] == pytest.approx(4.0, rel=1e-4)
    after, reward, _ = Rnd().intrinsic_reward(model, data, NO_VALUES)
    spread = np.sqrt((1e-4 + 2 * 32 + 16 * 1e-4 * 2 / 2.0001) / 2.0001)  # unbiased variance of 0 and 8: 32
    np.testing.assert_allclose(reward, [0.0, 8.0 / spread], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(after.moments.mean, 4.0, rtol=1e-3)


def test_rnd_clips_what_it_normalised() -> None:
    observation = jnp.zeros((50, 1)).at[0].set(1.0)  # normalised: mean 0.02, spread 0.14; (1 - .02) / .14 = 7
    error = Rnd().error(linear([[0.0]], [0.0]), linear([[1.0]], [0.0]), observation)
    np.testing.assert_allclose(error[0], 25.0)


def test_apt_pays_the_entropy_in_the_latent_space() -> None:
    # A trunk of width 2: LayerNorm makes any pair of unequal numbers (-1, 1) or (1, -1), then tanh.
    trunk = Trunk(linear([[1, 0], [0, 1]], [0, 0]), jnp.ones(2), jnp.zeros(2))
    dynamics = Dynamics(linear(np.zeros((3, 2)), [0, 0]), linear(np.zeros((4, 1)), [0]))
    model = learner(AptNets(trunk, dynamics), RATE)
    data = batch(observation=[[1, 5], [9, 2]], next_observation=[[1, 5], [1, 5]], action=[[1], [0]])
    apart = 2 * np.tanh(1) * 2**0.5
    _, reward, _ = Apt(neighbours=2).intrinsic_reward(model, data, NO_VALUES)
    np.testing.assert_allclose(reward, np.log1p([apart / 2, apart / 2]), rtol=1e-4)
    loss = first_loss(Apt(), model, data)
    assert loss["forward_error"] == pytest.approx(np.tanh(1) * 2**0.5, rel=1e-4)
    assert loss["inverse_error"] == pytest.approx(0.5)


def test_diayn_pays_how_far_above_chance_the_skill_is_recognised() -> None:
    # The discriminator's logits are s' itself, so its probabilities of the first skill are 1/4 and 1/2.
    explorer = Diayn(skills=2)
    model = learner(linear([[1, 0], [0, 1]], [0, 0]), RATE)
    data = batch(next_observation=[[0, np.log(3)], [7, 7]], skill=[[1, 0], [0, 1]])
    _, reward, _ = explorer.intrinsic_reward(model, data, NO_VALUES)
    np.testing.assert_allclose(reward, [np.log(1 / 4) + np.log(2), 0.0], atol=1e-5)
    loss = first_loss(explorer, model, data)
    assert loss["discriminator_loss"] == pytest.approx((np.log(4) + np.log(2)) / 2)


def test_aps_pays_entropy_and_alignment_with_the_skill() -> None:
    explorer = Aps(skills=2, neighbours=2)
    data = batch(next_observation=[[3, 4], [0, 0]], skill=[[1, 0], [0, 1]])
    model = ApsModel(learner(linear([[1, 0], [0, 1]], [0, 0]), RATE), no_moments())
    np.testing.assert_allclose(along(data.next_observation, data.skill), [0.6, 0.0])
    after, reward, metrics = explorer.intrinsic_reward(model, data, NO_VALUES)
    # Distances [0, 5] for both; their running mean is 2.5, so [0, 2 - 1e-4], of which the mean is taken.
    np.testing.assert_allclose(after.moments.mean, 2.5, rtol=1e-4)
    np.testing.assert_allclose(reward, np.log1p(1 - 0.5e-4) + np.array([0.6, 0.0]), rtol=1e-4)
    np.testing.assert_allclose(metrics["along_skill"], 0.3, rtol=1e-6)
    assert first_loss(explorer, model, data)["feature_loss"] == pytest.approx(-0.3)


def test_aps_values_are_successor_features_times_the_skill() -> None:
    explorer = Aps(hidden=4, skills=2)
    agent = explorer.init_agent(SPEC, KEY, explorer.skills)
    assert agent.critics.w3.shape == (2, 4, 2)
    data = Batch(
        jnp.ones((3, 3)), jnp.zeros((3, 2)), jnp.zeros(3), jnp.ones(3), jnp.ones((3, 3)),
        jnp.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), jnp.zeros((3, 0)),
    )  # fmt: skip
    values = explorer.target_values(agent, data, KEY, here=True).here
    x = jnp.concatenate([data.observation, data.skill, data.action], axis=1)
    psi = np.asarray(apply(agent.targets, x))  # 2 critics, 3 transitions, 2 features
    np.testing.assert_allclose(values[:, 0], psi[:, 0, 0], rtol=1e-5)
    np.testing.assert_allclose(values[:, 1], psi[:, 1, 1], rtol=1e-5)
    np.testing.assert_allclose(values[:, 2], 0.6 * psi[:, 2, 0] + 0.8 * psi[:, 2, 1], rtol=1e-5)


def smm_model(bias: Any) -> SmmModel:
    """Code 1, mean 0.5 and log-variance 0 whatever comes; decoded to the bias. Logits are s."""
    vae = Vae(linear(np.zeros((4, 2)), [0.5, 0.0]), linear(np.zeros((1, 4)), bias))
    discriminator = learner(linear([[1, 0], [0, 1]], [0, 0]), RATE)
    return SmmModel(learner(vae, RATE), discriminator, jnp.zeros(2), jnp.zeros(2))


@pytest.mark.parametrize(("sign", "factor"), [("released", 1), ("objective", -1)])
def test_smm_pays_for_rare_states_before_its_models_learn(sign: Any, factor: int) -> None:
    explorer = Smm(skills=2, code=1, sign=sign)
    data = batch(observation=[[0, np.log(3)], [1, 1]], skill=[[1, 0], [0, 1]])
    model, metrics = explorer.fit(smm_model([0, 0, 0, 0]), data, KEY)
    _, reward, _ = explorer.intrinsic_reward(model, data, NO_VALUES)
    errors = np.array([np.log(3) ** 2 + 1, 1 + 1 + 1])  # |[s, z]|^2
    surprise = np.log([4.0, 2.0])
    np.testing.assert_allclose(reward, errors + np.log(2) + factor * surprise, rtol=1e-5)
    # KL of N(0.5, 1) from N(0, 1) is 0.125; the squared error is a mean over batch and inputs.
    np.testing.assert_allclose(metrics["density_loss"], 0.5 * 0.125 + errors.sum() / 8, rtol=1e-5)
    np.testing.assert_allclose(metrics["discriminator_loss"], surprise.mean(), rtol=1e-5)


def test_smms_code_is_drawn_with_the_encoders_spread() -> None:
    vae = Vae(linear([[0.0, 0.0]], [2.0, np.log(9.0)]), linear([[1.0]], [0.0]))
    kl, error = evidence(vae, jnp.zeros((1, 1)), jnp.array([[1.0]]))
    np.testing.assert_allclose(error, [[(2 + 3) ** 2]], rtol=1e-5)
    np.testing.assert_allclose(kl, [0.5 * (4 + 9 - 1 - np.log(9))], rtol=1e-5)


@pytest.mark.parametrize("name", ["icm", "disagreement", "rnd", "apt", "diayn", "aps", "smm"])
def test_a_baselines_model_learns_what_it_is_asked_to(name: str) -> None:
    """Its loss falls on one batch, and its backbone is the shared one."""
    cls = registry.load("explorer", name)
    explorer = dataclasses.replace(cls(), hidden=16, batch=16, learning_rate=1e-3)
    rng = np.random.default_rng(0)
    data = Batch(
        observation=jnp.asarray(rng.normal(size=(16, 3)), jnp.float32),
        action=jnp.asarray(rng.uniform(-1, 1, (16, 2)), jnp.float32),
        reward=jnp.zeros(16),
        discount=jnp.ones(16),
        next_observation=jnp.asarray(rng.normal(size=(16, 3)), jnp.float32),
        skill=jnp.stack([explorer.skill(SPEC, np.array([n, 1]), 0) for n in range(16)]),
        next_quantities=jnp.zeros((16, 0)),
    )
    fit = jax.jit(explorer.fit)
    model = explorer.init_model(SPEC, KEY)
    model, first = fit(model, data, KEY)
    for _ in range(200):
        model, last = fit(model, data, KEY)
    for loss in ("forward_error", "inverse_error", "prediction_error", "discriminator_loss", "feature_loss"):
        if loss in first:
            assert last[loss] < first[loss]
    if name == "smm":
        assert last["density_loss"] < first["density_loss"]
    shared = {"critics": 2, "share": "trunk", "bootstrap": "min", "actor_objective": "min", "tau": 0.01}
    assert {field: getattr(cls(), field) for field in shared} == shared


def test_skills_keep_their_schedule() -> None:
    key = np.array([5, 6], np.uint32)
    diayn = np.stack([Diayn().skill(SPEC, key, step) for step in range(200)])
    assert diayn.shape == (200, 16)
    assert (diayn.sum(axis=1) == 1).all()
    changes = np.flatnonzero((np.diff(diayn, axis=0) != 0).any(axis=1)) + 1
    assert set(changes) <= {50, 100, 150}
    assert len(changes) >= 1
    aps = np.stack([Aps().skill(SPEC, key, step) for step in range(20)])
    np.testing.assert_allclose(np.linalg.norm(aps, axis=1), 1.0, rtol=1e-6)
    assert np.array_equal(np.flatnonzero((np.diff(aps, axis=0) != 0).any(axis=1)) + 1, [5, 10, 15])
    smm = np.stack([Smm().skill(SPEC, key, step) for step in range(1000)])
    assert (smm == smm[0]).all()
    drawn = np.stack([Smm().skill(SPEC, np.array([n, 0]), 0) for n in range(400)]).sum(axis=0)
    assert drawn.shape == (4,)
    assert (np.abs(drawn - 100) < 5 * (400 * 0.25 * 0.75) ** 0.5).all()


def test_an_actor_sees_its_skill() -> None:
    explorer = Diayn(hidden=16, noise=0.0)
    state = explorer.init(SPEC, KEY)
    act, observation, key = explorer.behaviour(state), np.ones(3, np.float32), np.zeros(2, np.uint32)
    one, other = (act(Moment(observation, np.eye(16, dtype=np.float32)[n], key, 0)) for n in range(2))
    assert not np.allclose(one, other)
