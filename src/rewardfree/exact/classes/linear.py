"""Linear functions of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.interfaces import FunctionClass, LogCovers, Statistics
from rewardfree.exact.mdp import Episode, Problem

_REFACTOR_EVERY = 1000


@dataclass(frozen=True)
class Linear(FunctionClass):
    """f(s, a) = phi(s, a)' theta with norm(theta) <= B; one-hot features if the MDP names none.

    Two members differ by phi' x with norm(x) <= 2B, so D^2(z) = phi' Lambda^-1 phi with
    Lambda = sum_i w_i phi_i phi_i' + lambda/(4B^2) I: the ridge is not lambda. The regression is ridge
    regression with the same Lambda.
    """

    norm: float | None = None
    """B; L sqrt(d) by default, which suffices when phi is a distribution."""

    def statistics(self, problem: Problem, seeds: int, lam: float, bound: float) -> LinearStatistics:
        ridge = lam / (4 * self._norm(problem, bound) ** 2)
        return LinearStatistics(features(problem), problem.horizon, seeds, ridge)

    def log_covers(
        self, problem: Problem, epsilon: float, lam: float, bound: float, beta: float
    ) -> LogCovers:
        d, B = features(problem).shape[-1], self._norm(problem, bound)

        def log_f(eps: float) -> float:
            return float(d * np.log(1 + 4 * B / eps))

        def log_b(eps: float) -> float:  # of the bonuses beta * norm(phi)_{Lambda^-1}
            return float(d**2 * np.log(1 + 8 * np.sqrt(d) * beta**2 / (lam * eps**2)))

        return LogCovers(F=log_f(epsilon), V=log_f(epsilon / 2) + log_b(epsilon / 2))

    def _norm(self, problem: Problem, bound: float) -> float:
        return bound * np.sqrt(features(problem).shape[-1]) if self.norm is None else self.norm


class LinearStatistics(Statistics):
    """Lambda and its inverse, and M = sum_i w_i phi_i e_{s'_i}', so that sum_i w_i phi_i V(s'_i) = M V."""

    def __init__(self, phi: np.ndarray, horizon: int, seeds: int, ridge: float) -> None:
        S, A, d = phi.shape
        self.phi = phi
        self.gram = np.tile(ridge * np.eye(d), (seeds, horizon, 1, 1))  # Lambda
        self.inverse = np.linalg.inv(self.gram)
        self.moments = np.zeros((seeds, horizon, d, S))  # M
        self.weight = np.zeros((seeds, horizon, S, A))
        self._index = np.arange(seeds)[:, None], np.arange(horizon)
        self._updates = 0

    def update(self, episode: Episode, weight: np.ndarray) -> None:
        phi = self.phi[episode.state, episode.action]  # (B, H, d)
        weighted = weight[..., None] * phi
        self.gram += weighted[..., :, None] * phi[..., None, :]
        # Sherman and Morrison, with x = Lambda^-1 phi:
        # (Lambda + w phi phi')^-1 = Lambda^-1 - w x x' / (1 + w phi' x)
        x = (self.inverse @ phi[..., None])[..., 0]
        share = weight / (1 + weight * (phi * x).sum(axis=-1))
        self.inverse -= share[..., None, None] * x[..., :, None] * x[..., None, :]
        self._updates += 1
        if self._updates % _REFACTOR_EVERY == 0:  # rounding errors do not pile up
            self.inverse = np.linalg.inv(self.gram)
        # (B, H) index arrays on both sides of a slice put d last
        self.moments[*self._index, :, episode.next_state] += weighted
        self.weight[*self._index, episode.state, episode.action] += weight

    def width(self) -> np.ndarray:
        S, A, d = self.phi.shape
        cells = self.phi.reshape(S * A, d)
        square = ((cells @ self.inverse) * cells).sum(axis=-1)  # (B, H, SA)
        return np.sqrt(np.maximum(square, 0)).reshape(*square.shape[:2], S, A)

    def regress(self, h: int, V: np.ndarray, reward: np.ndarray | None = None) -> np.ndarray:
        S, A, d = self.phi.shape
        cells = self.phi.reshape(S * A, d)
        target = V @ self.moments[:, h].transpose(0, 2, 1)  # (B, R, d)
        if reward is not None:
            seen = np.broadcast_to(self.weight[:, None, h] * reward, (*V.shape, A))
            target = target + seen.reshape(*V.shape[:2], S * A) @ cells
        theta = target @ self.inverse[:, h]
        return (theta @ cells.T).reshape(*V.shape, A)


def features(problem: Problem) -> np.ndarray:
    """The features that the MDP names, or one-hot ones."""
    if problem.features is not None:
        return problem.features
    S, A = problem.states, problem.actions
    return np.eye(S * A).reshape(S, A, S * A)
