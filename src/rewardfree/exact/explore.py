"""Run an algorithm on an MDP, all seeds at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from rewardfree.errors import UserError
from rewardfree.exact.interfaces import Algorithm, Learner
from rewardfree.exact.mdp import Episode, Mdp, Purpose, Simulator, Streams

_CHECKS_PER_DOUBLING = 4

Watch = Callable[[int, Learner, Episode], bool | None]
"""Sees every episode after it was observed: watch(k, learner, episode). True stops."""


def explore(
    mdp: Mdp,
    algorithm: Algorithm,
    episodes: int,
    seeds: Sequence[int] = (0,),
    watch: Watch | None = None,
) -> Learner:
    """Explore for so many episodes."""
    if episodes < 1:
        raise UserError(f"{episodes} episodes are nothing to explore with; give at least 1")
    if not seeds or min(seeds) < 0:
        raise UserError("give at least one seed, none of them negative")
    simulator = Simulator(mdp, Streams(seeds, Purpose.SIMULATOR))
    learner = algorithm.start(mdp.problem, Streams(seeds, Purpose.POLICY), episodes)
    for k in range(1, episodes + 1):
        episode = learner.episode(simulator)
        learner.observe(episode)
        if watch is not None and watch(k, learner, episode):
            break
    return learner


class Until(NamedTuple):
    """Where an exploration stopped."""

    learner: Learner
    episodes: int
    held: Int[np.ndarray, " B"]
    """Episodes after which each seed's bound was seen to hold; -1 if it never was."""
    bound: Float[np.ndarray, " B"]
    """The bound at the end: the largest one over the rewards, or the one for all rewards."""


def explore_until(
    epsilon: float,
    mdp: Mdp,
    algorithm: Algorithm,
    episodes: int,
    rewards: Float[np.ndarray, "R H S A"] | None = None,
    seeds: Sequence[int] = (0,),
    watch: Watch | None = None,
) -> Until:
    """Explore until the algorithm's bound on V* - V^pi is at most epsilon, for these rewards or else for all.

    The bound is computed a few times per doubling of the episodes, and no more than `episodes` are spent.
    """
    if not epsilon > 0:
        raise UserError(f"epsilon must be positive, not {epsilon:g}")
    held, last, count = np.full(len(seeds), -1), np.full(len(seeds), np.inf), 0
    check_at = set(checkpoints(episodes, _CHECKS_PER_DOUBLING))

    def check(k: int, learner: Learner, episode: Episode) -> bool:
        nonlocal count, last
        count = k
        if watch is not None and watch(k, learner, episode):
            return True
        if k not in check_at:
            return False
        last = _bound(learner, rewards)
        held[(held < 0) & (last <= epsilon)] = k
        return bool((last <= epsilon).all())

    learner = explore(mdp, algorithm, episodes, seeds, check)
    return Until(learner, count, held, last)


def checkpoints(episodes: int, per_doubling: int = 2) -> list[int]:
    """Numbers of episodes at which to look, evenly spaced in their logarithm, with the last one."""
    most = int(np.ceil(np.log2(episodes) * per_doubling)) if episodes > 1 else 0
    return sorted({min(episodes, round(2 ** (i / per_doubling))) for i in range(most + 1)} | {episodes})


def _bound(learner: Learner, rewards: np.ndarray | None) -> np.ndarray:
    found = learner.certificate() if rewards is None else learner.plan(rewards).bound
    if found is None:
        what = "for single rewards" if rewards is not None else "at all"
        raise UserError(
            f"this algorithm has no bound {what}; gfa-rfe has, rf-ucrl and rf-express have for all rewards"
        )
    return found if rewards is None else found.max(axis=-1)
