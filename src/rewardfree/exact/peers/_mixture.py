"""What the algorithms for linear mixture MDPs share: P(s' | s, a) = sum_i theta_i P_i(s' | s, a)."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Float

from rewardfree.errors import UserError
from rewardfree.exact.interfaces import Regression
from rewardfree.exact.mdp import Episode, Problem

_MOST_STATES_TO_ENUMERATE = 12
_LOCAL_STEPS = 20


def kernels(problem: Problem, name: str) -> Float[np.ndarray, "d S A S"]:
    """The base kernels, or an error that says which MDPs have them."""
    if problem.kernels is None:
        raise UserError(f"{name} needs a linear mixture MDP with its kernels; try --mdp linear-mixture")
    return problem.kernels


def psi(P: Float[np.ndarray, "d S A S"], V: Float[np.ndarray, "*n S"]) -> Float[np.ndarray, "*n S A d"]:
    """psi_V(s, a)_i = sum_s' P_i(s' | s, a) V(s'), so that [P V](s, a) = psi_V(s, a)' theta."""
    return np.einsum("dsat,...t->...sad", P, V)


def norm(x: Float[np.ndarray, "B *n d"], inverse: Float[np.ndarray, "B d d"]) -> Float[np.ndarray, "B ..."]:
    """norm(x)_{Sigma^-1}."""
    flat = x.reshape(len(x), -1, x.shape[-1])
    square = ((flat @ inverse) * flat).sum(axis=-1)
    return np.sqrt(np.maximum(square, 0)).reshape(x.shape[:-1])


class MixtureRegression(Regression):
    """theta = argmin sum_i w_i norm(e_{s'_i} - sum_j theta_j P_j(. | z_i))^2, pooled over stages."""

    def __init__(self, P: Float[np.ndarray, "d S A S"], seeds: int) -> None:
        self._P = P
        self._gram = np.tile(1e-9 * np.eye(len(P)), (seeds, 1, 1))
        self._moments = np.zeros((seeds, len(P)))

    def update(self, episode: Episode, weight: np.ndarray) -> None:
        rows = self._P[:, episode.state, episode.action]  # (d, B, H, S)
        self._gram += np.einsum("ibht,jbht,bh->bij", rows, rows, weight)
        seen = np.take_along_axis(rows, episode.next_state[None, ..., None], axis=-1)[..., 0]
        self._moments += np.einsum("ibh,bh->bi", seen, weight)

    def regress(self, h: int, V: np.ndarray, reward: np.ndarray | None = None) -> np.ndarray:
        theta = np.linalg.solve(self._gram, self._moments[..., None])[..., 0]
        mean = np.einsum("brsad,bd->brsa", psi(self._P, V), theta)
        return mean if reward is None else mean + reward


class Widest:
    """u = argmax of norm(psi_f(s, a))_{Sigma^-1} over f in [0, 1]^S, for every cell.

    A convex function of a cube is largest at a corner. Up to 12 states all corners are tried; beyond that
    f <- 1[Psi' Sigma^-1 Psi f > 0] is repeated, which stops at a local maximum.
    """

    def __init__(self, P: Float[np.ndarray, "d S A S"]) -> None:
        self._P = P
        S = P.shape[-1]
        if S <= _MOST_STATES_TO_ENUMERATE:
            self._corners = np.array(list(itertools.product((0.0, 1.0), repeat=S)))[1:]  # (n, S), not f = 0
            self._psi = psi(P, self._corners)  # (n, S, A, d)

    def __call__(self, inverse: Float[np.ndarray, "B d d"]) -> Float[np.ndarray, "B S A S"]:
        B = len(inverse)
        if self._P.shape[-1] <= _MOST_STATES_TO_ENUMERATE:
            every = np.broadcast_to(self._psi, (B, *self._psi.shape))
            return self._corners[norm(every, inverse).argmax(axis=1)]
        f = np.ones((B, *self._P.shape[1:]))
        for _ in range(_LOCAL_STEPS):
            x = np.einsum("dsat,bsat->bsad", self._P, f)
            slope = np.einsum("dsat,bde,bsae->bsat", self._P, inverse, x)
            f = (slope > 0).astype(np.float64)
        return f

    def psi(self, f: Float[np.ndarray, "B S A S"]) -> Float[np.ndarray, "B S A d"]:
        """psi_f(s, a) where each cell has its own f."""
        return np.einsum("dsat,bsat->bsad", self._P, f)
