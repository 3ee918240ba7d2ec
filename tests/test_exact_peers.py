"""A battery over every algorithm that is registered, and each peer's formula by hand."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from conftest import random_mdp

from rewardfree import registry
from rewardfree.errors import UserError
from rewardfree.exact import Algorithm, Learner, Mdp, explore, load
from rewardfree.exact.compare import all_rewards, compare, plot
from rewardfree.exact.explore import checkpoints
from rewardfree.exact.mdp import Episode, Purpose, Streams
from rewardfree.exact.peers._mixture import MixtureRegression, Widest, norm, psi
from rewardfree.exact.peers.francis import Francis
from rewardfree.exact.peers.generative import Generative
from rewardfree.exact.peers.jin import Jin
from rewardfree.exact.peers.rf_express import RfExpress, RfExpressLearner
from rewardfree.exact.peers.rf_ucrl import RfUcrl, RfUcrlLearner
from rewardfree.exact.peers.rflin import Rflin
from rewardfree.exact.peers.ucrl_rfe import UcrlRfe, UcrlRfeLearner
from rewardfree.exact.peers.ucrl_rfe_plus import UcrlRfePlus, UcrlRfePlusLearner
from rewardfree.exact.peers.uniform import Uniform

ALGORITHMS = [
    (name, preset)
    for name in registry.names("algorithm")
    for preset in registry.load("algorithm", name).presets()
]
MIXTURE = load("linear-mixture", horizon=4)  # every algorithm can run on it
REWARDS = all_rewards(MIXTURE, dense=2)


def made(name: str, preset: str) -> Algorithm:
    found: Algorithm = registry.load("algorithm", name).presets()[preset]
    return found


def record(algorithm: Algorithm, episodes: int, seeds: tuple[int, ...]) -> tuple[Learner, list[Episode]]:
    seen: list[Episode] = []
    return explore(MIXTURE, algorithm, episodes, seeds, lambda k, _, episode: seen.append(episode)), seen


@pytest.mark.parametrize(("name", "preset"), ALGORITHMS)
def test_every_algorithm_keeps_the_contract(name: str, preset: str) -> None:
    algorithm, p = made(name, preset), MIXTURE.problem
    learner, seen = record(algorithm, 30, (3, 5))
    again, same = record(algorithm, 30, (3, 5))
    alone, mine = record(algorithm, 30, (5,))
    for ours, twice, single in zip(seen, same, mine, strict=True):
        for i in range(3):
            np.testing.assert_array_equal(ours[i], twice[i])  # the same seed gives the same data
            np.testing.assert_array_equal(ours[i][1:], single[i])  # whatever runs beside it
    plan = learner.plan(REWARDS)
    assert plan.policy.shape == (2, len(REWARDS), p.horizon, p.states)
    assert ((plan.policy >= 0) & (plan.policy < p.actions)).all()
    assert plan.value.shape == (2, len(REWARDS))
    np.testing.assert_array_equal(plan.policy, learner.plan(REWARDS).policy)  # planning changes nothing
    np.testing.assert_array_equal(plan.policy, again.plan(REWARDS).policy)
    np.testing.assert_array_equal(plan.policy[1:], alone.plan(REWARDS).policy)
    replayed = algorithm.start(p, Streams((3, 5), Purpose.POLICY), 30)
    for episode in seen:
        replayed.observe(episode)
    np.testing.assert_array_equal(plan.policy, replayed.plan(REWARDS).policy)  # data can be replayed
    certificate = learner.certificate()
    assert certificate is None or certificate.shape == (2,)


@pytest.mark.parametrize("name", registry.names("algorithm"))
def test_every_algorithm_learns(name: str) -> None:
    """Its plans for all rewards come near the optimum in a small MDP, in its first preset."""
    mdp = load("linear-mixture", horizon=3)
    found = compare(mdp, {name: made(name, next(iter(made_presets(name))))}, 1500, range(3), at=[1, 1500])
    first, last = found.algorithms[name].own_mean_suboptimality
    assert last.mean() < 0.25 * first.mean(), (first, last)
    assert last.mean() < 0.02


def made_presets(name: str) -> dict[str, Algorithm]:
    found: dict[str, Algorithm] = registry.load("algorithm", name).presets()
    return found


def counted(learner: RfUcrlLearner | RfExpressLearner, counts: np.ndarray) -> None:
    """Give a learner the counts n_h(s, a, s')."""
    learner.statistics.transition_weight[0] = counts
    learner.statistics.weight[0] = counts.sum(axis=-1)


COUNTS = np.array([[[[3, 1]], [[0, 2]]], [[[1, 1]], [[0, 0]]]])  # H = 2, S = 2, A = 1
TINY = Mdp(np.full((2, 1, 2), 0.5), horizon=2)


def test_rf_ucrl_by_hand() -> None:
    learner = RfUcrl(clip=True, delta=0.1).start(TINY.problem, Streams([0], Purpose.POLICY), 10)
    assert isinstance(learner, RfUcrlLearner)
    counted(learner, COUNTS)

    def width(n: int) -> float:
        return float(np.sqrt(2 * (np.log(2 * 2 * 2 / 0.1) + np.log(np.e * (1 + n))) / n))

    last = [min(1, width(2)), 1.0]  # the second state was never seen at the last stage
    first = [min(2, 2 * width(4) + 0.75 * last[0] + 0.25 * last[1]), min(2, 2 * width(2) + last[1])]
    E = learner.errors(Streams([0], Purpose.PLANNING), clip=True).V[0, 0]
    np.testing.assert_allclose(E, [first, last])
    np.testing.assert_allclose(learner.certificate(), 2 * first[0])


def test_rf_express_by_hand() -> None:
    counts = COUNTS * 10**6
    learner = RfExpress(delta=0.1).start(TINY.problem, Streams([0], Purpose.POLICY), 10)
    assert isinstance(learner, RfExpressLearner)
    counted(learner, counts)

    def width(n: int) -> float:
        return float(15 * 4 * (np.log(3 * 2 * 2 / 0.1) + 2 * np.log(8 * np.e * (n + 1))) / n)

    last = [width(2 * 10**6), 2.0]
    first = [width(4 * 10**6) + 1.5 * (0.75 * last[0] + 0.25 * last[1]), width(2 * 10**6) + 1.5 * last[1]]
    W = learner.errors(Streams([0], Purpose.PLANNING), clip=True).V[0, 0]
    np.testing.assert_allclose(W, [[first[0], min(2, first[1])], last])
    np.testing.assert_allclose(learner.certificate(), 2 * (3 * np.e * np.sqrt(first[0]) + first[0]))


def test_a_clip_that_nothing_leaves_makes_exploration_uniform() -> None:
    clipped = explore(load("riverswim-4"), RfUcrl(clip=True), 50, range(4))
    assert isinstance(clipped, RfUcrlLearner)
    policies = np.stack([clipped.policy() for _ in range(40)])
    assert abs(policies.mean() - 0.5) < 5 * 0.5 / np.sqrt(policies.size)


def test_generative_sampling_visits_every_cell_equally_often() -> None:
    p = MIXTURE.problem
    _, seen = record(Generative(), 2 * p.states * p.actions, (0, 1))
    cells = np.stack([episode.state * p.actions + episode.action for episode in seen])  # (K, B, H)
    for b, h in np.ndindex(2, p.horizon):
        np.testing.assert_array_equal(np.bincount(cells[:, b, h]), 2)


def test_jin_reaches_every_state_of_the_lock() -> None:
    mdp = load("combination-lock-5")
    found = compare(mdp, {"jin": Jin(), "uniform": Uniform()}, 400, range(5), at=[400]).algorithms
    assert found["jin"].coverage[-1].min() == 1
    assert found["jin"].max_suboptimality[-1].max() == 0


def test_francis_works_stage_by_stage() -> None:
    """In stage p it seeks directions of stage p: states far from the start are found in their turn."""
    mdp = load("combination-lock-5")
    assert compare(mdp, {"f": Francis()}, 500, range(3), at=[500]).algorithms["f"].coverage[-1].min() == 1


def test_rflin_doubles_its_phases() -> None:
    mdp = load("riverswim-3", horizon=2)
    turns: list[int] = []
    explore(mdp, Rflin(), 28, [0], lambda k, learner, _: turns.append(learner._seen))  # type: ignore[attr-defined]
    assert turns == list(range(1, 29))  # phases of 2 * 2, 2 * 4 and 2 * 8 episodes
    learner = Rflin().start(mdp.problem, Streams([0], Purpose.POLICY), 28)
    for seen, expected in {0: (1, 0), 2: (1, 1), 4: (2, 0), 8: (2, 1), 12: (3, 0), 27: (3, 1)}.items():
        learner._seen = seen  # type: ignore[attr-defined]
        assert learner.turn() == expected  # type: ignore[attr-defined]


def test_the_widest_function_is_the_best_corner() -> None:
    P = MIXTURE.problem.kernels
    assert P is not None
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2, 4, 4))
    inverse = root @ root.transpose(0, 2, 1)
    widest = Widest(P)
    exact = norm(widest.psi(widest(inverse)), inverse)
    for f in [np.array(c, dtype=float) for c in itertools.product((0, 1), repeat=8)][::5] + list(
        rng.random((20, 8))
    ):
        assert (norm(np.stack([psi(P, f)] * 2), inverse) <= exact + 1e-12).all()


