"""FRANCIS: random directions, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.backward import Unweighted, backward
from rewardfree.exact.classes.linear import LinearStatistics, features
from rewardfree.exact.interfaces import Algorithm, Learner
from rewardfree.exact.mdp import Episode, Problem, Streams


@dataclass(frozen=True)
class Francis(Algorithm):
    """FRANCIS: at stage p, seek a random direction that the data of stage p does not cover.

    Source: Zanette, Lazaric, Kochenderfer, Brunskill. Provably Efficient Reward-Agnostic Navigation with
    Linear Value Iteration. NeurIPS 2020. Recalled, not copied.

    For p = 1..H: draw xi ~ N(0, scale Sigma_p^-1), find by least-squares value iteration the policy with the
    largest phi(s_p, a_p)' xi from the data of the stages before p, roll it out, Sigma_p += phi phi'. Plans by
    least-squares value iteration without a bonus.

    Replaced: the doubling epochs and the number of episodes per stage that the analysis asks for, by K/H
    episodes of each stage, each with a fresh xi. From stage p on, actions are uniform. It works stage by
    stage, so a curve over episodes is unfair to it before the end.
    """

    scale: float = 1.0
    """s in the variance of xi; the policy does not depend on it."""
    ridge: float = 1.0
    """Sigma_p starts as this times the identity."""

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        return FrancisLearner(self, problem, streams, episodes)


class FrancisLearner(Unweighted):
    """Sigma_h of every stage, and which stage it is the turn of."""

    statistics: LinearStatistics

    def __init__(self, config: Francis, problem: Problem, streams: Streams, episodes: int) -> None:
        phi, H = features(problem), problem.horizon
        super().__init__(problem, streams, LinearStatistics(phi, H, len(streams.seeds), config.ridge))
        self._scale, self._budget, self._seen = config.scale, episodes, 0

    def policy(self) -> np.ndarray:
        H = self.problem.horizon
        p = min(self._seen * H // self._budget, H - 1)
        phi = self.statistics.phi
        # with z standard normal and Sigma = C C', C'^-1 z has covariance Sigma^-1
        factor = np.linalg.cholesky(self.statistics.gram[:, p])
        z = self.streams.normal(phi.shape[-1])
        xi = np.sqrt(self._scale) * np.linalg.solve(factor.transpose(0, 2, 1), z[..., None])[..., 0]
        reward = np.zeros(self.statistics.weight.shape)
        reward[:, p] = np.einsum("sad,bd->bsa", phi, xi)
        found = backward(self.statistics, reward[:, None], self.streams).policy[:, 0]
        return np.where((np.arange(H) <= p)[:, None], found, self.random_policy())

    def observe(self, episode: Episode) -> None:
        super().observe(episode)
        self._seen += 1
