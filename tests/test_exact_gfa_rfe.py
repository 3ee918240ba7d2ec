"""Algorithm 1: against itself written out naively, and against every inequality that its proof claims."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from conftest import random_mdp
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardfree.errors import UserError
from rewardfree.exact import (
    Finite,
    FunctionClass,
    GeneralisedLinear,
    GfaRfe,
    Learner,
    Linear,
    Mdp,
    Tabular,
    compare,
    explore,
    explore_until,
    load,
)
from rewardfree.exact.classes.linear import features
from rewardfree.exact.classes.tabular import TabularStatistics
from rewardfree.exact.compare import all_rewards
from rewardfree.exact.gfa_rfe import GfaRfeLearner
from rewardfree.exact.good_event import good_event
from rewardfree.exact.mdp import Episode, Purpose, Streams
from rewardfree.exact.peers.kong import Kong
from rewardfree.exact.peers.lsvi_rfe import LsviRfe
from rewardfree.exact.peers.rf_express import RfExpress
from rewardfree.exact.peers.rf_ucrl import RfUcrl
from rewardfree.exact.peers.uniform import Uniform
from rewardfree.exact.peers.wang import Wang, WangLearner

CERTIFIED = [name for name, preset in GfaRfe.presets().items() if preset.certified]


def random_linear(seed: int, d: int = 3) -> Mdp:
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(d, 0.3), size=(4, 2))
    mu = rng.dirichlet(np.full(4, 0.3), size=d)
    return Mdp(phi @ mu, horizon=3, features=phi)


def started(mdp: Mdp, config: GfaRfe, episodes: int = 100, seeds: tuple[int, ...] = (0,)) -> GfaRfeLearner:
    return config.start(mdp.problem, Streams(seeds, Purpose.POLICY), episodes)


class Naive:
    """Algorithm 1 with tabular or linear functions, from the list of all samples, one seed, no cleverness."""

    def __init__(self, mdp: Mdp, config: GfaRfe, linear: bool) -> None:
        self.config, self.problem = config, mdp.problem
        p = mdp.problem
        self.phi = features(p) if linear else np.eye(p.states * p.actions).reshape(p.states, p.actions, -1)
        self.ridge = config.lam / (4 * self.phi.shape[-1] * config.bound**2 if linear else config.bound**2)
        self.samples: list[list[tuple[int, int, int, float]]] = [[] for _ in range(p.horizon)]

    def gram(self, h: int) -> np.ndarray:
        total = self.ridge * np.eye(self.phi.shape[-1])
        for s, a, _, sigma_bar in self.samples[h]:
            total = total + np.outer(self.phi[s, a], self.phi[s, a]) / sigma_bar**2
        return total

    def width(self, h: int) -> np.ndarray:
        return np.sqrt(np.einsum("sai,ij,saj->sa", self.phi, np.linalg.inv(self.gram(h)), self.phi))

    def f(self, h: int, reward: np.ndarray, V: np.ndarray) -> np.ndarray:
        known = self.config.reward == "known"
        target = np.zeros(self.phi.shape[-1])
        for s, a, after, sigma_bar in self.samples[h]:
            y = V[after] + (0 if known else reward[s, a])
            target = target + self.phi[s, a] * y / sigma_bar**2
        fitted = np.clip(self.phi @ np.linalg.solve(self.gram(h), target), 0, self.config.bound)
        return fitted + reward if known else fitted

    def sweep(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        V = np.zeros(self.problem.states)
        found: list[tuple[np.ndarray, ...]] = []
        for h in reversed(range(self.problem.horizon)):
            D = self.width(h)
            b = 2 * self.config.scale * D
            f = self.f(h, b / 2, V)
            Q = np.minimum(f + b, 1)
            V = Q.max(axis=1)
            found.insert(0, (D, f, Q))
        return tuple(np.array(x) for x in zip(*found, strict=True))  # type: ignore[return-value]

    def observe(self, episode: Episode) -> None:
        D, f, _ = self.sweep()
        H, log_cover = self.problem.horizon, self.config.log_cover
        assert log_cover is not None
        for h in range(H):
            s, a, after = (int(x[0, h]) for x in episode)
            sigma = 2 * np.sqrt(log_cover * min(f[h, s, a], 1))
            sigma_bar = max(np.sqrt(log_cover) * np.sqrt(D[h, s, a]), sigma, 1 / np.sqrt(H))
            self.samples[h].append((s, a, after, sigma_bar))

    def plan(self, reward: np.ndarray) -> np.ndarray:
        V = np.zeros(self.problem.states)
        values: list[np.ndarray] = []
        for h in reversed(range(self.problem.horizon)):
            b = np.minimum(self.config.scale * self.width(h), 1)
            V = np.minimum(self.f(h, reward[h], V) + b, 1).max(axis=1)
            values.insert(0, V)
        return np.array(values)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(["known", "literal"]))
def test_it_is_algorithm_1_written_out_naively(seed: int, linear: bool, reward: str) -> None:
    mdp = random_linear(seed)
    config = GfaRfe(Linear() if linear else Tabular(), scale=0.1, log_cover=0.3, lam=0.02, reward=reward)  # type: ignore[arg-type]
    naive = Naive(mdp, config, linear)
    target = all_rewards(mdp, dense=1, seed=seed)[-1]

    def watch(k: int, learner: Learner, episode: Episode) -> None:
        naive.observe(episode)
        assert isinstance(learner, GfaRfeLearner)
        for ours, theirs in zip(learner.sweep(), naive.sweep(), strict=True):
            np.testing.assert_allclose(ours[0], theirs, atol=1e-9)
        planned = learner.plan(target[None])
        value = mdp.problem.mean_start(naive.plan(target)[0])
        assert planned.value[0, 0] == pytest.approx(value, abs=1e-9)

    explore(mdp, config, 6, [seed], watch)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.05, 1.0, None]), st.sampled_from(["known", "literal"]))
def test_what_holds_in_every_run(seed: int, log_cover: float | None, reward: str) -> None:
    """D never grows, sigma_bar >= alpha, D/sigma_bar^2 <= gamma^-2, and the eluder sum is bounded."""
    mdp = random_linear(seed)
    config = GfaRfe(Linear(), log_cover=log_cover, lam=0.5, constants="tight", reward=reward)  # type: ignore[arg-type]
    learner = started(mdp, config, 20, (seed, seed + 1))
    assert learner.alpha == pytest.approx(3**-0.5)
    before, total, first = learner.sweep().D, 0.0, np.linalg.slogdet(learner.statistics.gram)[1]  # type: ignore[attr-defined]

    def watch(k: int, other: Learner, episode: Episode) -> None:
        nonlocal before, total
        sigma_bar = learner.sigma_bar(episode)
        D = learner.sweep().D[np.arange(2)[:, None], np.arange(3), episode.state, episode.action]
        assert (sigma_bar >= learner.alpha).all()
        assert (D / sigma_bar**2 <= learner.gamma**-2 * (1 + 1e-9)).all()
        total = total + np.minimum(1, D**2 / sigma_bar**2)
        learner.observe(episode)
        assert (before * (1 + 1e-10) >= learner.sweep().D).all()
        before = learner.sweep().D

    explore(mdp, config, 20, (seed, seed + 1), watch)
    growth = np.linalg.slogdet(learner.statistics.gram)[1] - first  # type: ignore[attr-defined]
    assert (total <= 2 * growth + 1e-9).all()
    ridge = 0.5 / (4 * 3 * config.bound**2)
    assert (growth <= 3 * np.log(1 + 20 * 3 / (3 * ridge)) + 1e-9).all()


def rich(mdp: Mdp, config: GfaRfe, visits: int, seed: int = 0) -> GfaRfeLearner:
    """A learner that has seen every cell `visits` times, as if it had explored for years.

    With so much data D is tiny and f close to its limit, so the weights are those of the last episodes: they
    are iterated to their fixed point.
    """
    learner = started(mdp, config, episodes=visits)
    statistics = learner.statistics
    assert isinstance(statistics, TabularStatistics)
    counts = np.random.default_rng(seed).multinomial(visits, mdp.transitions)
    weight = np.ones(counts.shape[:-1])
    for _ in range(3):
        statistics.weight[0] = weight * visits
        statistics.transition_weight[0] = weight[..., None] * counts
        learner._sweep = None
        D, f, _ = learner.sweep()
        sigma = 2 * np.sqrt(learner.log_cover * np.minimum(f[0], 1))
        weight = np.maximum(np.maximum(learner.gamma * np.sqrt(D[0]), sigma), learner.alpha) ** -2
    return learner


@pytest.mark.parametrize("name", CERTIFIED)
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_the_good_event_at_scale_1_while_exploring(name: str, seed: int) -> None:
    mdp = random_mdp(seed)
    learner = explore(mdp, GfaRfe.presets()[name], 40, [seed])
    assert isinstance(learner, GfaRfeLearner)
    assert isinstance(learner.statistics, TabularStatistics)
    found = good_event(mdp, learner, learner.statistics.weight[0] > 0)
    assert all(found.values()), found


@pytest.mark.parametrize("name", CERTIFIED)
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_the_good_event_at_scale_1_with_enough_data_to_say_something(name: str, seed: int) -> None:
    mdp = random_mdp(seed)
    learner = rich(mdp, GfaRfe.presets()[name], 10**10, seed)
    found = good_event(mdp, learner, np.ones((3, 3, 2), dtype=bool))
    assert all(found.values()), found
    assert learner.certificate()[0] < 0.5  # so none of it was true by the clip alone


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_truncation_is_subadditive(seed: int) -> None:
    mdp = random_mdp(seed)
    b = np.random.default_rng(seed).random((3, 3, 2))
    once, twice = mdp.optimal(b, cap=1).V, mdp.optimal(2 * b, cap=1).V
    assert (twice <= 2 * once + 1e-12).all()
    assert (twice <= 1).all()


def test_the_certificate_is_honest_where_it_is_tight() -> None:
    """Nothing seen: nothing is promised. Everything seen a billion times: a small bound that holds."""
    mdp = load("riverswim-3", horizon=4)
    rewards = all_rewards(mdp)
    config = GfaRfe.presets()["tight"]
    assert started(mdp, config).certificate()[0] == 1
    few, many = (rich(mdp, config, n) for n in (10**8, 10**10))
    assert few.certificate()[0] > 3 * many.certificate()[0]
    plan = many.plan(rewards)
    gap = mdp.problem.mean_start(mdp.optimal(rewards).V[:, 0] - mdp.value(plan.policy[0], rewards)[:, 0])
    assert plan.bound is not None
    assert (gap <= plan.bound[0]).all()
    assert (plan.bound[0] < many.certificate()[0]).any()  # a bound for one reward is tighter than for all


def test_constants_by_hand() -> None:
    mdp = Mdp(np.full((2, 2, 2), 0.5), horizon=3)
    K, H, delta, lam = 100, 3, 0.05, 1.0
    log_f, log_v = 4 * np.log(K * H), 2 * np.log(K * H)
    for name, (c, m) in {"paper": (16, 1), "corrected": (32, 2), "tight": (2, 2)}.items():
        expected = c * H * (np.log(K * H / delta) + log_v + m * log_f) + 56 + lam
        assert GfaRfe.presets()[name].beta(mdp.problem, K) ** 2 == pytest.approx(expected)
    learner = started(mdp, GfaRfe.presets()["paper"], K)
    assert learner.gamma == pytest.approx(np.sqrt(log_v))
    linear = GfaRfe(Linear(), constants="tight", scale=1, lam=1.0)
    beta = linear.beta(mdp.problem, K)  # a fixed point: log N_V depends on beta
    covers = Linear().log_covers(mdp.problem, 1 / (K * H), 1.0, 1.0, beta)
    assert beta**2 == pytest.approx(2 * H * (np.log(K * H / delta) + covers.V + 2 * covers.F) + 57)


def test_with_the_printed_constants_everything_is_at_the_clip() -> None:
    learner = explore(load("riverswim-4"), GfaRfe.presets()["paper"], 300, [0])
    assert isinstance(learner, GfaRfeLearner)
    np.testing.assert_array_equal(learner.sweep().Q, 1)


def test_log_cover_zero_turns_the_weighting_off() -> None:
    mdp = random_mdp(3)
    learner = explore(mdp, GfaRfe(log_cover=0.0), 50, [0, 1])
    assert isinstance(learner, GfaRfeLearner)
    assert isinstance(learner.statistics, TabularStatistics)
    visits = learner.statistics.weight / mdp.problem.horizon  # every weight is 1/alpha^2 = H
    np.testing.assert_allclose(visits, np.round(visits))
    np.testing.assert_allclose(visits.sum(axis=(2, 3)), 50)


def test_literal_and_known_rewards_agree_where_enough_was_seen() -> None:
    mdp = random_mdp(8, sparse=False)
    known = rich(mdp, GfaRfe(log_cover=0.0, lam=1e-6), 10**6)
    literal = rich(mdp, GfaRfe(log_cover=0.0, lam=4e-6, reward="literal"), 10**6)
    for ours, theirs in zip(known.sweep(), literal.sweep(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("function_class", [Tabular(), Linear(), GeneralisedLinear(), "finite"])
def test_every_function_class_explores_and_plans(function_class: FunctionClass | str) -> None:
    mdp = random_linear(0)
    if function_class == "finite":
        function_class = Finite(np.random.default_rng(0).random((50, 4, 2)))
    assert isinstance(function_class, FunctionClass)
    learner = explore(mdp, GfaRfe(function_class), 60, [0, 1])
    rewards = all_rewards(mdp, dense=2)
    plan = learner.plan(rewards)
    gap = mdp.problem.mean_start((mdp.optimal(rewards).V - mdp.value(plan.policy, rewards))[:, :, 0])
    assert gap.mean() < 0.1
    assert plan.bound is not None
    assert ((plan.bound >= 0) & (plan.bound <= 1)).all()


def test_without_weights_and_with_b_over_h_it_is_wang_2020() -> None:
    """sigma_bar = 1, r = b/H and the clip at H in Lines 4-8 give Wang et al.'s values."""
    mdp = random_linear(4)
    H = mdp.problem.horizon
    learner = explore(mdp, Wang(scale=0.05), 25, [0, 1])
    assert isinstance(learner, WangLearner)
    d = features(mdp.problem).shape[-1]
    # with B = sqrt(d), the ridge lambda/(4B^2) is 1
    gfa = started(mdp, GfaRfe(Linear(), scale=10, lam=4 * d), seeds=(0, 1))
    explore(mdp, Wang(scale=0.05), 25, [0, 1], lambda k, _, e: gfa.statistics.update(e, np.ones((2, H))))
    u = np.minimum(learner.beta * gfa.statistics.width(), H)
    np.testing.assert_allclose(u, learner.bonus(), atol=1e-10)
    values = learner.values(Streams([0, 1], Purpose.PLANNING)).V
    V = np.zeros((2, 1, 4))
    for h in reversed(range(H)):
        Q = np.minimum(gfa.statistics.regress(h, V)[:, 0] + u[:, h] / H + u[:, h], H)
        V = Q.max(axis=-1)[:, None]
        np.testing.assert_allclose(V[:, 0], values[:, 0, h], atol=1e-9)


