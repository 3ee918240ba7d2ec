"""Labels per second: python -m benchmarks.labels. One core, walker.

An expression over stored quantities, and one whose quantity the simulator recomputes from stored states.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import rewardfree as rf
from rewardfree.data.dataset import DatasetWriter
from rewardfree.data.derived import simulator

EXPRESSIONS = ("upright * clip(-vx, 0, 1)", "where(vx > 1, 1, 0) - 0.1 * norm(action)", "flip")
RECOMPUTED = ("left_foot_z > 0.1", "max(left_foot_z, right_foot_z) - torso_vx")


def collect(folder: Path, frames: int) -> rf.Dataset:
    """A data set of so many frames: ten random episodes, again and again."""
    small = rf.explore("walker", rf.Random(), frames=10_000, seed=0, out=folder / "small")
    writer = DatasetWriter(folder / "large" / "data", small.spec)
    episodes = list(small.each_episode())
    for number in range(frames // 1000):
        writer.append(episodes[number % len(episodes)])
    writer.flush()
    return rf.Dataset.open(folder / "large")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=500_000)
    frames = parser.parse_args().frames
    with tempfile.TemporaryDirectory() as folder:
        data = collect(Path(folder), frames)
        rf.label(data, "vx")  # pages of the files are in memory from here on
        for text in EXPRESSIONS:
            times = []
            for _ in range(3):
                for path in (data.path / "labels").glob("*"):
                    path.unlink()
                started = time.perf_counter()
                rf.label(data, text)
                times.append(time.perf_counter() - started)
            print(f"{text:45} {frames / np.median(times) / 1e6:7.1f} million labels/s, written and all")
            started = time.perf_counter()
            rf.label(data, text)
            print(f"{'  asked again':45} {1e3 * (time.perf_counter() - started):7.1f} ms")
        world, states = simulator("walker"), 50_000
        qpos, qvel = (data.array(name)[:states] for name in ("qpos", "qvel"))
        for text in RECOMPUTED:
            names = [name for name in world.derived if name in text]
            started = time.process_time()  # of this core, whatever else the machine does
            world.recompute(names, qpos, qvel)
            rate = states / (time.process_time() - started)
            print(f"{text:45} {rate:7,.0f} states recomputed/s and core")


if __name__ == "__main__":
    main()
