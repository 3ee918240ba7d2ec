"""A monotone function of a linear one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rewardfree.errors import UserError
from rewardfree.exact.classes.linear import LinearStatistics, features
from rewardfree.exact.classes.tabular import TabularStatistics
from rewardfree.exact.interfaces import FunctionClass, LogCovers, Statistics
from rewardfree.exact.mdp import Episode, Problem


class Link(NamedTuple):
    """A link of slope between k1 and k2."""

    k1: float
    k2: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The link itself: slope k2 at 0, falling to k1 at both ends; k1 = k2 is a straight line."""
        return self.k1 * x + (self.k2 - self.k1) * np.tanh(x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        """Its derivative."""
        return self.k1 + (self.k2 - self.k1) / np.cosh(x) ** 2


@dataclass(frozen=True)
class GeneralisedLinear(FunctionClass):
    """f(s, a) = link(phi(s, a)' theta) with norm(theta) <= B and a link whose slope lies in [k1, k2].

    k1 |x| <= |link(x + y) - link(y)| <= k2 |x|, so k2^2 phi' (k1^2 Lambda_0 + lambda/(4B^2) I)^-1 phi, with
    Lambda_0 = sum_i w_i phi_i phi_i', lies between D^2 and (k2/k1)^2 D^2. The regression is Gauss-Newton on
    the weighted squared error, with the ridge that the bonus has.
    """

    k1: float = 0.5
    """Smallest slope of the link."""
    k2: float = 1.0
    """Largest slope of the link."""
    norm: float | None = None
    """B; L sqrt(d)/k1 by default."""
    steps: int = 10
    """Newton steps of a regression."""

    def __post_init__(self) -> None:
        if not 0 < self.k1 <= self.k2:
            raise UserError(f"the slopes must satisfy 0 < k1 <= k2, not k1 = {self.k1}, k2 = {self.k2}")

    def statistics(self, problem: Problem, seeds: int, lam: float, bound: float) -> Statistics:
        ridge = lam / (4 * self._norm(problem, bound) ** 2)
        return GeneralisedLinearStatistics(self, problem, seeds, ridge)

    def log_covers(
        self, problem: Problem, epsilon: float, lam: float, bound: float, beta: float
    ) -> LogCovers:
        d, B = features(problem).shape[-1], self._norm(problem, bound)

        def log_f(eps: float) -> float:
            return float(d * np.log(1 + 4 * B * self.k2 / eps))

        def log_b(eps: float) -> float:  # as in the linear class, with the scale k2 of the features
            return float(d**2 * np.log(1 + 8 * np.sqrt(d) * (self.k2 * beta) ** 2 / (lam * eps**2)))

        return LogCovers(F=log_f(epsilon), V=log_f(epsilon / 2) + log_b(epsilon / 2))

    def _norm(self, problem: Problem, bound: float) -> float:
        return bound * np.sqrt(features(problem).shape[-1]) / self.k1 if self.norm is None else self.norm


class GeneralisedLinearStatistics(Statistics):
    """The linear class's matrices for the bonus; the weights of all cells for the regression."""

    def __init__(self, config: GeneralisedLinear, problem: Problem, seeds: int, ridge: float) -> None:
        self._link, self._steps, self._ridge = Link(config.k1, config.k2), config.steps, ridge
        # k2^2 phi' (k1^2 Lambda_0 + ridge I)^-1 phi = (k2/k1)^2 phi' (Lambda_0 + ridge/k1^2 I)^-1 phi
        self._matrices = LinearStatistics(features(problem), problem.horizon, seeds, ridge / config.k1**2)
        self._cells = TabularStatistics(problem, seeds, ridge=0.0)

    def update(self, episode: Episode, weight: np.ndarray) -> None:
        self._matrices.update(episode, weight)
        self._cells.update(episode, weight)

    def width(self) -> np.ndarray:
        return self._link.k2 / self._link.k1 * self._matrices.width()

    def regress(self, h: int, V: np.ndarray, reward: np.ndarray | None = None) -> np.ndarray:
        B, R, S = V.shape
        phi = self._matrices.phi.reshape(-1, self._matrices.phi.shape[-1])  # (SA, d)
        A, d = len(phi) // S, phi.shape[-1]
        mean = self._cells.regress(h, V, reward).reshape(B, R, S * A)  # of the targets seen at each cell
        weight = self._cells.weight[:, None, h].reshape(B, 1, S * A)
        theta = np.zeros((B, R, d))
        for _ in range(self._steps):
            x = theta @ phi.T
            slope = self._link.slope(x)
            pull = (weight * slope * (mean - self._link(x))) @ phi - self._ridge * theta
            curvature = np.einsum("brz,zi,zj->brij", weight * slope**2, phi, phi) + self._ridge * np.eye(d)
            theta = theta + np.linalg.solve(curvature, pull[..., None])[..., 0]
        return self._link(theta @ phi.T).reshape(B, R, S, A)
