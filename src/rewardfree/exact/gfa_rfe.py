"""GFA-RFE: Algorithm 1 of Zhang, Zhang, Zhou and Gu (ICML 2024), line by line.

Line numbers in the comments count Algorithm 1 as printed: 1-17 are the exploration phase, 18-26 the planning
phase. Rewards total at most 1 on every path. What the paper leaves open is decided here:

- V_{H+1} = 0, and f = 0 where nothing was seen (before a known reward is added).
- f is clipped to [0, L], or sigma would be the root of a negative number.
- Ties of the argmax are broken at random: with the printed constants every Q is 1, and the ties *are* the
  policy.
- The intrinsic reward is known, so it is added and not regressed. The printed form (`reward="literal"`)
  regresses it, although r_k = beta D need not lie in the class, nor below 1, so that completeness fails for
  it.
- One beta serves both phases: the proof needs beta_E >= beta_P, and beta_P is only given up to a constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from rewardfree.errors import UserError
from rewardfree.exact.classes.tabular import Tabular
from rewardfree.exact.interfaces import Algorithm, FunctionClass, Learner, LogCovers, Plan
from rewardfree.exact.mdp import Episode, Problem, Purpose, Streams

CONSTANTS = {"paper": (16, 1), "corrected": (32, 2), "tight": (2, 2)}
"""c and m in beta^2 = c H log(K H N_V N_F^m / delta) + 56 L epsilon K H + lambda, with epsilon = 1/(K H)."""


@dataclass(frozen=True)
class GfaRfe(Algorithm):
    """GFA-RFE, Algorithm 1: an uncertainty-aware intrinsic reward and uncertainty-weighted regression.

    Source: Zhang, Zhang, Zhou, Gu. Uncertainty-Aware Reward-Free Exploration with General Function
    Approximation. ICML 2024.

    With the printed constants a cell needs tens of millions of visits before its bonus leaves the clip, and
    exploration is uniform until then. Two knobs make it practical: `scale` on beta, and `log_cover` in place
    of log N_V in the weights (0 turns the weighting off). The guarantee and the certificate hold at scale 1
    with log_cover unset; below that they are a heuristic.
    """

    function_class: FunctionClass = field(default_factory=Tabular)
    """The class F of functions."""
    constants: Literal["paper", "corrected", "tight", "unit"] = "unit"
    """beta: `paper` as printed, `corrected` with the proof's slips mended, `tight` with the noise of a value
    in [0, 1] taken as 1/2-sub-Gaussian, `unit` beta = 1, so that `scale` is the radius itself."""
    scale: float = 0.03
    """Factor on beta."""
    log_cover: float | None = 0.05
    """Takes the place of log N_V in sigma and gamma; none for log N_V itself, 0 for no weighting."""
    lam: float = 1e-3
    """lambda, of the bonus. At most (2 scale beta L)^2, or unseen cells would not be optimistic."""
    delta: float = 0.05
    """Probability with which the guarantee may fail."""
    reward: Literal["known", "literal"] = "known"
    """Whether the intrinsic reward is added to the regression or regressed with it, as printed."""

    def __post_init__(self) -> None:
        if min(self.scale, self.lam, self.delta) <= 0 or self.delta >= 1:
            raise UserError("scale and lam must be positive and delta between 0 and 1")
        if self.log_cover is not None and self.log_cover < 0:
            raise UserError("log_cover must not be negative")

    @classmethod
    def presets(cls) -> dict[str, GfaRfe]:
        """`tuned` and `unweighted` are what works; the others have the guarantee."""
        certified = {
            name: cls(constants=name, scale=1.0, log_cover=None, lam=1.0)
            for name in ("paper", "corrected", "tight")
        }
        return {"tuned": cls(), "unweighted": cls(log_cover=0.0), **certified}

    def start(self, problem: Problem, streams: Streams, episodes: int) -> GfaRfeLearner:
        return GfaRfeLearner(self, problem, streams, episodes)

    @property
    def certified(self) -> bool:
        """Whether the constants are a theorem's, so that the bounds hold with probability 1 - delta."""
        return self.constants != "unit" and self.scale >= 1 and self.log_cover is None

    @property
    def bound(self) -> float:
        """L: a member estimates P V in [0, 1], and r + P V in [0, 2] if the reward is regressed with it."""
        return 1.0 if self.reward == "known" else 2.0

    def beta(self, problem: Problem, episodes: int) -> float:
        """The confidence radius, before `scale`."""
        if self.constants == "unit":
            return 1.0
        c, m = CONSTANTS[self.constants]
        KH = episodes * problem.horizon
        beta = 1.0
        for _ in range(100):  # a fixed point: N_V may depend on beta
            log_f, log_v = self.log_covers(problem, episodes, beta)
            logs = np.log(KH / self.delta) + log_v + m * log_f
            last, beta = beta, float(np.sqrt(c * problem.horizon * logs + 56 * self.bound + self.lam))
            if abs(beta - last) <= 1e-12 * beta:
                break
        return beta

    def log_covers(self, problem: Problem, episodes: int, beta: float) -> LogCovers:
        """log N_F and log N_V at epsilon = 1/(K H)."""
        epsilon = 1 / (episodes * problem.horizon)
        return self.function_class.log_covers(problem, epsilon, self.lam, self.bound, beta)


class Sweep(NamedTuple):
    """What Lines 3-8 compute."""

    D: Float[np.ndarray, "B H S A"]
    f: Float[np.ndarray, "B H S A"]
    Q: Float[np.ndarray, "B H S A"]


