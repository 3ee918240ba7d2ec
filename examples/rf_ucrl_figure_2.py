"""The setting of Figure 2 of Kaufmann et al. (2021): sub-optimality against samples on the double chain.

Length 31, 20 stages, moves fail with chance 0.05, 11 budgets from 10^2 to 10^4.5 transitions, 48 runs.

    python examples/rf_ucrl_figure_2.py --out figure-2.png
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from rewardfree import exact, registry
from rewardfree.exact.compare import interval

ALGORITHMS = ("gfa-rfe", "rf-ucrl", "rf-express", "ucbvi", "generative", "uniform")


@dataclass(frozen=True)
class Args:
    """The setting; the defaults are the paper's."""

    runs: int = 48
    """Seeds."""
    budgets: int = 11
    """Budgets between 10^2 and `most` transitions, evenly spaced in their logarithm."""
    most: float = 4.5
    """Exponent of the largest budget."""
    out: Path = Path("figure-2.png")
    """Where to draw."""


def main(args: Args) -> None:
    """Run, print and draw."""
    mdp = exact.load("double-chain-31", horizon=20)
    transitions = np.logspace(2, args.most, args.budgets)
    episodes = [round(n / mdp.problem.horizon) for n in transitions]
    algorithms = {
        name: next(iter(registry.load("algorithm", name).presets().values())) for name in ALGORITHMS
    }
    found = exact.compare(mdp, algorithms, episodes[-1], range(args.runs), at=episodes)
    print(f"{'transitions':>12}", *(f"{name:>18}" for name in ALGORITHMS))
    for i, count in enumerate(episodes):
        cells = []
        for name in ALGORITHMS:
            mean, low, _ = interval(found.algorithms[name].max_suboptimality[i])
            cells.append(f"{mean:9.4f} ±{mean - low:.4f}")
        print(f"{count * mdp.problem.horizon:12}", *(f"{cell:>18}" for cell in cells))
    exact.plot(found, args.out)


if __name__ == "__main__":
    main(tyro.cli(Args))
