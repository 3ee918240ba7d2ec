"""A finite list of functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rewardfree.errors import UserError
from rewardfree.exact.classes.tabular import TabularStatistics
from rewardfree.exact.interfaces import FunctionClass, LogCovers, Statistics
from rewardfree.exact.mdp import Episode, Problem

_MOST_FUNCTIONS, _MOST_CELLS = 200, 50


@dataclass(frozen=True)
class Finite(FunctionClass):
    """n functions, given as an array G of shape (n, S, A). From Python only: it has to be given the
    functions.

    D^2(z) = max_ij (G_i(z) - G_j(z))^2 / (E_ij + lambda) with E_ij = sum_k w_k (G_i(z_k) - G_j(z_k))^2. The
    regression scores every member. At most 200 functions of at most 50 cells: the bonus looks at all pairs.
    """

    functions: Any = field(default=None, repr=False)
    """G, of shape (n, S, A)."""

    def statistics(self, problem: Problem, seeds: int, lam: float, bound: float) -> Statistics:
        return FiniteStatistics(self._checked(problem, bound), problem, seeds, lam)

    def log_covers(
        self, problem: Problem, epsilon: float, lam: float, bound: float, beta: float
    ) -> LogCovers:
        # the bonus at a cell is one of n^2 quotients, whose denominators are covered by S A log(1/epsilon)
        log_f = float(np.log(len(self._checked(problem, bound))))
        return LogCovers(F=log_f, V=log_f + problem.states * problem.actions * float(np.log(1 / epsilon)))

    def _checked(self, problem: Problem, bound: float) -> np.ndarray:
        S, A = problem.states, problem.actions
        if self.functions is None:
            raise UserError(f"the finite class needs its functions: Finite(array of shape (n, {S}, {A}))")
        G = np.asarray(self.functions, dtype=np.float64)
        if G.ndim != 3 or G.shape[1:] != (S, A):
            raise UserError(f"functions of shape {G.shape} do not fit; give (n, {S}, {A})")
        if len(G) > _MOST_FUNCTIONS or S * A > _MOST_CELLS:
            raise UserError(
                f"{len(G)} functions of {S * A} cells are too many;"
                f" at most {_MOST_FUNCTIONS} of {_MOST_CELLS} (the other classes have no such limit)"
            )
        if G.min() < 0 or G.max() > bound:
            raise UserError(f"the functions must lie in [0, {bound:g}]")
        return G


class FiniteStatistics(Statistics):
    """E_ij of every stage, and the weights of all cells for the scores."""

    def __init__(self, G: np.ndarray, problem: Problem, seeds: int, lam: float) -> None:
        self._G = G.reshape(len(G), -1)  # (n, SA)
        self._apart = (self._G[:, None] - self._G) ** 2  # (n, n, SA)
        self._lam, self._actions = lam, problem.actions
        self._distance = np.zeros((seeds, problem.horizon, len(G), len(G)))  # E_ij
        self._cells = TabularStatistics(problem, seeds, ridge=0.0)

    def update(self, episode: Episode, weight: np.ndarray) -> None:
        cell = episode.state * self._actions + episode.action  # (B, H)
        self._distance += weight[..., None, None] * np.moveaxis(self._apart[..., cell], (0, 1), (2, 3))
        self._cells.update(episode, weight)

    def width(self) -> np.ndarray:
        B, H, S, A = self._cells.weight.shape
        square = np.empty((B, H, S * A))
        for b, h in np.ndindex(B, H):  # all pairs of one stage at a time: n^2 SA numbers
            square[b, h] = (self._apart / (self._distance[b, h, :, :, None] + self._lam)).max(axis=(0, 1))
        return np.sqrt(square).reshape(B, H, S, A)

    def regress(self, h: int, V: np.ndarray, reward: np.ndarray | None = None) -> np.ndarray:
        B, R, S = V.shape
        mean = self._cells.regress(h, V, reward).reshape(B, R, -1)
        weight = self._cells.weight[:, None, h].reshape(B, 1, -1)
        # sum_z W(z) (G_i(z) - mean(z))^2 is the loss up to a constant
        loss = weight @ (self._G**2).T - 2 * (weight * mean) @ self._G.T  # (B, R, n)
        return self._G[loss.argmin(axis=-1)].reshape(B, R, S, self._actions)
