"""Wang et al. 2020: optimistic least-squares value iteration for its own bonus, in linear MDPs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.backward import Unweighted, backward
from rewardfree.exact.classes.linear import LinearStatistics, features
from rewardfree.exact.interfaces import Algorithm, Learner, Plan, Statistics
from rewardfree.exact.mdp import Problem, Purpose, Streams, Values


@dataclass(frozen=True)
class Wang(Algorithm):
    """Reward-free LSVI-UCB: the intrinsic reward is the bonus over H.

    Source: Wang, Du, Yang, Salakhutdinov. On Reward-Free Reinforcement Learning with Linear Function
    Approximation. NeurIPS 2020. Recalled, not copied.

    Lambda_h = I + sum phi phi', u_h = min(beta norm(phi)_{Lambda_h^-1}, H), r_h = u_h/H, Q_h = min(phi'
    Lambda_h^-1 sum phi V_{h+1}(s') + r_h + u_h, H), beta = c d H sqrt(log(dH/(delta epsilon))). Planning is
    the same with the true reward.

    Replaced: c is `scale`; the paper's constant leaves every bonus at the clip. epsilon is 1/K.
    """

    scale: float = 0.001
    """c in beta."""
    delta: float = 0.05
    """Probability of failure in beta."""

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        d, H = features(problem).shape[-1], problem.horizon
        beta = self.scale * d * H * np.sqrt(np.log(d * H * episodes / self.delta))
        phi = features(problem)
        return WangLearner(problem, streams, LinearStatistics(phi, H, len(streams.seeds), 1.0), beta)


class WangLearner(Unweighted):
    """Optimistic LSVI with u as the bonus; Kong et al. have the same with another u."""

    def __init__(self, problem: Problem, streams: Streams, statistics: Statistics, beta: float) -> None:
        super().__init__(problem, streams, statistics)
        self.beta = beta

    def policy(self) -> np.ndarray:
        return self.values(self.streams).policy[:, 0]

    def values(self, ties: Streams) -> Values:
        """The optimistic values of the reward u/H, and the policy that is greedy in them."""
        H, u = self.problem.horizon, self.bonus()
        return backward(self.statistics, (u / H + u)[:, None], ties, float(H))

    def plan(self, rewards: np.ndarray) -> Plan:
        ties = Streams(self.streams.seeds, Purpose.PLANNING)
        gain = rewards + self.bonus()[:, None]
        V, policy = backward(self.statistics, gain, ties, float(self.problem.horizon))
        return Plan(policy, self.problem.mean_start(V[:, :, 0]), None)

    def bonus(self) -> np.ndarray:
        """u_h(s, a)."""
        return np.minimum(self.beta * self.statistics.width(), self.problem.horizon)
