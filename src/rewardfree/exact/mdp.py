"""Finite episodic MDPs with exact values by dynamic programming, and the simulator that samples from them.

Axes, everywhere in this folder: B seeds, R rewards, H stages, S states, A actions. Stage h of the paper is
index h - 1. A reward pays r_h(s, a), a policy is deterministic, and V_{H+1} = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from rewardfree.errors import UserError

_SUMS_TO_ONE = 1e-8


@dataclass(frozen=True)
class Problem:
    """What an algorithm may know of an MDP: everything but its transitions."""

    states: int
    actions: int
    horizon: int
    start: Float[np.ndarray, " S"]
    """Distribution of s_1."""
    features: Float[np.ndarray, "S A d"] | None = None
    """phi(s, a) of a linear MDP, P_h(s' | s, a) = phi(s, a)' mu_h(s')."""
    kernels: Float[np.ndarray, "d S A S"] | None = None
    """P_i of a linear mixture MDP, P(s' | s, a) = sum_i theta_i P_i(s' | s, a)."""

    def mean_start(self, value: Float[np.ndarray, "*n S"]) -> Float[np.ndarray, "*n"]:
        """E_{s_1 ~ mu} V(s_1)."""
        return value @ self.start


class Episode(NamedTuple):
    """What is seen in one episode of every seed. In a rollout, next_state[:, h] is state[:, h + 1]."""

    state: Int[np.ndarray, "B H"]
    action: Int[np.ndarray, "B H"]
    next_state: Int[np.ndarray, "B H"]


class Values(NamedTuple):
    """Values of every stage, and the policy that has them."""

    V: Float[np.ndarray, "*n H S"]
    policy: Int[np.ndarray, "*n H S"]


class Mdp:
    """An episodic MDP: P_h(s' | s, a), a start distribution, and rewards that have a name, if any."""

    def __init__(
        self,
        transitions: np.ndarray,
        start: np.ndarray | int = 0,
        *,
        horizon: int | None = None,
        features: np.ndarray | None = None,
        kernels: np.ndarray | None = None,
        rewards: Mapping[str, np.ndarray] | None = None,
        name: str = "mdp",
    ) -> None:
        """Take P as (S, A, S) with a horizon, or as (H, S, A, S); a start as a state or a distribution."""
        P = _stages(np.asarray(transitions, dtype=np.float64), horizon)
        H, S, A, _ = P.shape
        if isinstance(start, int | np.integer):
            if not 0 <= start < S:
                raise UserError(f"start state {start} does not exist; states are 0 to {S - 1}")
            start = np.eye(S)[start]
        mu = np.asarray(start, dtype=np.float64)
        if mu.shape != (S,):
            raise UserError(f"the start distribution has shape {mu.shape}; with {S} states it must be ({S},)")
        _check_distribution("the start distribution", mu)
        self.name = name
        self.transitions: Float[np.ndarray, "H S A S"] = P
        self.problem = Problem(S, A, H, mu, features, kernels)
        self.rewards = {key: self.normalise(value) for key, value in (rewards or {}).items()}
        self._cumulative = _per_stage(P, lambda kernel: np.cumsum(kernel, axis=-1))

    def expectation(self, h: int, V: Float[np.ndarray, "*n S"]) -> Float[np.ndarray, "*n S A"]:
        """[P_h V](s, a)."""
        S, A = self.problem.states, self.problem.actions
        return (V @ self.transitions[h].reshape(S * A, S).T).reshape(*V.shape[:-1], S, A)

    def optimal(self, reward: Float[np.ndarray, "*n H S A"], cap: float = np.inf) -> Values:
        """V*_h(s; r), or with a cap the truncated one: Q_h = min(r_h + P_h V_{h+1}, cap)."""
        H, S, *batch = self.problem.horizon, self.problem.states, *reward.shape[:-3]
        V, policy = np.zeros((*batch, H, S)), np.zeros((*batch, H, S), dtype=np.int64)
        after = np.zeros((*batch, S))
        for h in reversed(range(H)):
            Q = np.minimum(reward[..., h, :, :] + self.expectation(h, after), cap)
            V[..., h, :] = after = Q.max(axis=-1)
            policy[..., h, :] = Q.argmax(axis=-1)
        return Values(V, policy)

    def value(
        self,
        policy: Int[np.ndarray, "*n H S"],
        reward: Float[np.ndarray, "*n H S A"],
        cap: float = np.inf,
    ) -> Float[np.ndarray, "*n H S"]:
        """V^pi_h(s; r), or the truncated one. The policy may have more leading axes than the reward."""
        V = np.zeros(policy.shape)
        after = np.zeros((*policy.shape[:-2], self.problem.states))
        for h in reversed(range(self.problem.horizon)):
            Q = np.minimum(reward[..., h, :, :] + self.expectation(h, after), cap)
            V[..., h, :] = after = np.take_along_axis(Q, policy[..., h, :, None], axis=-1)[..., 0]
        return V

    def check(self, reward: np.ndarray) -> Float[np.ndarray, "H S A"]:
        """A reward given as (S,), (S, A) or (H, S, A), at full size. Raises UserError if it is not one."""
        r = self._full(reward)
        if r.min() < 0 or r.max() > 1:
            raise UserError(
                f"rewards must lie in [0, 1], these lie in [{r.min():g}, {r.max():g}]; normalise them first"
            )
        if (total := self.largest_total(r)) > 1 + _SUMS_TO_ONE:
            raise UserError(f"a path's rewards may total 1 at most, here {total:g}; normalise them first")
        return r

    def normalise(self, reward: np.ndarray) -> Float[np.ndarray, "H S A"]:
        """The same reward, shifted to start at 0 and scaled so that no path totals more than 1.

        Every episode has H steps, so neither changes which policy is best.
        """
        r = self._full(reward)
        r = r - min(r.min(), 0.0)
        total = self.largest_total(r)
        return r / total if total > 0 else r

    def largest_total(self, reward: Float[np.ndarray, "H S A"]) -> float:
        """The most that a path from the start can pay: dynamic programming with max in place of E."""
        after = np.zeros(self.problem.states)
        for h in reversed(range(self.problem.horizon)):
            reachable = np.where(self.transitions[h] > 0, after, -np.inf).max(axis=-1)
            after = (reward[h] + reachable).max(axis=-1)
        return float(after[self.problem.start > 0].max())

    def occupancy(self, policy: Int[np.ndarray, "*n H S"]) -> Float[np.ndarray, "*n H S"]:
        """The probability of being in s at stage h."""
        found = np.zeros(policy.shape)
        now = np.broadcast_to(self.problem.start, (*policy.shape[:-2], self.problem.states))
        for h in range(self.problem.horizon):
            found[..., h, :] = now
            chosen = self.transitions[h][np.arange(self.problem.states), policy[..., h, :]]  # (*n, S, S)
            now = np.einsum("...s,...st->...t", now, chosen)
        return found

    def _full(self, reward: np.ndarray) -> Float[np.ndarray, "H S A"]:
        H, S, A = self.problem.horizon, self.problem.states, self.problem.actions
        r = np.asarray(reward, dtype=np.float64)
        if r.shape == (S,):
            r = np.broadcast_to(r[:, None], (S, A))
        if r.shape not in ((S, A), (H, S, A)):
            raise UserError(
                f"a reward of shape {r.shape} does not fit {self.name};"
                f" give ({S},), ({S}, {A}) or ({H}, {S}, {A})"
            )
        if not np.isfinite(r).all():
            raise UserError("a reward must be finite; this one has nan or inf in it")
        return np.array(np.broadcast_to(r, (H, S, A)))


class Purpose(IntEnum):
    """What a random stream is for: streams of one seed with different purposes are independent."""

    SIMULATOR = 0
    POLICY = 1
    PLANNING = 2
    COMMON_PLANNING = 3


class Streams:
    """One random stream per seed, so that a seed's numbers do not depend on the seeds beside it."""

    def __init__(self, seeds: Sequence[int], purpose: Purpose) -> None:
        self.seeds = tuple(seeds)
        self._generators = [np.random.default_rng([seed, purpose]) for seed in seeds]

    def random(self, *shape: int) -> Float[np.ndarray, "B ..."]:
        """Uniform numbers in [0, 1)."""
        return np.stack([generator.random(shape) for generator in self._generators])

    def normal(self, *shape: int) -> Float[np.ndarray, "B ..."]:
        """Standard normal numbers."""
        return np.stack([generator.standard_normal(shape) for generator in self._generators])

    def argmax(self, Q: Float[np.ndarray, "B *n A"]) -> Int[np.ndarray, "B ..."]:
        """argmax over the last axis, ties broken at random."""
        best = Q.max(axis=-1, keepdims=True) == Q
        return np.where(best, self.random(*Q.shape[1:]), -1.0).argmax(axis=-1)


class Simulator:
    """Samples from an MDP, all seeds at once. The only thing that touches the transitions while exploring."""

    def __init__(self, mdp: Mdp, streams: Streams) -> None:
        self._mdp, self._streams = mdp, streams
        self._start = np.cumsum(mdp.problem.start)

    def rollout(self, policy: Int[np.ndarray, "B H S"]) -> Episode:
        """One episode of each seed's policy."""
        B, H, _ = policy.shape
        seed, chance = np.arange(B), self._streams.random(H + 1)
        state, action = np.empty((B, H + 1), dtype=np.int64), np.empty((B, H), dtype=np.int64)
        state[:, 0] = _draw(self._start, chance[:, H])
        for h in range(H):
            action[:, h] = policy[seed, h, state[:, h]]
            ahead = self._mdp._cumulative[h, state[:, h], action[:, h]]
            state[:, h + 1] = _draw(ahead, chance[:, h])
        return Episode(state[:, :H], action, state[:, 1:])

    def query(self, state: Int[np.ndarray, "B H"], action: Int[np.ndarray, "B H"]) -> Episode:
        """One transition per stage, started anywhere: a generative model."""
        stage = np.arange(self._mdp.problem.horizon)
        chance = self._streams.random(len(stage))
        return Episode(state, action, _draw(self._mdp._cumulative[stage, state, action], chance))


def _draw(cumulative: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Inverse of the distribution function. Its end may be rounded below 1: the last state it is, then."""
    last = np.minimum(chance, np.nextafter(cumulative[..., -1], 0))
    return (cumulative <= last[..., None]).sum(axis=-1)


def _stages(P: np.ndarray, horizon: int | None) -> np.ndarray:
    """P as (H, S, A, S); a stationary kernel is not copied H times."""
    if P.ndim == 3 and horizon is None:
        raise UserError("transitions of shape (S, A, S) need a horizon")
    if P.ndim not in (3, 4) or P.shape[-1] != P.shape[-3] or 0 in P.shape[-3:]:
        raise UserError(f"transitions have shape {P.shape}; give (S, A, S) or (H, S, A, S)")
    H = len(P) if P.ndim == 4 else horizon
    assert H is not None
    if H < 1:
        raise UserError(f"a horizon of {H} leaves nothing to decide; it must be at least 1")
    if horizon not in (None, H):
        raise UserError(f"transitions of {H} stages do not fit a horizon of {horizon}")
    _check_distribution("transitions", P)
    return np.broadcast_to(P, (H, *P.shape[-3:]))


def _check_distribution(what: str, p: np.ndarray) -> None:
    if not np.isfinite(p).all():
        raise UserError(f"{what}: a probability is nan or inf")
    if p.min() < 0:
        where = tuple(int(i) for i in np.unravel_index(p.argmin(), p.shape))
        raise UserError(f"{what}: a probability is negative, {p.min():g} at {where}")
    error = np.abs(p.sum(axis=-1) - 1)
    if error.max() > _SUMS_TO_ONE:
        where = tuple(int(i) for i in np.unravel_index(error.argmax(), error.shape))
        total = p.sum(axis=-1)[where]
        raise UserError(
            f"{what}: a row must sum to one, {f'row {where}' if where else 'it'} sums to {total:g}"
        )


def _per_stage(P: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A function of the kernel, once if the stages share one array."""
    if P.strides[0] == 0:
        return np.broadcast_to(function(P[0]), P.shape)
    return function(P)