def test_the_local_maximum_of_many_states_is_one() -> None:
    """Beyond 12 states: no single flip of the corner it stops at does better, and it is never far below."""
    mdp = load("linear-mixture-14")
    P = mdp.problem.kernels
    assert P is not None
    root = np.random.default_rng(1).normal(size=(1, 4, 4))
    inverse = root @ root.transpose(0, 2, 1)
    widest = Widest(P)
    u = widest(inverse)
    best = norm(widest.psi(u), inverse)
    for s in range(14):
        flipped = u.copy()
        flipped[..., s] = 1 - flipped[..., s]
        assert (norm(widest.psi(flipped), inverse) <= best + 1e-9).mean() > 0.9


def test_the_mixture_regression_finds_theta() -> None:
    mdp = MIXTURE
    P = mdp.problem.kernels
    assert P is not None
    regression = MixtureRegression(P, 2)
    explore(mdp, Uniform(), 3000, [0, 1], lambda k, _, e: regression.update(e, np.ones((2, 4))))
    V = np.random.default_rng(0).random((2, 3, 8))
    expected = np.stack([mdp.expectation(0, v) for v in V])
    np.testing.assert_allclose(regression.regress(0, V), expected, atol=0.02)


def test_ucrl_rfe_plus_with_equal_variances_is_ucrl_rfe() -> None:
    """Where every variance is at its floor H^2/d, Sigma differs by that factor alone."""
    plain = explore(MIXTURE, UcrlRfe(), 1, [0])
    plus = UcrlRfePlus(scale=1e-12).start(MIXTURE.problem, Streams([0], Purpose.POLICY), 1)
    explore(MIXTURE, UcrlRfe(), 1, [0], lambda k, _, episode: plus.observe(episode))
    assert isinstance(plain, UcrlRfeLearner)
    assert isinstance(plus, UcrlRfePlusLearner)
    floor = 4 / MIXTURE.problem.horizon**2  # d/H^2; the estimates start at 0, so V_bar does too
    np.testing.assert_allclose(plus.sigma - np.eye(4), floor * (plain.sigma - np.eye(4)), atol=1e-12)
    np.testing.assert_allclose(plus.b, floor * plain.b, atol=1e-12)


