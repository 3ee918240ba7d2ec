"""The exact track's figures: python -m benchmarks.exact [--good-event].

Without a flag, the speed of GFA-RFE on RiverSwim-8, one thread: 2,000 episodes of 10 seeds, and the time per
episode after 10,000 episodes against after 100, taken in turns. With --good-event, how often each inequality
of the proof fails when beta is scaled below what is proven.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: these figures are of one core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from rewardfree.exact import GfaRfe, Mdp, explore, load
from rewardfree.exact.classes.tabular import TabularStatistics
from rewardfree.exact.gfa_rfe import GfaRfeLearner
from rewardfree.exact.good_event import good_event
from rewardfree.exact.mdp import Purpose, Simulator, Streams


def speed(episodes: int = 2000, seeds: int = 10) -> None:
    """Seconds of a run, and the time per episode late against early."""
    mdp = load("riverswim-8")
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        explore(mdp, GfaRfe(), episodes, range(seeds))
        seconds.append(time.perf_counter() - started)
    runs = ", ".join(f"{value:.2f}" for value in seconds)
    print(f"riverswim-8, {episodes} episodes x {seeds} seeds: {np.median(seconds):.2f} s (3 runs: {runs})")
    learners = {k: explore(mdp, GfaRfe(), k, range(seeds)) for k in (100, 10_000)}
    simulator = Simulator(mdp, Streams(range(seeds), Purpose.SIMULATOR))
    times: dict[int, list[float]] = {k: [] for k in learners}
    for _ in range(500):
        for k, learner in learners.items():
            started = time.perf_counter()
            learner.observe(learner.episode(simulator))
            times[k].append(time.perf_counter() - started)
    early, late = (1e3 * float(np.median(times[k])) for k in learners)
    print(f"an episode: {early:.3f} ms after 100, {late:.3f} ms after 10,000: {late / early:.2f}x")


def violations(runs: int = 100, episodes: int = 300) -> None:
    """The share of runs in which an inequality fails, by the scale of beta (`tight` constants)."""
    rows: dict[str, list[float]] = {}
    scales = (1.0, 0.1, 0.03, 0.01, 0.003, 0.001)
    for scale in scales:
        failed: dict[str, int] = {}
        for seed in range(runs):
            P = np.random.default_rng(seed).dirichlet(np.full(4, 0.5), size=(4, 4, 2))
            mdp = Mdp(P)
            config = GfaRfe(constants="tight", scale=scale, log_cover=None, lam=1e-3)
            learner = explore(mdp, config, episodes, [seed])
            assert isinstance(learner, GfaRfeLearner)
            assert isinstance(learner.statistics, TabularStatistics)
            for name, held in good_event(mdp, learner, learner.statistics.weight[0] > 0).items():
                failed[name] = failed.get(name, 0) + (not held)
        for name, count in failed.items():
            rows.setdefault(name, []).append(count / runs)
    beta = GfaRfe(constants="tight", lam=1e-3).beta(mdp.problem, episodes)
    print(f"{runs} random MDPs (S = 4, A = 2, H = 4), {episodes} episodes; beta at scale 1 is {beta:.0f}")
    print(f"{'share of runs in which it fails':32}" + "".join(f"{scale:>8g}" for scale in scales))
    for name, row in rows.items():
        print(f"{name:32}" + "".join(f"{value:8.2f}" for value in row))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--good-event", action="store_true")
    if parser.parse_args().good_event:
        violations()
    else:
        speed()
