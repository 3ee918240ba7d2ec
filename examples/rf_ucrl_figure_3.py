"""The setting of Figure 3 of Kaufmann et al. (2021): where 30,000 transitions go in a grid of 21 x 21.

Started in the middle, a move succeeds with chance 0.95, 20 stages.

    python examples/rf_ucrl_figure_3.py --out figure-3.png
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from rewardfree import exact, registry
from rewardfree.exact.mdp import Episode

ALGORITHMS = ("gfa-rfe", "rf-ucrl", "rf-express", "uniform")


@dataclass(frozen=True)
class Args:
    """The setting; the defaults are the paper's."""

    transitions: int = 30_000
    """Transitions of each algorithm."""
    side: int = 21
    """Side of the grid."""
    seed: int = 0
    """Seed."""
    out: Path = Path("figure-3.png")
    """Where to draw."""


def visits(mdp: exact.Mdp, name: str, episodes: int, seed: int) -> np.ndarray:
    """How often each state was visited."""
    counts = np.zeros(mdp.problem.states, dtype=np.int64)

    def watch(k: int, learner: exact.Learner, episode: Episode) -> None:
        np.add.at(counts, episode.state[0], 1)

    exact.explore(
        mdp, next(iter(registry.load("algorithm", name).presets().values())), episodes, [seed], watch
    )
    return counts


def main(args: Args) -> None:
    """Run, print and draw."""
    mdp = exact.load(f"grid-{args.side}", horizon=20)
    figure = Figure(figsize=(3.2 * len(ALGORITHMS), 3.4), layout="constrained")
    for i, name in enumerate(ALGORITHMS):
        counts = visits(mdp, name, args.transitions // mdp.problem.horizon, args.seed)
        share = counts / counts.sum()
        entropy = -np.sum(share[share > 0] * np.log(share[share > 0]))
        print(f"{name:12} {np.count_nonzero(counts):4} of {len(counts)} states, entropy {entropy:.3f}")
        axes = figure.add_subplot(1, len(ALGORITHMS), i + 1)
        seen = np.ma.masked_equal(counts.reshape(args.side, args.side), 0)
        drawn = axes.imshow(seen, norm=LogNorm(1, args.transitions / 10), cmap="viridis")
        axes.set(title=name, xticks=[], yticks=[])
    figure.colorbar(drawn, ax=figure.axes, label=f"visits in {args.transitions} transitions")
    figure.savefig(args.out, dpi=150)


if __name__ == "__main__":
    main(tyro.cli(Args))
