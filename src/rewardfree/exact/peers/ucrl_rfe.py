"""UCRL-RFE: linear mixture MDPs, one regression pooled over the stages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.interfaces import Algorithm, Learner, Plan
from rewardfree.exact.mdp import Episode, Problem, Purpose, Streams, Values
from rewardfree.exact.peers._mixture import Widest, kernels, norm, psi


@dataclass(frozen=True)
class UcrlRfe(Algorithm):
    """UCRL-RFE: explores where some value would be estimated worst.

    Source: Zhang, Zhou, Gu. Reward-Free Model-Based Reinforcement Learning with Linear Function
    Approximation. NeurIPS 2021.

    u = argmax over f in [0, H-h]^S of norm(psi_f)_{Sigma^-1}; r = min(1, (2 beta/H) that norm); then
    Sigma += psi_u psi_u', b += psi_u u(s'), theta = Sigma^-1 b, and
    Q = clip(r + psi_V' theta + beta norm(psi_V)_{Sigma^-1}, 0, H), with Sigma = B^-2 I at first and
    beta = H sqrt(d log(3 (1 + K H^3 B^2)/delta)) + 1. Planning is the same with the true reward.

    Replaced: beta is multiplied by `scale`, since every Q is at the clip otherwise. B, the bound on the norm
    of theta, is 1: theta is a distribution here. The maximum is exact up to 12 states, local beyond. For
    transitions that do not depend on the stage.
    """

    scale: float = 0.01
    """Factor on beta."""
    delta: float = 0.05
    """Probability of failure in beta."""

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        return UcrlRfeLearner(self, problem, streams, episodes)


class UcrlRfeLearner(Learner):
    """Sigma and b, pooled over the stages."""

    def __init__(self, config: UcrlRfe, problem: Problem, streams: Streams, episodes: int) -> None:
        self.problem, self._streams = problem, streams
        self.P = kernels(problem, "ucrl-rfe")
        d, B, H = len(self.P), len(streams.seeds), problem.horizon
        self.beta = config.scale * (H * np.sqrt(d * np.log(3 * (1 + episodes * H**3) / config.delta)) + 1)
        self.sigma = np.tile(np.eye(d), (B, 1, 1))
        self.b = np.zeros((B, d))
        self._widest = Widest(self.P)
        self._solve()

    def policy(self) -> np.ndarray:
        H = self.problem.horizon
        # the widest f in [0, H-h]^S is H-h times the widest one in [0, 1]^S; H-h is 0 at the last stage
        rest = np.arange(H - 1, -1, -1)[:, None, None]
        reward = np.minimum(1, 2 * self.beta / H * rest * self._width[:, None])
        return self._values(reward[:, None], self._streams).policy[:, 0]

    def observe(self, episode: Episode) -> None:
        B, H = episode.state.shape
        rest = np.arange(H - 1, -1, -1)
        seed = np.arange(B)[:, None]
        u = self._u[seed, episode.state, episode.action]  # (B, H, S), in [0, 1]
        x = rest[:, None] * self._psi_u[seed, episode.state, episode.action]  # (B, H, d)
        y = rest * np.take_along_axis(u, episode.next_state[..., None], axis=-1)[..., 0]
        self.sigma += np.einsum("bhi,bhj->bij", x, x)
        self.b += np.einsum("bhi,bh->bi", x, y)
        self._solve()

    def plan(self, rewards: np.ndarray) -> Plan:
        V, policy = self._values(rewards[None], Streams(self._streams.seeds, Purpose.PLANNING))
        return Plan(policy, self.problem.mean_start(V[:, :, 0]), None)

    def _solve(self) -> None:
        self._inverse = np.linalg.inv(self.sigma)
        self._theta = np.einsum("bij,bj->bi", self._inverse, self.b)
        self._u = self._widest(self._inverse)
        self._psi_u = self._widest.psi(self._u)
        self._width = norm(self._psi_u, self._inverse)  # (B, S, A)

    def _values(self, reward: np.ndarray, ties: Streams) -> Values:
        B, R, H, S = len(self.b), reward.shape[1], self.problem.horizon, self.problem.states
        V, policy = np.empty((B, R, H, S)), np.empty((B, R, H, S), dtype=np.int64)
        after = np.zeros((B, R, S))
        for h in reversed(range(H)):
            x = psi(self.P, after)  # (B, R, S, A, d)
            mean = np.einsum("brsad,bd->brsa", x, self._theta)
            Q = np.clip(reward[:, :, h] + mean + self.beta * norm(x, self._inverse), 0, H)
            V[:, :, h] = after = Q.max(axis=-1)
            policy[:, :, h] = ties.argmax(Q)
        return Values(V, policy)
