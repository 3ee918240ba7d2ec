"""RF-UCRL: upper bounds on the error of every value estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewardfree.exact.backward import Counting, backward
from rewardfree.exact.interfaces import Algorithm, Learner
from rewardfree.exact.mdp import Problem, Purpose, Streams, Values


@dataclass(frozen=True)
class RfUcrl(Algorithm):
    """RF-UCRL: explores where the estimation error of some value may be largest.

    Source: Kaufmann, Menard, Domingues, Jonsson, Leurent, Valko. Adaptive Reward-Free Exploration. ALT 2021.

    E_h = min(H-h+1, (H-h+1) sqrt(2 beta(n)/n) + P^ max_a E_{h+1}), greedy in E, with beta(n) =
    log(2SAH/delta) + (S-1) log(e (1 + n/(S-1))). Stops when max_a E_1 <= epsilon/2, so 2 max_a E_1 is its
    certificate, for rewards in [0, 1] per stage. Plans by dynamic programming on P^.

    Replaced: nothing in the formula. With the clip every E is H - h + 1 for thousands of episodes, and ties
    are broken at random; `unclipped` leaves the clip out while exploring. There a cell never seen counts as
    0.01 visits; in the paper its E is the clip.
    """

    delta: float = 0.05
    """Probability with which the certificate may fail."""
    clip: bool = False
    """Whether E is clipped while exploring, as printed. The certificate always is."""

    @property
    def certified(self) -> bool:
        return True

    @classmethod
    def presets(cls) -> dict[str, RfUcrl]:
        return {"unclipped": cls(), "paper": cls(clip=True)}

    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        return RfUcrlLearner(self, problem, streams)


class RfUcrlLearner(Counting):
    """Counts, and E from them."""

    def __init__(self, config: RfUcrl, problem: Problem, streams: Streams) -> None:
        super().__init__(problem, streams)
        self.config = config

    def policy(self) -> np.ndarray:
        return self.errors(self.streams, self.config.clip).policy[:, 0]

    def certificate(self) -> np.ndarray:
        E = self.errors(Streams(self.streams.seeds, Purpose.PLANNING), clip=True).V[:, 0, 0]
        return 2 * self.problem.mean_start(E)

    def errors(self, ties: Streams, clip: bool) -> Values:
        """E and the policy that is greedy in it."""
        S, A, H = self.problem.states, self.problem.actions, self.problem.horizon
        n, rest = self.visits(), np.arange(H, 0, -1)  # rest is H - h + 1
        beta = np.log(2 * S * A * H / self.config.delta) + (S - 1) * np.log(np.e * (1 + n / max(S - 1, 1)))
        gain = rest[:, None, None] * np.sqrt(2 * beta / n)
        if clip:
            gain = np.where(self.statistics.weight > 0, gain, rest[:, None, None])
        return backward(self.statistics, gain[:, None], ties, cap=rest if clip else np.inf)
