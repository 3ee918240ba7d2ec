"""Every function S x A -> [0, L]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.interfaces import FunctionClass, LogCovers, Statistics
from rewardfree.exact.mdp import Episode, Problem


@dataclass(frozen=True)
class Tabular(FunctionClass):
    """Every function of (s, a).

    D^2(z) = sup_x x^2 / (W(z) x^2 + lambda) over |x| <= L, which is 1 / (W(z) + lambda/L^2), where W(z) is
    the weight of the visits of z. The regression is the weighted mean of the targets seen at z, with the same
    ridge, so that it is 0 where nothing was seen.
    """

    def statistics(self, problem: Problem, seeds: int, lam: float, bound: float) -> TabularStatistics:
        return TabularStatistics(problem, seeds, lam / bound**2)

    def log_covers(
        self, problem: Problem, epsilon: float, lam: float, bound: float, beta: float
    ) -> LogCovers:
        S, A = problem.states, problem.actions
        return LogCovers(F=S * A * np.log(bound / epsilon), V=S * np.log(1 / epsilon))


class TabularStatistics(Statistics):
    """The weight of every transition (s, a, s'), and of every (s, a)."""

    def __init__(self, problem: Problem, seeds: int, ridge: float) -> None:
        B, H, S, A = seeds, problem.horizon, problem.states, problem.actions
        self.ridge = ridge
        self.transition_weight = np.zeros((B, H, S, A, S))
        self.weight = np.zeros((B, H, S, A))
        self._index = np.arange(B)[:, None], np.arange(H)

    def update(self, episode: Episode, weight: np.ndarray) -> None:
        # one transition per seed and stage: no index occurs twice
        cell = *self._index, episode.state, episode.action
        self.weight[cell] += weight
        self.transition_weight[*cell, episode.next_state] += weight

    def width(self) -> np.ndarray:
        return 1 / np.sqrt(self.weight + self.ridge)

    def regress(self, h: int, V: np.ndarray, reward: np.ndarray | None = None) -> np.ndarray:
        B, _, S, A, _ = self.transition_weight.shape
        cells = self.transition_weight[:, h].reshape(B, S * A, S)
        target = (V @ cells.transpose(0, 2, 1)).reshape(*V.shape[:2], S, A)  # sum_i w_i V(s'_i)
        weight = self.weight[:, None, h]
        if reward is not None:
            target = target + weight * reward
        return target / np.maximum(weight + self.ridge, np.finfo(float).tiny)