def test_kong_style_with_linear_functions_is_wang_2020() -> None:
    mdp = random_linear(6)
    d, H = features(mdp.problem).shape[-1], mdp.problem.horizon
    wang = explore(mdp, Wang(scale=0.05), 25, [0])
    kong = Kong(Linear(), lam=4.0 * d * H**2).start(mdp.problem, Streams([0], Purpose.POLICY), 25)
    assert isinstance(wang, WangLearner)
    assert isinstance(kong, WangLearner)
    kong.beta = wang.beta  # their constants differ, the algorithm does not
    explore(mdp, Wang(scale=0.05), 25, [0], lambda k, _, episode: kong.observe(episode))
    ours, theirs = (learner.values(Streams([0], Purpose.PLANNING)) for learner in (kong, wang))
    np.testing.assert_allclose(ours.V, theirs.V, atol=1e-9)


def test_lsvi_rfe_style_in_its_own_scale() -> None:
    """Its form for values in [0, H], written out, chooses what Algorithm 1 divided by H chooses."""
    mdp = random_linear(9)
    phi, H = features(mdp.problem), mdp.problem.horizon
    config, beta, log_cover = LsviRfe(), LsviRfe().scale, LsviRfe().log_cover
    ridge = config.lam / (4 * phi.shape[-1] * H**2)
    samples: list[list[tuple[int, int, int, float]]] = [[] for _ in range(H)]

    def sweep() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        V = np.zeros(4)
        found: list[tuple[np.ndarray, ...]] = []
        for h in reversed(range(H)):
            gram, target = ridge * np.eye(phi.shape[-1]), np.zeros(phi.shape[-1])
            for s, a, after, variance in samples[h]:
                gram = gram + np.outer(phi[s, a], phi[s, a]) / variance
                target = target + phi[s, a] * V[after] / variance
            D = np.sqrt(np.einsum("sai,ij,saj->sa", phi, np.linalg.inv(gram), phi))
            u = beta * D
            f = np.clip(phi @ np.linalg.solve(gram, target), 0, H) + u
            Q = np.minimum(f + 2 * u, H)
            V = Q.max(axis=1)
            found.insert(0, (D, f, Q))
        return tuple(np.array(x) for x in zip(*found, strict=True))  # type: ignore[return-value]

    def watch(k: int, learner: Learner, episode: Episode) -> None:
        D, f, _ = sweep()
        for h in range(H):
            s, a, after = (int(x[0, h]) for x in episode)
            variance = max(H, 4 * H * log_cover * min(f[h, s, a], H), H * log_cover * D[h, s, a])
            samples[h].append((s, a, after, variance))
        assert isinstance(learner, GfaRfeLearner)
        np.testing.assert_allclose(learner.sweep().Q[0] * H, sweep()[2], atol=1e-8)

    explore(mdp, config, 8, [0], watch)


