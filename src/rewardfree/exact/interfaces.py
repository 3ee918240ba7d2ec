"""The roles of the exact track, and the loop they take part in.

    learner = algorithm.start(mdp.problem, streams, episodes)      phase I: neither reward nor transitions
    repeat: learner.observe(learner.episode(simulator))
    learner.plan(rewards)                                          phase II: no simulator

An Algorithm and a FunctionClass are frozen dataclasses whose fields are their settings; a Learner and
Statistics are what changes. All arrays carry every seed at once: B is their first axis. A new algorithm is
one file in `peers/`, a new class of functions one file in `classes/`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Float, Int

from rewardfree.exact.mdp import Episode, Problem, Simulator, Streams


class LogCovers(NamedTuple):
    """Logarithms of covering numbers: of the class itself, and of the optimistic values made from it."""

    F: float
    V: float


class Regression(ABC):
    """What is kept of the weighted data of every stage; its size does not grow with the episodes."""

    @abstractmethod
    def update(self, episode: Episode, weight: Float[np.ndarray, "B H"]) -> None:
        """Add one transition per seed and stage, with its weight 1/sigma_bar^2."""

    @abstractmethod
    def regress(
        self,
        h: int,
        V: Float[np.ndarray, "B R S"],
        reward: Float[np.ndarray, "#B #R S A"] | None = None,
    ) -> Float[np.ndarray, "B R S A"]:
        """argmin_f sum_i w_i (f(z_i) - r(z_i) - V(s'_i))^2 over the data of stage h; r = 0 if None."""


class Statistics(Regression):
    """A regression that knows how uncertain it is: the bonus oracle."""

    @abstractmethod
    def width(self) -> Float[np.ndarray, "B H S A"]:
        """D_h(z): how far apart two functions can be at z that agree on the weighted data."""


class FunctionClass(ABC):
    """A class of functions f: S x A -> [0, L]."""

    @abstractmethod
    def statistics(self, problem: Problem, seeds: int, lam: float, bound: float) -> Statistics:
        """Empty statistics for `lam`, the lambda of the bonus, and `bound`, the L of the class."""

    @abstractmethod
    def log_covers(
        self, problem: Problem, epsilon: float, lam: float, bound: float, beta: float
    ) -> LogCovers:
        """log N_F(epsilon) and log N_V(epsilon), the latter for values with bonus beta * D."""


class Plan(NamedTuple):
    """What planning returns for every seed and reward."""

    policy: Int[np.ndarray, "B R H S"]
    value: Float[np.ndarray, "B R"]
    """The planner's own estimate of V_1; optimistic if it plans with a bonus."""
    bound: Float[np.ndarray, "B R"] | None
    """V*_1 - V^pi_1 is at most this, on the algorithm's good event; None if it has no such statement."""


class Learner(ABC):
    """An algorithm at work."""

    @abstractmethod
    def policy(self) -> Int[np.ndarray, "B H S"]:
        """The policy of the next episode."""

    @abstractmethod
    def observe(self, episode: Episode) -> None:
        """Learn from an episode. Depends on the episodes seen and nothing else, so data can be replayed."""

    @abstractmethod
    def plan(self, rewards: Float[np.ndarray, "R H S A"]) -> Plan:
        """A policy for each reward, from what was seen."""

    def episode(self, simulator: Simulator) -> Episode:
        """Collect one episode."""
        return simulator.rollout(self.policy())

    def certificate(self) -> Float[np.ndarray, " B"] | None:
        """A bound on the sub-optimality for every reward at once, if the algorithm has one."""
        return None


class Algorithm(ABC):
    """A reward-free algorithm: the settings, and how to start it."""

    @abstractmethod
    def start(self, problem: Problem, streams: Streams, episodes: int) -> Learner:
        """A learner that has seen nothing, for a budget of so many episodes."""

    @property
    def certified(self) -> bool:
        """Whether its bounds are a theorem's with these settings; a heuristic if not."""
        return False

    @classmethod
    def presets(cls) -> dict[str, Self]:
        """Named settings; the first one is the default."""
        return {"default": cls()}
