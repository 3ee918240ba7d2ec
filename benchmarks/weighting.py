"""Does weighting by uncertainty help Algorithm 1? python -m benchmarks.weighting --out FILE.json.

On MDPs whose noise is very uneven, and on two whose noise is not: for the weighted and the unweighted
algorithm the best knobs are chosen on some seeds, by the mean over the learning curve of the largest
sub-optimality, then both are run on other seeds. The difference is paired by seed. Once with the common
planner, which judges the data alone, and once with the algorithm's own, where the weights enter the
regression too. What is in the output file already is not run again.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rewardfree.exact import FunctionClass, GfaRfe, Linear, Mdp, Tabular, compare, load
from rewardfree.exact.compare import interval

EPISODES, AT = 1000, range(100, 1001, 100)
TUNING, TEST = range(100, 110), range(20)
MDPS: dict[str, FunctionClass] = {
    "uneven": Tabular(),
    "uneven-linear": Linear(),
    "riverswim-8": Tabular(),
    "random-linear": Linear(),
}
MEASURES = {"common planner": "max_suboptimality", "own planner": "own_max_suboptimality"}


def knobs(function_class: FunctionClass, weighted: bool) -> dict[str, GfaRfe]:
    """The grid; the unweighted algorithm has no log_cover to choose."""
    covers = (0.01, 0.05, 0.2, 1.0) if weighted else (0.0,)
    return {
        f"scale {scale:g}, lam {lam:g}, log_cover {cover:g}": GfaRfe(
            function_class, scale=scale, lam=lam, log_cover=cover
        )
        for scale, lam, cover in itertools.product((0.01, 0.03, 0.1, 0.3), (1e-4, 1e-3), covers)
        if lam <= (2 * scale) ** 2
    }


def curves(mdp: Mdp, algorithms: Mapping[str, GfaRfe], seeds: range) -> dict[str, dict[str, np.ndarray]]:
    """For each algorithm and measure, each seed's mean over the curve, at 100, 200, ... episodes."""
    found = compare(mdp, algorithms, EPISODES, seeds, AT).algorithms
    return {
        name: {title: np.mean(getattr(found[name], field), axis=0) for title, field in MEASURES.items()}
        for name in algorithms
    }


def study(name: str, function_class: FunctionClass) -> dict[str, Any]:
    """Choose on the tuning seeds, compare on the test seeds."""
    mdp = load(name)
    chosen: dict[str, dict[str, str]] = {title: {} for title in MEASURES}
    grids = {kind: knobs(function_class, kind == "weighted") for kind in ("weighted", "unweighted")}
    for kind, grid in grids.items():
        tuned = curves(mdp, grid, TUNING)
        for title in MEASURES:
            chosen[title][kind] = min(tuned, key=lambda key: float(tuned[key][title].mean()))
    result: dict[str, Any] = {}
    for title in MEASURES:
        picked = {kind: grids[kind][chosen[title][kind]] for kind in grids}
        tested = {kind: values[title] for kind, values in curves(mdp, picked, TEST).items()}
        result[title] = {
            "knobs": chosen[title],
            **{kind: interval(values) for kind, values in tested.items()},
            "unweighted minus weighted": interval(tested["unweighted"] - tested["weighted"]),
        }
    return result


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="JSON file with the results so far")
    args = parser.parse_args()
    found: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {}
    for name, function_class in MDPS.items():
        if name not in found:
            found[name] = study(name, function_class)
            args.out.write_text(json.dumps(found, indent=2) + "\n")
        for title, row in found[name].items():
            cells = (f"{kind} {row[kind][0]:.4f}" for kind in ("weighted", "unweighted"))
            mean, low, high = row["unweighted minus weighted"]
            print(f"{name:14} {title:15} {', '.join(cells)}, gain {mean:+.4f} [{low:+.4f}, {high:+.4f}]")


if __name__ == "__main__":
    main()
