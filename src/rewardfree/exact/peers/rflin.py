"""RFLIN: cover the directions phase by phase, with indicator rewards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.backward import Unweighted, backward
from rewardfree.exact.classes.linear import LinearStatistics, features
from rewardfree.exact.interfaces import Algorithm, Learner
from rewardfree.exact.mdp import Episode, Problem, Streams


@dataclass(frozen=True)
class Rflin(Algorithm):
    """RFLIN: in phase i, reach at each stage the directions whose width is still above 2^-i.

    Source: Wagenmaker, Chen, Simchowitz, Du, Jamieson. Reward-Free RL is No Harder Than Reward-Aware RL in
    Linear Markov Decision Processes. ICML 2022. Recalled, not copied.

    The reward of phase i at stage h is 1{phi' Lambda_h^-1 phi > 4^-i}, on that stage alone. Plans by
    least-squares value iteration without a bonus.

    Replaced: FORCE, the first-order regret minimiser, by optimistic least-squares value iteration with the
    bonus scale * norm(phi)_{Lambda^-1}; the phases' budgets, by 2^i episodes per stage. From the stage in
    question on, actions are uniform.
    """

    scale: float = 0.1
    """Factor on the bonus."""
    ridge: float = 1.0
    """Lambda_h starts as this times the identity."""

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        return RflinLearner(self, problem, streams)


class RflinLearner(Unweighted):
    """Lambda_h of every stage, and the phase and stage that it is the turn of."""

    statistics: LinearStatistics

    def __init__(self, config: Rflin, problem: Problem, streams: Streams) -> None:
        phi, H = features(problem), problem.horizon
        super().__init__(problem, streams, LinearStatistics(phi, H, len(streams.seeds), config.ridge))
        self._scale, self._seen = config.scale, 0

    def turn(self) -> tuple[int, int]:
        """The phase i and the stage h of the next episode."""
        H = self.problem.horizon
        # phases 1..i-1 took (2 + 4 + ... + 2^(i-1)) H = (2^i - 2) H episodes
        phase = int(np.log2(self._seen / H + 2))
        return phase, int((self._seen - (2**phase - 2) * H) // 2**phase)

    def policy(self) -> np.ndarray:
        (phase, h), width = self.turn(), self.statistics.width()
        gain = self._scale * width
        gain[:, h] = width[:, h] > 2.0**-phase
        gain[:, h + 1 :] = 0
        found = backward(self.statistics, gain[:, None], self.streams, cap=1.0).policy[:, 0]
        return np.where((np.arange(self.problem.horizon) <= h)[:, None], found, self.random_policy())

    def observe(self, episode: Episode) -> None:
        super().observe(episode)
        self._seen += 1
