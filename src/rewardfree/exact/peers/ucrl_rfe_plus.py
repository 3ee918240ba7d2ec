"""UCRL-RFE+: UCRL-RFE with regressions weighted by the variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.interfaces import Algorithm, Learner
from rewardfree.exact.mdp import Episode, Problem, Streams
from rewardfree.exact.peers._mixture import norm
from rewardfree.exact.peers.ucrl_rfe import UcrlRfe, UcrlRfeLearner


@dataclass(frozen=True)
class UcrlRfePlus(Algorithm):
    """UCRL-RFE+: UCRL-RFE whose samples are weighted by the variance of u.

    Source: Zhang, Zhou, Gu. Reward-Free Model-Based Reinforcement Learning with Linear Function
    Approximation. NeurIPS 2021. The radii beta_tilde and beta_check are recalled.

    nu = max(H^2/d, V_bar + E), V_bar = clip(psi_{u^2}' theta_tilde, 0, H^2) - clip(psi_u' theta_hat, 0, H)^2,
    E = min(H^2, beta_tilde norm(psi_{u^2})_{Sigma_tilde^-1}) + min(H^2, 2 H beta_check
    norm(psi_u)_{Sigma_hat^-1}). theta_hat is the regression of u weighted by 1/nu, theta_tilde the plain one
    of u^2.

    Replaced: as in UCRL-RFE; all radii are multiplied by `scale`.
    """

    scale: float = 0.001
    """Factor on beta_hat, beta_check and beta_tilde."""
    delta: float = 0.05
    """Probability of failure in the radii."""

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        return UcrlRfePlusLearner(self, problem, streams, episodes)


class UcrlRfePlusLearner(UcrlRfeLearner):
    """A second Sigma and b, of u^2."""

    def __init__(self, config: UcrlRfePlus, problem: Problem, streams: Streams, episodes: int) -> None:
        super().__init__(UcrlRfe(delta=config.delta), problem, streams, episodes)
        H, d = problem.horizon, len(self.P)
        log = np.log(4 * episodes**2 * H / config.delta)
        growth = np.log(1 + episodes * H)
        self.beta = config.scale * (8 * np.sqrt(d * growth * log) + 4 * np.sqrt(d) * log + 1)  # beta_hat
        self._check = config.scale * (8 * d * np.sqrt(growth * log) + 4 * np.sqrt(d) * log + 1)
        square = np.log(1 + episodes * H**4 / d)
        self._tilde = config.scale * (8 * H**2 * np.sqrt(d * square * log) + 4 * H**2 * log + 1)
        self._sigma_square, self._b_square = self.sigma.copy(), self.b.copy()

    def observe(self, episode: Episode) -> None:
        B, H = episode.state.shape
        rest = np.arange(H - 1, -1, -1)
        seed = np.arange(B)[:, None]
        u = rest[:, None] * self._u[seed, episode.state, episode.action]  # (B, H, S)
        y = np.take_along_axis(u, episode.next_state[..., None], axis=-1)[..., 0]
        x, x2 = self._psi_seen(episode, u), self._psi_seen(episode, u**2)  # (B, H, d)
        inverse_square = np.linalg.inv(self._sigma_square)
        theta_square = np.einsum("bij,bj->bi", inverse_square, self._b_square)
        mean = np.clip(np.einsum("bhd,bd->bh", x, self._theta), 0, H)
        mean_square = np.clip(np.einsum("bhd,bd->bh", x2, theta_square), 0, H**2)
        error = np.minimum(H**2, self._tilde * norm(x2, inverse_square))
        error += np.minimum(H**2, 2 * H * self._check * norm(x, self._inverse))
        nu = np.maximum(H**2 / len(self.P), mean_square - mean**2 + error)
        self.sigma += np.einsum("bhi,bhj->bij", x / nu[..., None], x)
        self.b += np.einsum("bhi,bh->bi", x / nu[..., None], y)
        self._sigma_square += np.einsum("bhi,bhj->bij", x2, x2)
        self._b_square += np.einsum("bhi,bh->bi", x2, y**2)
        self._solve()

    def _psi_seen(self, episode: Episode, f: np.ndarray) -> np.ndarray:
        """psi_f at the cells of an episode, each with its own f."""
        kernel = self.P[:, episode.state, episode.action]  # (d, B, H, S)
        return np.einsum("dbht,bht->bhd", kernel, f)
