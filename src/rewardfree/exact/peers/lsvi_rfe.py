"""LSVI-RFE style: variance-weighted regression in linear MDPs."""

from __future__ import annotations

from dataclasses import dataclass

from rewardfree.exact.classes.linear import Linear
from rewardfree.exact.gfa_rfe import GfaRfe
from rewardfree.exact.interfaces import Algorithm, Learner
from rewardfree.exact.mdp import Problem, Streams


@dataclass(frozen=True)
class LsviRfe(Algorithm):
    """LSVI-RFE style: weighted linear regression with a known intrinsic reward.

    Source: Hu, Chen, Huang. Towards Minimax Optimal Reward-Free Reinforcement Learning in Linear MDPs. 2022.
    Recalled, not copied, hence "style".

    Values lie in [0, H]: alpha^2 = H, sigma^2 = 4 H log_cover min(f, H), sigma_bar^2 the larger of these and
    of H log_cover D, Lambda_h = sum phi phi'/sigma_bar^2 + ridge, u = beta D, Q_h = min(phi' theta_h + 3u,
    H). Divided by H that is Algorithm 1 with linear functions and a known reward, so that is what runs; the
    tests carry out the form above by hand and find the same policies.

    Replaced: the regressions of the value's square for the variance, by the bound f on it that GFA-RFE has.
    """

    scale: float = 0.03
    """beta."""
    log_cover: float = 0.05
    """In place of the logarithm of the covering number in sigma."""
    lam: float = 1e-3
    """lambda; the ridge is lambda/(4 d), or lambda/(4 d H^2) for values in [0, H]."""

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        same = GfaRfe(Linear(), scale=self.scale, log_cover=self.log_cover, lam=self.lam)
        return same.start(problem, streams, episodes)
