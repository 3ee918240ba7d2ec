"""UCBVI whose only reward is its bonus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.backward import Counting, backward
from rewardfree.exact.interfaces import Algorithm, Learner
from rewardfree.exact.mdp import Problem, Streams


@dataclass(frozen=True)
class Ucbvi(Algorithm):
    """UCBVI with its Hoeffding bonus and no reward.

    Source: Azar, Osband, Munos. Minimax Regret Bounds for Reinforcement Learning. ICML 2017; the bonus as
    recalled, b = 7 H sqrt(log(5SAHK/delta)/n). Q_h = min(b_h + P^ V_{h+1}, H).

    Replaced: the reward, by nothing; counts per stage, since transitions may depend on the stage. `unclipped`
    leaves the clip out, and then the constant does not matter; a cell never seen counts as 0.01 visits.
    Plans by dynamic programming on P^.
    """

    delta: float = 0.05
    """Probability of failure in the bonus."""
    clip: bool = False
    """Whether Q is clipped at H."""

    @classmethod
    def presets(cls) -> dict[str, Ucbvi]:
        return {"unclipped": cls(), "paper": cls(clip=True)}

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        return UcbviLearner(self, problem, streams, episodes)


class UcbviLearner(Counting):
    """Counts, and the optimistic values of no reward from them."""

    def __init__(self, config: Ucbvi, problem: Problem, streams: Streams, episodes: int) -> None:
        super().__init__(problem, streams)
        S, A, H = problem.states, problem.actions, problem.horizon
        self._radius = 7 * H * np.sqrt(np.log(5 * S * A * H * episodes / config.delta))
        self._cap = float(H) if config.clip else np.inf

    def policy(self) -> np.ndarray:
        gain = self._radius / np.sqrt(self.visits())
        return backward(self.statistics, gain[:, None], self.streams, self._cap).policy[:, 0]