class GfaRfeLearner(Learner):
    """Algorithm 1 at work, all seeds at once."""

    def __init__(self, config: GfaRfe, problem: Problem, streams: Streams, episodes: int) -> None:
        self.config, self.problem, self._streams = config, problem, streams
        self.statistics = config.function_class.statistics(
            problem, len(streams.seeds), config.lam, config.bound
        )
        beta = config.beta(problem, episodes)
        self.beta = config.scale * beta
        if config.lam > (most := (2 * self.beta * config.bound) ** 2):
            raise UserError(
                f"lam must be at most (2 scale beta L)^2 = {most:g}, or unseen cells lose their optimism"
            )
        if config.log_cover is None:
            self.log_cover = config.log_covers(problem, episodes, beta).V  # log N_V
        else:
            self.log_cover = config.log_cover
        self.gamma = np.sqrt(self.log_cover)
        self.alpha = 1 / np.sqrt(problem.horizon)
        self._sweep: Sweep | None = None

    def policy(self) -> Int[np.ndarray, "B H S"]:
        return self._streams.argmax(self.sweep().Q)  # Line 9

    def sweep(self) -> Sweep:
        """Lines 3-8, with the data of the episodes before this one."""
        if self._sweep is None:
            D = self.statistics.width()
            b = 2 * self.beta * D  # Line 4
            r = b / 2  # Line 5
            f, Q = np.empty_like(D), np.empty_like(D)
            V = np.zeros((D.shape[0], 1, D.shape[2]))  # V_{H+1}, of one reward
            for h in reversed(range(self.problem.horizon)):
                f[:, h] = self._regress(h, r[:, None, h], V)[:, 0]  # Line 6
                Q[:, h] = np.minimum(f[:, h] + b[:, h], 1)  # Line 7
                V = Q[:, h].max(axis=-1)[:, None]  # Line 8
            self._sweep = Sweep(D, f, Q)
        return self._sweep

    def observe(self, episode: Episode) -> None:
        """Lines 11-16."""
        self.statistics.update(episode, 1 / self.sigma_bar(episode) ** 2)
        self._sweep = None

    def sigma_bar(self, episode: Episode) -> Float[np.ndarray, "B H"]:
        """The deviation by which a sample is weighted: epistemic, aleatoric, and at least alpha."""
        B, H = episode.state.shape
        seen = np.arange(B)[:, None], np.arange(H), episode.state, episode.action
        D, f = self.sweep().D[seen], self.sweep().f[seen]
        sigma = 2 * np.sqrt(self.log_cover * np.minimum(f, 1))  # Line 14
        return np.maximum(np.maximum(self.gamma * np.sqrt(D), sigma), self.alpha)  # Line 15

    def plan(self, rewards: Float[np.ndarray, "R H S A"]) -> Plan:
        """Lines 18-26, for many rewards at once, with the certificate of each."""
        b = self.planning_bonus()
        V, policy = self.values(rewards[None], b)
        value = self.problem.mean_start(V[:, :, 0])
        here = self.problem.mean_start(self._upper_value(policy, b))
        everywhere = self.certificate()[:, None]
        return Plan(policy, value, np.minimum(here, everywhere))

    def planning_bonus(self) -> Float[np.ndarray, "B H S A"]:
        """Line 21."""
        return np.minimum(self.beta * self.statistics.width(), 1)

    def certificate(self) -> Float[np.ndarray, " B"]:
        """2 V~*(b), from data: V* - V^pi is at most this for every reward, on the good event.

        V~*(b) itself needs the transitions. Planning for b as if it were a reward is optimistic, so what
        it returns is at least V~*(b).
        """
        b = self.planning_bonus()
        V, _ = self.values(b[:, None], b)
        return np.minimum(2 * self.problem.mean_start(V[:, 0, 0]), 1)

    def values(
        self, reward: Float[np.ndarray, "#B R H S A"], b: Float[np.ndarray, "B H S A"]
    ) -> tuple[Float[np.ndarray, "B R H S"], Int[np.ndarray, "B R H S"]]:
        """Lines 19-25: the optimistic values of each reward, and the policy that is greedy in them."""
        (B, H, S, _), R = b.shape, reward.shape[1]
        ties = Streams(self._streams.seeds, Purpose.PLANNING)
        V, policy = np.empty((B, R, H, S)), np.empty((B, R, H, S), dtype=np.int64)
        after = np.zeros((B, R, S))  # Line 19
        for h in reversed(range(H)):
            f = self._regress(h, reward[:, :, h], after)  # Line 22
            Q = np.minimum(f + b[:, None, h], 1)  # Line 23
            V[:, :, h] = after = Q.max(axis=-1)  # Line 24
            policy[:, :, h] = ties.argmax(Q)  # Line 25
        return V, policy

    def _upper_value(
        self, policy: Int[np.ndarray, "B R H S"], b: Float[np.ndarray, "B H S A"]
    ) -> Float[np.ndarray, "B R S"]:
        """At least V^_1 - V^pi_1 on the good event: the certificate of these policies alone.

        Along pi, V^_h - V^pi_h <= min(2 b_h + P_h (V^_{h+1} - V^pi_{h+1}), 1), and P_h V <= f^_h + b_h.
        """
        B, R, H, S = policy.shape
        V = np.zeros((B, R, S))
        for h in reversed(range(H)):
            Q = np.minimum(3 * b[:, None, h] + np.clip(self.statistics.regress(h, V), 0, 1), 1)
            V = np.take_along_axis(Q, policy[:, :, h, :, None], axis=-1)[..., 0]
        return V

    def _regress(self, h: int, reward: np.ndarray, V: np.ndarray) -> np.ndarray:
        """f^_h, which estimates r_h + P_h V_{h+1}."""
        if self.config.reward == "literal":
            return np.clip(self.statistics.regress(h, V, reward), 0, self.config.bound)
        return reward + np.clip(self.statistics.regress(h, V), 0, self.config.bound)
