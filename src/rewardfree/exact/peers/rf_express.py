"""RF-Express: bounds on the error that shrink like 1/n."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.backward import backward
from rewardfree.exact.interfaces import Learner
from rewardfree.exact.mdp import Problem, Streams, Values
from rewardfree.exact.peers._errors import ErrorBound, ErrorBoundLearner


@dataclass(frozen=True)
class RfExpress(ErrorBound):
    """RF-Express: as RF-UCRL, with a bonus of 1/n in place of 1/sqrt(n).

    Source: Menard, Domingues, Jonsson, Kaufmann, Leurent, Valko. Fast Active Learning for Pure Exploration in
    Reinforcement Learning. ICML 2021.

    W_h = min(H, 15 H^2 beta(n)/n + (1 + 1/H) P^ max_a W_{h+1}), greedy in W, with beta(n) = log(3SAH/delta) +
    S log(8e (n+1)). Stops when 3e sqrt(W_1) + W_1 <= epsilon/2, so twice that is its certificate, for rewards
    in [0, 1] per stage. Plans by dynamic programming on P^.

    Replaced: nothing in the formula. `unclipped` leaves the clip out while exploring, as its authors did in
    their experiments; a cell never seen counts as 0.01 visits there (not printed).
    """

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        return RfExpressLearner(self, problem, streams)


class RfExpressLearner(ErrorBoundLearner):
    """Counts, and W from them."""

    def certificate(self) -> np.ndarray:
        W = self.first_error()
        return 2 * (3 * np.e * np.sqrt(W) + W)

    def errors(self, ties: Streams, clip: bool) -> Values:
        S, A, H = self.problem.states, self.problem.actions, self.problem.horizon
        n = self.visits()
        beta = np.log(3 * S * A * H / self.config.delta) + S * np.log(8 * np.e * (n + 1))
        gain = 15 * H**2 * beta / n
        cap = float(H) if clip else np.inf
        return backward(self.statistics, gain[:, None], ties, cap, growth=1 + 1 / H)
