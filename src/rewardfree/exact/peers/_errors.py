"""What RF-UCRL and RF-Express share: both are greedy in a bound on the error of every value estimate."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Float

from rewardfree.exact.backward import Counting
from rewardfree.exact.interfaces import Algorithm
from rewardfree.exact.mdp import Problem, Purpose, Streams, Values


@dataclass(frozen=True)
class ErrorBound(Algorithm):
    """The settings."""

    delta: float = 0.05
    """Probability with which the certificate may fail."""
    clip: bool = False
    """Whether the bound is clipped while exploring, as printed. The certificate always is."""

    @property
    def certified(self) -> bool:
        return True

    @classmethod
    def presets(cls) -> dict[str, Self]:
        return {"unclipped": cls(), "paper": cls(clip=True)}


class ErrorBoundLearner(Counting):
    """Counts, and the bound from them."""

    def __init__(self, config: ErrorBound, problem: Problem, streams: Streams) -> None:
        super().__init__(problem, streams)
        self.config = config

    def policy(self) -> np.ndarray:
        return self.errors(self.streams, self.config.clip).policy[:, 0]

    @abstractmethod
    def errors(self, ties: Streams, clip: bool) -> Values:
        """The bound, and the policy that is greedy in it."""

    def first_error(self) -> Float[np.ndarray, " B"]:
        """The clipped bound at the start."""
        clipped = self.errors(Streams(self.streams.seeds, Purpose.PLANNING), clip=True)
        return self.problem.mean_start(clipped.V[:, 0, 0])
