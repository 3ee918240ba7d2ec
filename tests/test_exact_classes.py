"""Function classes: closed forms against their definitions, and against each other."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardfree.errors import UserError
from rewardfree.exact import Finite, FunctionClass, GeneralisedLinear, Linear, Statistics, Tabular
from rewardfree.exact.classes.linear import LinearStatistics
from rewardfree.exact.mdp import Episode, Problem

LAM, L = 0.3, 1.0
Data = list[tuple[Episode, np.ndarray]]


def problem(S: int = 3, A: int = 2, H: int = 2, d: int | None = None, seed: int = 0) -> Problem:
    phi = None if d is None else np.random.default_rng(seed).dirichlet(np.full(d, 0.5), size=(S, A))
    return Problem(S, A, H, np.eye(S)[0], features=phi)


def data(p: Problem, seed: int, episodes: int, seeds: int = 2) -> Data:
    """Random transitions with random weights."""
    rng = np.random.default_rng(seed)
    shape = seeds, p.horizon
    return [
        (
            Episode(*(rng.integers(n, size=shape) for n in (p.states, p.actions, p.states))),
            rng.uniform(0.1, 5, shape),
        )
        for _ in range(episodes)
    ]


def fill(statistics: Statistics, seen: Data) -> Statistics:
    for episode, weight in seen:
        statistics.update(episode, weight)
    return statistics


def classes(p: Problem) -> dict[str, FunctionClass]:
    G = np.random.default_rng(1).random((20, p.states, p.actions))
    return {
        "tabular": Tabular(),
        "linear": Linear(),
        "generalised": GeneralisedLinear(),
        "finite": Finite(G),
    }


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_the_width_never_grows_with_data(seed: int) -> None:
    p = problem(d=3, seed=seed)
    for function_class in classes(p).values():
        statistics = function_class.statistics(p, 2, LAM, L)
        before = statistics.width()
        for episode, weight in data(p, seed, 8):
            statistics.update(episode, weight)
            after = statistics.width()
            assert (after <= before * (1 + 1e-10)).all()
            before = after


def test_before_any_data_the_width_is_the_largest_difference_over_root_lambda() -> None:
    p = problem()
    np.testing.assert_allclose(Tabular().statistics(p, 1, LAM, L).width(), L / np.sqrt(LAM))
    np.testing.assert_allclose(Linear(norm=2).statistics(p, 1, LAM, L).width(), 2 * 2 / np.sqrt(LAM))
    G = np.random.default_rng(0).random((9, 3, 2))
    expected = (G.max(axis=0) - G.min(axis=0)) / np.sqrt(LAM)
    np.testing.assert_allclose(Finite(G).statistics(p, 1, LAM, L).width()[0, 0], expected)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_the_linear_width_is_the_supremum_of_its_definition(seed: int) -> None:
    """D^2(z) = sup (phi' x)^2 / (sum w (phi_i' x)^2 + lambda) over norm(x) <= 2B."""
    p, B = problem(d=3, seed=seed), 1.5
    assert p.features is not None
    seen = data(p, seed, 6, seeds=1)
    statistics = fill(Linear(norm=B).statistics(p, 1, LAM, L), seen)
    assert isinstance(statistics, LinearStatistics)
    D = statistics.width()[0, 0]
    rows = np.array([p.features[e.state[0, 0], e.action[0, 0]] for e, _ in seen])
    weights = np.array([w[0, 0] for _, w in seen])

    def ratio(x: np.ndarray, phi: np.ndarray) -> float:
        return float((phi @ x) ** 2 / (weights @ (rows @ x) ** 2 + LAM))

    rng = np.random.default_rng(seed)
    for s, a in np.ndindex(p.states, p.actions):
        phi = p.features[s, a]
        best = statistics.inverse[0, 0] @ phi
        best *= 2 * B / np.linalg.norm(best)
        assert ratio(best, phi) == pytest.approx(D[s, a] ** 2)
        for x in rng.normal(size=(50, 3)):
            assert ratio(2 * B * rng.random() * x / np.linalg.norm(x), phi) <= D[s, a] ** 2 * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_one_hot_linear_is_tabular(seed: int) -> None:
    """At equal ridge, lambda/(4B^2) = lambda/L^2 with B = L/2."""
    p, seen = problem(), data(problem(), seed, 12)
    tabular = fill(Tabular().statistics(p, 2, LAM, L), seen)
    linear = fill(Linear(norm=L / 2).statistics(p, 2, LAM, L), seen)
    np.testing.assert_allclose(linear.width(), tabular.width(), atol=1e-9, rtol=0)
    rng = np.random.default_rng(seed)
    V, reward = rng.random((2, 4, 3)), rng.random((2, 4, 3, 2))
    for h, r in itertools.product(range(2), (None, reward)):
        np.testing.assert_allclose(linear.regress(h, V, r), tabular.regress(h, V, r), atol=1e-9, rtol=0)


def test_the_incremental_inverse_agrees_with_a_fresh_factorisation_after_5000_updates() -> None:
    p = problem(S=10, A=3, H=3, d=8)
    statistics = fill(Linear().statistics(p, 2, 1e-3, L), data(p, 0, 5500))
    assert isinstance(statistics, LinearStatistics)
    assert statistics._updates % 1000 == 500  # not just refactored
    fresh = np.linalg.inv(statistics.gram)
    np.testing.assert_allclose(statistics.inverse, fresh, atol=1e-8 * np.abs(fresh).max(), rtol=0)
    np.testing.assert_allclose(
        statistics.inverse @ statistics.gram, np.tile(np.eye(8), (2, 3, 1, 1)), atol=1e-8
    )


def straight(x: np.ndarray) -> np.ndarray:
    return x


def bent(x: np.ndarray) -> np.ndarray:
    """The default link of the generalised linear class."""
    return 0.5 * x + 0.5 * np.tanh(x)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["linear", "generalised"]))
def test_the_regression_minimises_the_weighted_loss(seed: int, name: str) -> None:
    p = problem(d=3, seed=seed)
    assert p.features is not None
    seen = data(p, seed, 30, seeds=1)
    rng = np.random.default_rng(seed)
    V, reward = rng.random((1, 1, 3)), rng.random((1, 1, 3, 2))
    ridge, link = 1e-3, straight if name == "linear" else bent
    cls: FunctionClass = Linear(norm=1) if name == "linear" else GeneralisedLinear(norm=1, steps=50)
    f = fill(cls.statistics(p, 1, 4 * ridge, L), seen).regress(1, V, reward)[0, 0]
    rows = np.array([p.features[e.state[0, 1], e.action[0, 1]] for e, _ in seen])
    target = np.array(
        [reward[0, 0, e.state[0, 1], e.action[0, 1]] + V[0, 0, e.next_state[0, 1]] for e, _ in seen]
    )
    weight = np.array([w[0, 1] for _, w in seen])

    def loss(theta: np.ndarray) -> float:
        return float(weight @ (link(rows @ theta) - target) ** 2 + ridge * theta @ theta)

    inverse = _inverse(link, f)
    theta = np.linalg.lstsq(p.features.reshape(-1, 3), inverse.reshape(-1), rcond=None)[0]
    np.testing.assert_allclose(link(p.features @ theta), f, atol=1e-6)  # it is a member of the class
    for step in 1e-3 * rng.normal(size=(20, 3)):
        assert loss(theta + step) >= loss(theta) - 1e-9


def _inverse(link: Callable[[np.ndarray], np.ndarray], f: np.ndarray) -> np.ndarray:
    low, high = np.full(f.shape, -50.0), np.full(f.shape, 50.0)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = np.where(link(middle) < f, middle, low), np.where(link(middle) < f, high, middle)
    return (low + high) / 2


def test_a_straight_link_is_linear() -> None:
    p = problem(d=3)
    seen, V = data(p, 5, 20), np.random.default_rng(0).random((2, 2, 3))
    linear = fill(Linear(norm=2).statistics(p, 2, LAM, L), seen)
    straight = fill(GeneralisedLinear(k1=1, k2=1, norm=2).statistics(p, 2, LAM, L), seen)
    np.testing.assert_allclose(straight.width(), linear.width(), atol=1e-10)
    np.testing.assert_allclose(straight.regress(0, V), linear.regress(0, V), atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_the_generalised_width_bounds_its_definition(seed: int) -> None:
    p, B = problem(d=2, seed=seed), 1.0
    assert p.features is not None
    seen = data(p, seed, 5, seeds=1)
    cls = GeneralisedLinear(k1=0.3, k2=1.0, norm=B)
    D = fill(cls.statistics(p, 1, LAM, L), seen).width()[0, 0]
    rows = np.array([p.features[e.state[0, 0], e.action[0, 0]] for e, _ in seen])
    weights = np.array([w[0, 0] for _, w in seen])
    angle, radius = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, B, 4))
    thetas = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).reshape(-1, 2)

    def f(phi: np.ndarray) -> np.ndarray:
        x = thetas @ phi.T
        return 0.3 * x + 0.7 * np.tanh(x)

    apart = f(p.features.reshape(-1, 2))[:, None] - f(p.features.reshape(-1, 2))  # (n, n, SA)
    energy = ((f(rows)[:, None] - f(rows)) ** 2) @ weights + LAM
    true = (apart**2 / energy[..., None]).max(axis=(0, 1)).reshape(D.shape)
    assert (true <= D**2 * (1 + 1e-9)).all()
    assert ((1 / 0.3) ** 2 * true * 1.2 >= D**2).all()  # the grid of thetas misses some of the supremum


def test_a_fine_finite_class_tends_to_tabular() -> None:
    p = problem(S=2, A=1, H=1)
    grid = np.linspace(0, L, 14)
    G = np.array(list(itertools.product(grid, repeat=2))).reshape(-1, 2, 1)
    seen = data(p, 3, 15, seeds=1)
    finite = fill(Finite(G).statistics(p, 1, LAM, L), seen)
    tabular = fill(Tabular().statistics(p, 1, LAM, L), seen)
    np.testing.assert_allclose(finite.width(), tabular.width(), rtol=1e-9)  # 0 and L are both on the grid
    V = np.random.default_rng(0).random((1, 3, 2))
    plain = fill(Tabular().statistics(p, 1, 1e-12, L), seen)
    assert np.abs(finite.regress(0, V) - plain.regress(0, V)).max() <= (grid[1] - grid[0]) / 2 + 1e-9


def test_the_finite_regression_is_the_best_member() -> None:
    p = problem()
    G = np.random.default_rng(4).random((30, 3, 2))
    seen = data(p, 2, 25, seeds=1)
    V = np.random.default_rng(5).random((1, 1, 3))
    found = fill(Finite(G).statistics(p, 1, LAM, L), seen).regress(1, V)[0, 0]
    losses = [
        sum(w[0, 1] * (g[e.state[0, 1], e.action[0, 1]] - V[0, 0, e.next_state[0, 1]]) ** 2 for e, w in seen)
        for g in G
    ]
    np.testing.assert_array_equal(found, G[int(np.argmin(losses))])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_the_eluder_sum_is_bounded_by_the_determinant(seed: int) -> None:
    """sum min(1, D^2/sigma_bar^2) <= 2 log(det L_K / det L_0) <= 2 d log(1 + K H/(d lambda_eff))."""
    p, K = problem(d=3, H=4, seed=seed), 40
    statistics = Linear().statistics(p, 1, LAM, L)
    assert isinstance(statistics, LinearStatistics)
    first = np.linalg.slogdet(statistics.gram)[1]
    rng, total = np.random.default_rng(seed), np.zeros((1, 4))
    for episode, _ in data(p, seed, K, seeds=1):
        weight = rng.uniform(0.01, p.horizon, (1, 4))
        D = statistics.width()[0, np.arange(4), episode.state[0], episode.action[0]]
        total += np.minimum(1, weight * D**2)
        statistics.update(episode, weight)
    growth = np.linalg.slogdet(statistics.gram)[1] - first
    ridge = LAM / (4 * 3)
    assert (total <= 2 * growth + 1e-9).all()
    assert (growth <= 3 * np.log(1 + K * p.horizon / (3 * ridge)) + 1e-9).all()


def test_log_covering_numbers_by_hand() -> None:
    p = problem(S=3, A=2)
    assert Tabular().log_covers(p, 0.1, LAM, 2.0, 1.0) == pytest.approx((6 * np.log(20), 3 * np.log(10)))
    linear = Linear(norm=2).log_covers(problem(d=4), 0.1, 0.5, 1.0, 3.0)
    log_b = 16 * np.log(1 + 8 * 2 * 9 / (0.5 * 0.05**2))
    assert linear == pytest.approx((4 * np.log(1 + 8 / 0.1), 4 * np.log(1 + 8 / 0.05) + log_b))
    assert pytest.approx(np.log(7)) == Finite(np.zeros((7, 3, 2))).log_covers(p, 0.1, LAM, L, 1.0).F


def test_wrong_classes_get_a_clear_error() -> None:
    p = problem()
    for functions, message in {
        None: "needs its functions",
        (2, 3, 3): "do not fit",
        (300, 3, 2): "are too many",
    }.items():
        with pytest.raises(UserError, match=message):
            Finite(None if functions is None else np.zeros(functions)).statistics(p, 1, LAM, L)
    with pytest.raises(UserError, match=r"must lie in \[0, 1\]"):
        Finite(np.full((2, 3, 2), 1.5)).statistics(p, 1, LAM, L)
    with pytest.raises(UserError, match="0 < k1 <= k2"):
        GeneralisedLinear(k1=2, k2=1)