@pytest.mark.parametrize("mdp", ["combination-lock-12", "riverswim-8"])
def test_what_should_solve_them_does_within_600_episodes(mdp: str) -> None:
    """The largest V* - V^pi over all rewards, common planner, mean over 120 seeds (one sits near 0.018)."""
    solvers = {"gfa-rfe": GfaRfe(), "rf-express": RfExpress(), "rf-ucrl": RfUcrl()}
    found = compare(load(mdp), solvers | {"uniform": Uniform()}, 600, range(120), at=[600]).algorithms
    reached = {name: float(np.mean(found[name].max_suboptimality[-1])) for name in found}
    assert all(reached[name] < 0.02 for name in solvers), reached
    assert reached["uniform"] > 0.2


def test_explore_until_stops_when_the_bound_holds() -> None:
    mdp, seeds = load("riverswim-4"), (0, 1, 2)
    config = GfaRfe()
    rewards = all_rewards(mdp, dense=1)[[0, -1]]
    everything = explore_until(0.2, mdp, config, 2000, seeds=seeds)
    assert (everything.bound <= 0.2).all()
    assert (everything.held > 0).all()
    assert everything.episodes == everything.held.max() < 2000
    np.testing.assert_array_equal(everything.learner.certificate(), everything.bound)
    some = explore_until(0.2, mdp, config, 2000, rewards, seeds)
    assert some.episodes < everything.episodes
    never = explore_until(1e-6, mdp, config, 20, seeds=seeds)
    assert (never.held == -1).all()
    assert never.episodes == 20
    with pytest.raises(UserError, match="has no bound at all"):
        explore_until(0.1, mdp, Uniform(), 10)
    with pytest.raises(UserError, match="has no bound for single rewards"):
        explore_until(0.1, mdp, RfUcrl(), 10, rewards)
    with pytest.raises(UserError, match="epsilon must be positive"):
        explore_until(0.0, mdp, config, 10)


def test_contradicting_settings_get_a_clear_error() -> None:
    for settings_ in ({"scale": 0.0}, {"lam": -1.0}, {"delta": 1.0}, {"log_cover": -1.0}):
        with pytest.raises(UserError):
            dataclasses.replace(GfaRfe(), **settings_)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="lam must be at most"):
        explore(load("riverswim-3"), GfaRfe(scale=0.01, lam=0.01), 1)
    with pytest.raises(UserError, match="0 episodes"):
        explore(load("riverswim-3"), GfaRfe(), 0)
    with pytest.raises(UserError, match="at least one seed"):
        explore(load("riverswim-3"), GfaRfe(), 1, [])
