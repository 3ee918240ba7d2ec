"""Exact values against enumeration, the simulator against its distribution, and MDPs from outside."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from conftest import random_mdp
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardfree.errors import UserError
from rewardfree.exact import Mdp, from_gymnasium, load
from rewardfree.exact.compare import all_rewards, reachable
from rewardfree.exact.mdp import Purpose, Simulator, Streams
from rewardfree.exact.mdps import MDPS


def paths(mdp: Mdp, policy: np.ndarray) -> list[tuple[float, list[tuple[int, int, int]]]]:
    """Every path of a policy with its probability: [(probability, [(h, s, a), ...]), ...]."""
    found = [(float(p), [(0, s, int(policy[0, s]))]) for s, p in enumerate(mdp.problem.start) if p > 0]
    for h in range(1, mdp.problem.horizon):
        found = [
            (p * q, [*path, (h, s, int(policy[h, s]))])
            for p, path in found
            for s, q in enumerate(mdp.transitions[path[-1]])
            if q > 0
        ]
    return found


def policies(mdp: Mdp) -> np.ndarray:
    """Every deterministic policy."""
    H, S, A = mdp.problem.horizon, mdp.problem.states, mdp.problem.actions
    return np.array(list(itertools.product(range(A), repeat=H * S))).reshape(-1, H, S)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_the_optimal_value_is_the_best_of_all_policies(seed: int) -> None:
    mdp = random_mdp(seed, S=2, H=3)
    reward = mdp.normalise(np.random.default_rng(seed).random((3, 2, 2)))
    every = policies(mdp)
    by_paths = [sum(p * sum(reward[z] for z in path) for p, path in paths(mdp, pi)) for pi in every]
    values = mdp.problem.mean_start(mdp.value(every, reward)[:, 0])
    np.testing.assert_allclose(values, by_paths, atol=1e-12)
    best = mdp.optimal(reward)
    assert mdp.problem.mean_start(best.V[0]) == pytest.approx(max(by_paths))
    np.testing.assert_allclose(mdp.value(best.policy, reward), best.V, atol=1e-12)
    totals = [sum(reward[z] for z in path) for pi in every for _, path in paths(mdp, pi)]
    assert max(totals) == pytest.approx(1.0)  # what normalise is for
    mdp.check(reward)


def test_occupancy_is_the_share_of_the_paths() -> None:
    mdp = random_mdp(5)
    policy = np.random.default_rng(0).integers(2, size=(3, 3))
    expected = np.zeros((3, 3))
    for p, path in paths(mdp, policy):
        for h, s, _ in path:
            expected[h, s] += p
    np.testing.assert_allclose(mdp.occupancy(policy), expected, atol=1e-12)
    np.testing.assert_array_equal((expected > 0) <= reachable(mdp).any(axis=-1), True)


def test_normalising_a_reward_keeps_the_order_of_policies() -> None:
    mdp = random_mdp(2, S=2)
    reward = np.random.default_rng(3).normal(size=(3, 2, 2))
    raw = mdp.problem.mean_start(mdp.value(policies(mdp), reward)[:, 0])
    normalised = mdp.problem.mean_start(mdp.value(policies(mdp), mdp.normalise(reward))[:, 0])
    np.testing.assert_array_equal(np.argsort(raw), np.argsort(normalised))


def test_the_simulator_draws_from_the_transitions() -> None:
    mdp = random_mdp(1)
    seeds = range(4000)
    policy = np.ones((len(seeds), 3, 3), dtype=np.int64)
    episode = Simulator(mdp, Streams(seeds, Purpose.SIMULATOR)).rollout(policy)
    np.testing.assert_array_equal(episode.next_state[:, :-1], episode.state[:, 1:])
    expected = mdp.occupancy(policy[0])
    for h, s in np.ndindex(3, 3):
        share = np.mean(episode.state[:, h] == s)
        deviation = np.sqrt(expected[h, s] * (1 - expected[h, s]) / len(seeds))
        assert abs(share - expected[h, s]) <= 5 * deviation


def test_an_impossible_transition_is_never_drawn() -> None:
    third = np.full(3, 1 / 3)
    P = np.array([[[0.0, 1.0, 0.0]], [[*third]], [[0.1, 0.2, 0.7]]])
    P[1, 0] = [0.1, 0.9 - 1e-9, 1e-9 - 1e-9]
    P[1, 0] /= P[1, 0].sum()
    mdp = Mdp(P, horizon=50)
    episode = Simulator(mdp, Streams(range(100), Purpose.SIMULATOR)).rollout(np.zeros((100, 50, 3), int))
    assert not (episode.state == 2).any()


def test_a_seed_does_not_depend_on_its_neighbours() -> None:
    alone, beside = Streams([7], Purpose.POLICY), Streams([3, 7, 9], Purpose.POLICY)
    for shape in ((2, 3), (), (5,)):
        np.testing.assert_array_equal(alone.random(*shape)[0], beside.random(*shape)[1])
    Q = np.zeros((3, 4, 5))
    np.testing.assert_array_equal(alone.argmax(Q[:1])[0], beside.argmax(Q)[1])


def test_ties_are_broken_evenly() -> None:
    Q = np.tile([0.5, 1.0, 1.0], (300, 10, 1))
    chosen = Streams(range(300), Purpose.POLICY).argmax(Q)
    assert set(np.unique(chosen)) == {1, 2}
    assert abs(np.mean(chosen == 1) - 0.5) < 5 * 0.5 / np.sqrt(3000)


@pytest.mark.parametrize("name", MDPS)
def test_every_named_mdp_can_be_solved(name: str) -> None:
    mdp = load(name)
    reach = all_rewards(mdp, dense=2)
    for reward in reach[[0, -2, -1]]:
        mdp.check(reward)
    best = mdp.problem.mean_start(mdp.optimal(reach).V[:, 0])
    assert best.max() > 0
    assert best.max() <= 1 + 1e-9


def test_known_answers_of_the_named_mdps() -> None:
    lock = load("combination-lock-12")
    reach = all_rewards(lock, dense=0)
    best = lock.problem.mean_start(lock.optimal(reach).V[:, 0])
    np.testing.assert_array_equal(best, np.r_[np.zeros(11), 1.0, 1.0])  # the lock opened, or lost
    uniform = lock.transitions[0].mean(axis=1)
    assert np.linalg.matrix_power(uniform, 11)[0, 11] == pytest.approx(3.0**-11)
    chain = load("double-chain-9", horizon=5)  # four steps to the end, each right with 0.95
    assert chain.problem.mean_start(chain.optimal(all_rewards(chain, dense=0)[8]).V[0]) == pytest.approx(
        0.95**4
    )
    assert load("four-rooms-9").problem.states == 81 - 17 + 4
    assert load("rooms-15").problem.states == 389
    assert load("riverswim-8").problem.horizon == 16
    linear = load("random-linear").problem
    assert linear.features is not None
    assert (linear.states, linear.actions, linear.features.shape[-1]) == (50, 4, 6)


GOOD = np.full((2, 2, 2), 0.5)
BAD = {
    "a row must sum to one, row (0, 0, 1) sums to 0.8": (np.array([[[0.5, 0.5], [0.5, 0.3]]] * 2), 3),
    "a probability is negative, -0.5": (np.array([[[1.5, -0.5], [0.5, 0.5]]] * 2), 3),
    "nan or inf": (np.full((2, 2, 2), np.nan), 3),
    "a horizon of 0 leaves nothing to decide": (GOOD, 0),
    "need a horizon": (GOOD, None),
    "transitions have shape (2, 2)": (np.eye(2), 3),
    "do not fit a horizon of 2": (np.tile(GOOD, (3, 1, 1, 1)), 2),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_transitions_get_a_clear_error(message: str) -> None:
    P, horizon = BAD[message]
    with pytest.raises(UserError) as error:
        Mdp(P, horizon=horizon)
    assert message.replace("row (0, 0, 1)", "row (0, 1)") in str(error.value)


def test_bad_starts_and_rewards_get_a_clear_error() -> None:
    with pytest.raises(UserError, match="start state 2 does not exist"):
        Mdp(GOOD, 2, horizon=3)
    with pytest.raises(UserError, match=r"start distribution: a row must sum to one, it sums to 0\.9"):
        Mdp(GOOD, np.array([0.5, 0.4]), horizon=3)
    mdp = Mdp(GOOD, horizon=3)
    for reward, message in {
        (2.0, 0.0): r"must lie in \[0, 1\]",
        (-0.1, 0.0): r"must lie in \[0, 1\]",
        (0.5, 0.1): "may total 1 at most, here 1.5",
        (np.inf, 0.0): "must be finite",
        (0.1, 0.1, 0.1): "does not fit",
    }.items():
        with pytest.raises(UserError, match=message):
            mdp.check(np.array(reward))


def test_frozen_lake_is_gymnasiums() -> None:
    environment = gymnasium.make("FrozenLake-v1", is_slippery=True)
    mdp = from_gymnasium(environment, horizon=20)
    table = environment.unwrapped.P  # type: ignore[attr-defined]
    V = np.zeros(16)
    for _ in range(20):  # value iteration on the table itself
        V = np.array(
            [
                max(sum(p * (r + (0 if d else V[n])) for p, n, r, d in table[s][a]) for a in range(4))
                for s in range(16)
            ]
        )
    paid = np.array([[sum(p * r for p, _, r, _ in table[s][a]) for a in range(4)] for s in range(16)])
    scale = mdp.largest_total(np.tile(paid, (20, 1, 1)))  # a path may earn its expected 1/3 several times
    best = mdp.problem.mean_start(mdp.optimal(mdp.rewards["environment"]).V[0])
    assert best * scale == pytest.approx(V[0])
    assert mdp.name == "FrozenLake-v1"


def test_other_environments_load_or_say_why_not() -> None:
    taxi = load("gymnasium:Taxi-v4", horizon=15)
    assert (taxi.problem.states, taxi.problem.actions) == (500, 6)
    assert np.count_nonzero(taxi.problem.start) == 300
    best = taxi.optimal(taxi.rewards["environment"]).V[0]
    assert taxi.problem.mean_start(best) > 0.5
    for name, message in {
        "gymnasium:CartPole-v1": "Discrete spaces that start at 0 are needed",
        "gymnasium:Blackjack-v1": "Discrete spaces",
        "gymnasium:NoSuchThing-v0": "Gymnasium cannot make NoSuchThing-v0",
        "riverswin-8": "did you mean riverswim",
        "riverswim-1": "the size must be at least 2",
        "combination-lock-0": "the horizon must be at least 1",
    }.items():
        with pytest.raises(UserError, match=message):
            load(name)
    with pytest.raises(UserError, match="the horizon must be at least 1"):
        load("riverswim-8", horizon=0)


def test_arrays_from_a_file(tmp_path: Path) -> None:
    path, P = tmp_path / "mine.npz", random_mdp(4).transitions
    np.savez(path, transitions=P, start=np.array([0, 1.0, 0]), goal=np.eye(3)[2])
    mdp = load(str(path))
    np.testing.assert_array_equal(mdp.transitions, P)
    np.testing.assert_array_equal(mdp.problem.start, [0, 1, 0])
    assert mdp.rewards["goal"].shape == (3, 3, 2)
    with pytest.raises(UserError, match="cannot read"):
        load(str(tmp_path / "none.npz"))
    np.savez(tmp_path / "other.npz", P=P)
    with pytest.raises(UserError, match="no array called transitions"):
        load(str(tmp_path / "other.npz"))


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path.touch, (Path("hostile-was-here"),))  # type: ignore[return-value]


def test_a_file_is_never_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "object.npz", transitions=np.array([Hostile()], dtype=object))
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Hostile()))
    for name in ("object", "pickle"):
        with pytest.raises(UserError, match=r"not a \.npz file of plain arrays"):
            load(f"{name}.npz")
    assert not (tmp_path / "hostile-was-here").exists()
