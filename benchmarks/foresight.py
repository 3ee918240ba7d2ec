"""What of a data set foretells the return planned from it? python -m benchmarks.foresight RESULTS.json [...].

The rank correlation, over the explorations of one domain and task, between what costs no planning (cells, the
mean reward of the data, its best stretches of 10, 100 and 1000 frames) and the return of the plan. The files
are those of `rewardfree bench table2`; a grid's explorations and plans must be in the same file.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from benchmarks.screen import grouped


def known_before(result: dict[str, Any], task: str) -> dict[str, float]:
    """What an exploration's cell tells of a task."""
    seen = result["tasks"][task]
    stretches = {f"best {frames} frames": value for frames, value in seen["windows"].items()}
    return {"cells": result["coverage"]["cells"], "mean reward": seen["mean"], **stretches}


def pairs(files: list[Path]) -> dict[str, list[tuple[dict[str, float], float]]]:
    """For each domain and task: what was known of each exploration, and the return planned from it."""
    found = defaultdict(list)
    for file in files:
        for cell, plans in grouped(json.loads(file.read_text(encoding="utf-8"))["cells"]):
            for plan in plans:
                task = plan["config"]["task"]
                known = known_before(cell["result"], task)
                found[f"{cell['config']['domain']} {task}"].append((known, plan["result"]["mean"]))
    return found


def main() -> None:
    """Print a row per task, and their mean."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", nargs="+", type=Path)
    found = pairs(parser.parse_args().results)
    measures = list(next(iter(found.values()))[0][0])
    rows = {
        task: [
            spearmanr([known[name] for known, _ in sets], [planned for _, planned in sets])[0]
            for name in measures
        ]
        for task, sets in found.items()
        if len(sets) > 2
    }
    print(f"{'':18}{'sets':>5}", *(f"{measure:>17}" for measure in measures))
    for task, row in rows.items():
        print(f"{task:18}{len(found[task]):5}", *(f"{value:17.2f}" for value in row))
    print(f"{'mean':18}{'':5}", *(f"{value:17.2f}" for value in np.mean(list(rows.values()), axis=0)))


if __name__ == "__main__":
    main()
