"""Kong et al. 2021: as Wang et al., with any class of functions and the width of its confidence set."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rewardfree.exact.classes.tabular import Tabular
from rewardfree.exact.interfaces import Algorithm, FunctionClass, Learner
from rewardfree.exact.mdp import Problem, Streams
from rewardfree.exact.peers.wang import WangLearner


@dataclass(frozen=True)
class Kong(Algorithm):
    """Kong style: unweighted, known reward b/H, and the width of the confidence set as the bonus.

    Source: Kong, Salakhutdinov, Wang, Yang. Online Sub-Sampling for Reinforcement Learning with General
    Function Approximation. 2021. Recalled, not copied.

    b = sup |f_1 - f_2|(z) over members with sum_i (f_1 - f_2)^2(z_i) <= beta^2; r_h = b_h/H, Q_h = min(f_h +
    r_h + b_h, H), planning the same with the true reward.

    Replaced: the sub-sampling of the data, which only saves computation and here there is none to save, is
    left out; the width is taken from the bonus oracle of the class, b = min(beta D, H) with beta = scale * H
    sqrt(log(K H N_F / delta)).
    """

    function_class: FunctionClass = field(default_factory=Tabular)
    """The class of functions."""
    scale: float = 0.001
    """Factor on beta."""
    lam: float = 1e-3
    """lambda, of the bonus."""
    delta: float = 0.05
    """Probability of failure in beta."""

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        H = problem.horizon
        covers = self.function_class.log_covers(problem, 1 / (episodes * H), self.lam, float(H), 1.0)
        beta = self.scale * H * np.sqrt(np.log(episodes * H / self.delta) + covers.F)
        statistics = self.function_class.statistics(problem, len(streams.seeds), self.lam, float(H))
        return WangLearner(problem, streams, statistics, float(beta))
