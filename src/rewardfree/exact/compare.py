"""Algorithms side by side: sub-optimality over many rewards against episodes, on one MDP."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import stats

from rewardfree.errors import UserError
from rewardfree.exact.backward import certainty_equivalent
from rewardfree.exact.classes.linear import Linear
from rewardfree.exact.classes.tabular import TabularStatistics
from rewardfree.exact.explore import checkpoints, explore
from rewardfree.exact.interfaces import Algorithm, Learner, Regression
from rewardfree.exact.mdp import Episode, Mdp, Purpose
from rewardfree.exact.peers._mixture import MixtureRegression

DENSE_REWARDS = 20
_CHUNK = 64


def all_rewards(mdp: Mdp, dense: int = DENSE_REWARDS, seed: int = 0) -> Float[np.ndarray, "R H S A"]:
    """The rewards that count: for every s, being there at the last stage; and dense random ones."""
    H, S, A = mdp.problem.horizon, mdp.problem.states, mdp.problem.actions
    reach = np.zeros((S, H, S, A))
    reach[np.arange(S), H - 1, np.arange(S)] = 1
    rng = np.random.default_rng(seed)
    return np.concatenate([reach, *(mdp.normalise(rng.random((H, S, A)))[None] for _ in range(dense))])


@dataclass
class Curves:
    """What was measured of one algorithm; every list is over `episodes`, every entry over seeds."""

    episodes: list[int] = field(default_factory=list)
    max_suboptimality: list[np.ndarray] = field(default_factory=list)
    """The largest V* - V^pi over the rewards, planned with the common planner."""
    mean_suboptimality: list[np.ndarray] = field(default_factory=list)
    own_max_suboptimality: list[np.ndarray] = field(default_factory=list)
    """The same, planned with the algorithm's own planner."""
    own_mean_suboptimality: list[np.ndarray] = field(default_factory=list)
    coverage: list[np.ndarray] = field(default_factory=list)
    """Share of the reachable (h, s, a) that were visited."""
    entropy: list[np.ndarray] = field(default_factory=list)
    """Entropy of the visits of (s, a), in nats, mean over stages."""
    certificate: list[np.ndarray] = field(default_factory=list)
    """The algorithm's own bound for all rewards; empty if it has none."""
    seconds: float = 0.0
    """Time spent exploring, planning and measuring left out."""

    def to_json(self) -> dict[str, Any]:
        """The end as numbers, and the curves with each seed's values."""
        names = [name for name in vars(self) if name not in ("episodes", "seconds")]
        last = {
            name: float(np.mean(getattr(self, name)[-1])) if getattr(self, name) else None for name in names
        }
        curves = {name: np.round(getattr(self, name), 9).tolist() for name in names if getattr(self, name)}
        return {
            "episodes": self.episodes[-1],
            "seconds": self.seconds,
            **last,
            "curves": {"episodes": self.episodes, **curves},
        }


@dataclass(frozen=True)
class Comparison:
    """The outcome of `compare`."""

    mdp: str
    seeds: tuple[int, ...]
    rewards: int
    algorithms: dict[str, Curves]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found = {name: curves.to_json() for name, curves in self.algorithms.items()}
        return {"mdp": self.mdp, "seeds": list(self.seeds), "rewards": self.rewards, "algorithms": found}


