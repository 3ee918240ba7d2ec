"""What can be said of a few seeds: interquartile means, intervals, profiles and probabilities.

After Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice" (2021). Scores
are lists over tasks of arrays over seeds. Resampling is stratified: seeds within each task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.stats
from jaxtyping import Float

Scores = Sequence[Float[np.ndarray, " seeds"]]
"""For each task the scores of its seeds."""
RESAMPLES = 2000
LEVEL = 0.95
LEAST = 1e-3
"""A return of 1: a smaller one counts as this where it divides."""


def iqm(scores: Scores) -> float:
    """The mean of the middle half of all runs."""
    return float(scipy.stats.trim_mean(np.concatenate(scores), 0.25))


def interval(statistic: Callable[..., float], *scores: Scores, seed: int = 0) -> tuple[float, float] | None:
    """The percentile interval of a statistic over resampled seeds; None unless every task has several."""
    if min(len(runs) for one in scores for runs in one) < 2:
        return None
    rng = np.random.default_rng(seed)
    values = [
        statistic(*([rng.choice(runs, len(runs)) for runs in one] for one in scores))
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def profile(scores: Scores, levels: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """For each level the share of runs above it, all tasks alike."""
    return np.mean([[np.mean(runs > level) for level in levels] for runs in scores], axis=0)


def probability_of_improvement(scores: Scores, others: Scores) -> float:
    """The chance that a run beats one of the others on a task that is drawn at random; a tie counts half."""
    return float(
        np.mean(
            [np.mean(np.sign(x[:, None] - y[None, :])) / 2 + 0.5 for x, y in zip(scores, others, strict=True)]
        )
    )


def difference(scores: Scores, others: Scores) -> float:
    """How much higher the mean is, all tasks alike."""
    return float(np.mean([x.mean() - y.mean() for x, y in zip(scores, others, strict=True)]))


def ratio(scores: Scores, others: Scores) -> float:
    """How many times as high the mean is, all tasks alike."""
    mean, other = (np.mean([runs.mean() for runs in one]) for one in (scores, others))
    return float(mean / max(other, LEAST))