def test_mixture_algorithms_say_what_they_need() -> None:
    for algorithm in (UcrlRfe(), UcrlRfePlus()):
        with pytest.raises(UserError, match="needs a linear mixture MDP"):
            explore(random_mdp(0), algorithm, 1)


def test_shifted_rewards_give_the_same_policy_and_constant_ones_any() -> None:
    """Every episode has H steps, so paying c more in each of them changes no choice."""
    mdp = random_mdp(3, sparse=False)
    learner = explore(mdp, Generative(), 600, [0])
    reward = np.random.default_rng(0).random((3, 3, 2)) / 10
    shifted, scaled, constant, zero = reward + 0.2, 3 * reward, np.full((3, 3, 2), 0.3), np.zeros((3, 3, 2))
    plan = learner.plan(np.stack([reward, shifted, scaled, constant, zero]))
    for number in (1, 2):
        np.testing.assert_array_equal(plan.policy[0, number], plan.policy[0, 0])
    np.testing.assert_allclose(plan.value[0, 1], plan.value[0, 0] + 3 * 0.2)
    for number, value in ((3, 0.9), (4, 0.0)):
        same = np.stack([constant, zero])[number - 3]
        assert mdp.problem.mean_start(mdp.optimal(same).V[0]) == pytest.approx(value)
        assert plan.value[0, number] == pytest.approx(value)
        assert mdp.problem.mean_start(mdp.value(plan.policy[0, number], same)[0]) == pytest.approx(value)


def test_comparison_measures_what_it_says(tmp_path: Path) -> None:
    mdp = load("riverswim-3", horizon=4)
    found = compare(mdp, {"generative": Generative(), "uniform": Uniform()}, 200, range(4), at=[1, 200])
    for curves in found.algorithms.values():
        for values in (curves.max_suboptimality, curves.own_max_suboptimality):
            assert all((v >= -1e-12).all() for v in values)
        assert all(
            (m <= x + 1e-12).all()
            for m, x in zip(curves.mean_suboptimality, curves.max_suboptimality, strict=True)
        )
        assert (curves.coverage[0] <= curves.coverage[1]).all()
        assert (curves.coverage[1] <= 1).all()
    assert (found.algorithms["uniform"].coverage[-1] == 1).all()
    # uniform over the cells of a stage has the largest entropy there is
    assert found.algorithms["generative"].entropy[-1] == pytest.approx(np.log(6), abs=0.01)
    plot(found, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_checkpoints_end_where_the_budget_does() -> None:
    assert checkpoints(1) == [1]
    assert checkpoints(10) == [1, 2, 3, 4, 6, 8, 10]
    assert checkpoints(64, per_doubling=1) == [1, 2, 4, 8, 16, 32, 64]
