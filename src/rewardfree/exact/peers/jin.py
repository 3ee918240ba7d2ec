"""Jin et al. 2020: learn to reach every state of every stage, then roll out the mixture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.backward import Counting, backward
from rewardfree.exact.interfaces import Algorithm, Learner
from rewardfree.exact.mdp import Problem, Streams


@dataclass(frozen=True)
class Jin(Algorithm):
    """RF-RL-Explore: a learner per (s, h) that wants to be in s at stage h, then a uniform mixture of theirs.

    Source: Jin, Krishnamurthy, Simchowitz, Yu. Reward-Free Exploration for Reinforcement Learning. ICML 2020.
    Recalled, not copied.

    Replaced: EULER, by UCBVI with the bonus scale * sqrt(log(SAHK/delta)/n) on values in [0, 1]; and the
    learners share their counts instead of starting afresh, without which the budgets used here would leave a
    learner one episode or two. Half of the episodes go to the learners, in turn, half to the mixture. A
    policy acts uniformly from its target on. Plans by dynamic programming on P^ (the paper: any planner).
    """

    delta: float = 0.05
    """Probability of failure in the bonus."""
    scale: float = 0.01
    """Factor on the bonus."""

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        return JinLearner(self, problem, streams, episodes)


class JinLearner(Counting):
    """The targets in a random order, then the policies that were found for them."""

    def __init__(self, config: Jin, problem: Problem, streams: Streams, episodes: int) -> None:
        super().__init__(problem, streams)
        S, A, H = problem.states, problem.actions, problem.horizon
        self._radius = config.scale * np.sqrt(np.log(S * A * H * episodes / config.delta))
        self._learning = max(episodes // 2, 1)
        self._order = streams.random(S * H).argsort(axis=-1)  # (B, SH)
        self._found: list[np.ndarray] = []
        self._targets: list[np.ndarray] = []

    def policy(self) -> np.ndarray:
        if len(self._found) < self._learning:
            target = self._order[:, len(self._found) * self._order.shape[1] // self._learning]
            self._targets.append(target)
            self._found.append(self._towards(target).astype(np.int16))
            return self._from(self._found[-1], target)
        chosen = (self.streams.random() * len(self._found)).astype(np.int64)
        seeds = np.arange(len(chosen))
        policy = np.stack([self._found[i][b] for b, i in zip(seeds, chosen, strict=True)])
        target = np.stack([self._targets[i][b] for b, i in zip(seeds, chosen, strict=True)])
        return self._from(policy, target)

    def _towards(self, target: np.ndarray) -> np.ndarray:
        """Optimistic for the reward 1{s_h = s}."""
        B, S, H = len(target), self.problem.states, self.problem.horizon
        gain = self._radius / np.sqrt(self.visits())
        gain[np.arange(H) >= (target // S)[:, None]] = 0  # from its stage on, nothing is to be learned
        gain[np.arange(B), target // S, target % S] = 1
        return backward(self.statistics, gain[:, None], self.streams, cap=1.0).policy[:, 0]

    def _from(self, policy: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The policy until its target's stage, then uniform actions."""
        before = np.arange(self.problem.horizon) < (target // self.problem.states)[:, None]
        return np.where(before[..., None], policy, self.random_policy())
