"""Cells of the maze that each explorer visits: python -m benchmarks.cells.

All explorers get the same frames, widths and settings of the shared actor-critic. The raw observation of the
maze is tiny, so they see it normalised, with Adam at 1e-3, unless --defaults asks for the published settings.
A row that is in the output file already is not run again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import rewardfree as rf
from rewardfree import registry
from rewardfree.explorers._explorer import ActorCriticExplorer

DOMAIN = "point_mass_maze"


def cells(name: str, seed: int, frames: int, defaults: bool) -> int:
    """Cells that one run visits."""
    explorer = rf.resize(registry.load("explorer", name)(), "tiny")
    if isinstance(explorer, ActorCriticExplorer) and not defaults:
        explorer = replace(explorer, normalise=True, learning_rate=1e-3, chunk=50)
    with tempfile.TemporaryDirectory() as folder:
        data = rf.explore(DOMAIN, explorer, frames=frames, seed=seed, out=Path(folder) / "run")
        found: int = rf.inspect(data)["coverage"]["cells"]
        return found


def main() -> None:
    """Run what is missing, two runs at a time, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="JSON file with the results so far")
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--defaults", action="store_true", help="the published settings")
    args = parser.parse_args()
    found: dict[str, dict[str, Any]] = json.loads(args.out.read_text()) if args.out.exists() else {}
    jobs = [(name, seed) for seed in range(args.seeds) for name in registry.names("explorer")]
    jobs = [(name, seed) for name, seed in jobs if str(seed) not in found.get(name, {})]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        futures = {job: pool.submit(cells, *job, args.frames, args.defaults) for job in jobs}
        for (name, seed), future in futures.items():
            found.setdefault(name, {})[str(seed)] = future.result()
            args.out.write_text(json.dumps(found, indent=2) + "\n")
    for name, row in sorted(found.items(), key=lambda item: -statistics.mean(item[1].values())):
        print(f"{name:14} {statistics.mean(row.values()):6.0f}   {' '.join(map(str, row.values()))}")


if __name__ == "__main__":
    main()