def compare(
    mdp: Mdp,
    algorithms: Mapping[str, Algorithm],
    episodes: int,
    seeds: Sequence[int] = tuple(range(10)),
    at: Sequence[int] | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Comparison:
    """Explore with each algorithm, and at some numbers of episodes plan for all the rewards and measure."""
    rewards = all_rewards(mdp)
    found = {}
    for name, algorithm in algorithms.items():
        watch = _Watch(mdp, rewards, tuple(seeds), at or checkpoints(episodes), name, progress)
        started = time.perf_counter()
        explore(mdp, algorithm, episodes, seeds, watch)
        watch.curves.seconds = time.perf_counter() - started - watch.seconds
        found[name] = watch.curves
    return Comparison(mdp.name, tuple(seeds), len(rewards), found)


class _Watch:
    """Counts what is visited, and measures at the given numbers of episodes."""

    def __init__(
        self,
        mdp: Mdp,
        rewards: np.ndarray,
        seeds: tuple[int, ...],
        at: Sequence[int],
        name: str,
        progress: Callable[[str, int], None] | None,
    ) -> None:
        self._mdp, self._rewards, self._seeds, self._at = mdp, rewards, seeds, set(at)
        self._best = mdp.problem.mean_start(mdp.optimal(rewards).V[:, 0])  # (R,)
        self._reachable = reachable(mdp)
        self._counts = TabularStatistics(mdp.problem, len(seeds), ridge=0.0)
        self._common = self._common_regression(len(seeds))
        self._name, self._progress = name, progress
        self.curves = Curves()
        self.seconds = 0.0

    def __call__(self, k: int, learner: Learner, episode: Episode) -> None:
        started = time.perf_counter()
        once = np.ones(episode.state.shape)
        self._counts.update(episode, once)
        if self._common is not self._counts:
            self._common.update(episode, once)
        if k in self._at:
            self._measure(k, learner)
        if self._progress is not None:
            self._progress(self._name, k)
        self.seconds += time.perf_counter() - started

    def _common_regression(self, seeds: int) -> Regression:
        """The regression of the common planner: it knows the structure of the MDP, if there is any."""
        problem = self._mdp.problem
        if problem.features is not None:
            return Linear().statistics(problem, seeds, lam=1e-3, bound=1.0)
        if problem.kernels is not None:
            return MixtureRegression(problem.kernels, seeds)
        return self._counts

    def _measure(self, k: int, learner: Learner) -> None:
        common, own = [], []
        for first in range(0, len(self._rewards), _CHUNK):  # memory: many states are many rewards
            part = slice(first, first + _CHUNK)
            rewards = self._rewards[part]
            plan = certainty_equivalent(
                self._mdp.problem, self._common, rewards, self._seeds, Purpose.COMMON_PLANNING
            )
            common.append(self._best[part] - self._value(plan.policy, rewards))
            own.append(self._best[part] - self._value(learner.plan(rewards).policy, rewards))
        curves, gaps, own_gaps = self.curves, np.concatenate(common, axis=1), np.concatenate(own, axis=1)
        curves.episodes.append(k)
        curves.max_suboptimality.append(gaps.max(axis=1))
        curves.mean_suboptimality.append(gaps.mean(axis=1))
        curves.own_max_suboptimality.append(own_gaps.max(axis=1))
        curves.own_mean_suboptimality.append(own_gaps.mean(axis=1))
        visited = (self._counts.weight > 0) & self._reachable
        curves.coverage.append(visited.sum(axis=(1, 2, 3)) / self._reachable.sum())
        share = self._counts.weight.reshape(len(self._seeds), self._mdp.problem.horizon, -1) / k
        curves.entropy.append(stats.entropy(share, axis=-1).mean(axis=1))
        if (bound := learner.certificate()) is not None:
            curves.certificate.append(bound)

    def _value(self, policy: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        return self._mdp.problem.mean_start(self._mdp.value(policy, rewards)[..., 0, :])


def reachable(mdp: Mdp) -> np.ndarray:
    """Which (h, s, a) some policy reaches with positive probability: (H, S, A)."""
    found = np.zeros((mdp.problem.horizon, mdp.problem.states, mdp.problem.actions), dtype=bool)
    now = mdp.problem.start > 0
    for h in range(mdp.problem.horizon):
        found[h] = now[:, None]
        now = (mdp.transitions[h][now] > 0).any(axis=(0, 1))
    return found


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean over seeds, and its 95 % interval (Student's t); no interval from one seed."""
    mean = float(np.mean(values))
    if len(values) < 2 or np.ptp(values) == 0:
        return mean, mean, mean
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return mean, mean - half, mean + half


def plot(comparison: Comparison, path: Path) -> None:
    """Draw the curves with their intervals: common planner left, own planner right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    titles = {"max_suboptimality": "common planner", "own_max_suboptimality": "own planner"}
    first: Any = None
    for i, (measure, title) in enumerate(titles.items()):
        axes = figure.add_subplot(1, 2, i + 1, sharey=first)
        first = first or axes
        for name, curves in comparison.algorithms.items():
            rows = np.array([interval(values) for values in getattr(curves, measure)])
            (line,) = axes.plot(curves.episodes, rows[:, 0], label=name, marker=".")
            axes.fill_between(
                curves.episodes, rows[:, 1], rows[:, 2], color=line.get_color(), alpha=0.2, lw=0
            )
        axes.set(xscale="log", xlabel="episodes", title=f"{comparison.mdp}: {title}")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    first.set_ylabel(f"largest V* - V^π over {comparison.rewards} rewards")
    first.legend()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose another file with --plot") from error
