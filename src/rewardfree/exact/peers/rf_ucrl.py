"""RF-UCRL: upper bounds on the error of every value estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.backward import backward
from rewardfree.exact.interfaces import Learner
from rewardfree.exact.mdp import Problem, Streams, Values
from rewardfree.exact.peers._errors import ErrorBound, ErrorBoundLearner


@dataclass(frozen=True)
class RfUcrl(ErrorBound):
    """RF-UCRL: explores where the estimation error of some value may be largest.

    Source: Kaufmann, Menard, Domingues, Jonsson, Leurent, Valko. Adaptive Reward-Free Exploration. ALT 2021.

    E_h = min(H-h+1, (H-h+1) sqrt(2 beta(n)/n) + P^ max_a E_{h+1}), greedy in E, with beta(n) =
    log(2SAH/delta) + (S-1) log(e (1 + n/(S-1))). Stops when max_a E_1 <= epsilon/2, so 2 max_a E_1 is its
    certificate, for rewards in [0, 1] per stage. Plans by dynamic programming on P^.

    Replaced: nothing in the formula. With the clip every E is H - h + 1 for thousands of episodes, and ties
    are broken at random; `unclipped` leaves the clip out while exploring. There a cell never seen counts as
    0.01 visits; in the paper its E is the clip.
    """

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        return RfUcrlLearner(self, problem, streams)


class RfUcrlLearner(ErrorBoundLearner):
    """Counts, and E from them."""

    def certificate(self) -> np.ndarray:
        return 2 * self.first_error()

    def errors(self, ties: Streams, clip: bool) -> Values:
        S, A, H = self.problem.states, self.problem.actions, self.problem.horizon
        n, rest = self.visits(), np.arange(H, 0, -1)  # rest is H - h + 1
        beta = np.log(2 * S * A * H / self.config.delta) + (S - 1) * np.log(np.e * (1 + n / max(S - 1, 1)))
        gain = rest[:, None, None] * np.sqrt(2 * beta / n)
        if clip:
            gain = np.where(self.statistics.weight > 0, gain, rest[:, None, None])
        return backward(self.statistics, gain[:, None], ties, cap=rest if clip else np.inf)
