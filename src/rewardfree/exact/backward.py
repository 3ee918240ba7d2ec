"""Least-squares value iteration: the step backwards through the stages that the peers share."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from rewardfree.exact.classes.tabular import TabularStatistics
from rewardfree.exact.interfaces import Learner, Plan, Regression, Statistics
from rewardfree.exact.mdp import Episode, Problem, Purpose, Streams, Values


def backward(
    regression: Regression,
    gain: Float[np.ndarray, "#B R H S A"],
    ties: Streams,
    cap: float | Float[np.ndarray, " H"] = np.inf,
    growth: float = 1.0,
) -> Values:
    """Q_h = min(gain_h + growth * f^_h, cap_h) with f^_h the regression of V_{h+1}; V_h its max, pi_h its
    argmax.

    The gain is all that does not depend on the next stage: the reward, the bonus, or both.
    """
    _, R, H, S, _ = gain.shape
    B = len(ties.seeds)
    caps = np.broadcast_to(cap, H)
    V, policy = np.empty((B, R, H, S)), np.empty((B, R, H, S), dtype=np.int64)
    after = np.zeros((B, R, S))
    for h in reversed(range(H)):
        Q = np.minimum(gain[:, :, h] + growth * regression.regress(h, after), caps[h])
        V[:, :, h] = after = Q.max(axis=-1)
        policy[:, :, h] = ties.argmax(Q)
    return Values(V, policy)


class Unweighted(Learner):
    """A learner whose statistics count every transition once, and that plans without a bonus."""

    def __init__(self, problem: Problem, streams: Streams, statistics: Statistics) -> None:
        self.problem, self.streams, self.statistics = problem, streams, statistics

    def observe(self, episode: Episode) -> None:
        self.statistics.update(episode, np.ones(episode.state.shape))

    def random_policy(self) -> Int[np.ndarray, "B H S"]:
        """Uniform actions. A stage is met once per episode, so drawing them all beforehand is the same."""
        S, A, H = self.problem.states, self.problem.actions, self.problem.horizon
        return (self.streams.random(H, S) * A).astype(np.int64)

    def plan(self, rewards: Float[np.ndarray, "R H S A"]) -> Plan:
        return certainty_equivalent(self.problem, self.statistics, rewards, self.streams.seeds)


class Counting(Unweighted):
    """A learner of the tabular setting: its statistics are the counts n_h(s, a) and n_h(s, a, s')."""

    statistics: TabularStatistics

    def __init__(self, problem: Problem, streams: Streams) -> None:
        super().__init__(problem, streams, TabularStatistics(problem, len(streams.seeds), ridge=0.0))

    def visits(self) -> Float[np.ndarray, "B H S A"]:
        """n_h(s, a) as a divisor: a cell never seen counts as 0.01 visits, in place of an infinite bonus."""
        return np.maximum(self.statistics.weight, 0.01)


def certainty_equivalent(
    problem: Problem,
    regression: Regression,
    rewards: Float[np.ndarray, "R H S A"],
    seeds: tuple[int, ...],
    purpose: Purpose = Purpose.PLANNING,
) -> Plan:
    """The best policy if the regression were true: r_h + f^_h, no bonus."""
    V, policy = backward(regression, rewards[None], Streams(seeds, purpose))
    return Plan(policy, problem.mean_start(V[:, :, 0]), None)
