"""Uniformly random actions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.backward import Counting
from rewardfree.exact.interfaces import Algorithm, Learner
from rewardfree.exact.mdp import Problem, Streams


@dataclass(frozen=True)
class Uniform(Algorithm):
    """Uniformly random actions: what any exploration has to beat.

    Plans by dynamic programming on the counts.
    """

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        return UniformLearner(problem, streams)


class UniformLearner(Counting):
    """Learns nothing while it explores."""

    def policy(self) -> np.ndarray:
        return self.random_policy()
