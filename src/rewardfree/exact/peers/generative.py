"""Samples every cell in turn from a generative model: the reference that needs no exploration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.backward import Counting
from rewardfree.exact.interfaces import Algorithm, Learner
from rewardfree.exact.mdp import Episode, Problem, Simulator, Streams


@dataclass(frozen=True)
class Generative(Algorithm):
    """A generative model: asks for every (s, a) of every stage in turn, one of each stage per episode.

    Not an exploration algorithm: it may start anywhere, so it shows what the data would be worth without the
    problem of getting there. It also spends samples on cells that nothing reaches. Plans by dynamic
    programming on the counts.
    """

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        return GenerativeLearner(problem, streams)


class GenerativeLearner(Counting):
    """Visits the cells of a stage in a random order that differs from stage to stage."""

    _episodes = 0

    def episode(self, simulator: Simulator) -> Episode:
        S, A, H = self.problem.states, self.problem.actions, self.problem.horizon
        if self._episodes % (S * A) == 0:
            self._order = self.streams.random(H, S * A).argsort(axis=-1)
        cell = self._order[..., self._episodes % (S * A)]
        self._episodes += 1
        return simulator.query(cell // A, cell % A)

    def policy(self) -> np.ndarray:
        return self.random_policy()
