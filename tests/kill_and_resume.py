"""A driver for test_durable: explores in child processes that it kills at random moments, until one finishes.

python kill_and_resume.py FOLDER KILLS SEED: prints how many kills there were, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(sys.argv[1]) / "programs")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"

import numpy as np

import rewardfree as rf
from rewardfree.data import dataset

warnings.simplefilter("ignore")  # of fork: no JAX program has run in this process
dataset.SHARD_FRAMES = 2000
EXPLORER = rf.GfaRfe(oracle=rf.Elliptical(features=16), hidden=8, batch=16, seed_frames=1000, chunk=100)
FRAMES = 12_500


def explore(out: Path, resume: bool) -> None:
    rf.explore("point_mass_maze", EXPLORER, frames=FRAMES, seed=1, out=out, resume=resume)


def attempt(out: Path, after: float | None) -> bool:
    """One process; killed after so many seconds of its work. Whether it finished."""
    child = os.fork()
    if child == 0:
        try:
            explore(out, resume=out.exists())
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit(1)
    return os.WIFEXITED(status)


def main(folder: Path, kills: int, seed: int) -> None:
    attempt(folder / "whole", None)
    started = time.perf_counter()
    attempt(folder / "again", None)  # its programs are compiled by now
    usual = time.perf_counter() - started
    rng, killed, number = np.random.default_rng(seed), 0, 0
    while killed < kills:
        if attempt(folder / f"killed-{number}", rng.uniform(0.2, 0.9) * usual):
            number += 1
        else:
            killed += 1
    attempt(folder / f"killed-{number}", None)
    print(json.dumps({"killed": killed, "runs": number + 1}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
