"""The grid on a real Ray cluster of two nodes, one of which is killed half way."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewardfree.data import files

HERE = Path(__file__).parent


@pytest.fixture
def cluster() -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, HERE / "ray_cluster.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    yield process, address
    process.stdin.close()
    process.wait(timeout=120)
    process.stdout.close()


def test_a_node_dies_and_the_grid_ends_the_same(
    cluster: tuple[subprocess.Popen[str], str], tmp_path: Path
) -> None:
    nodes, address = cluster
    assert nodes.stdin is not None
    assert nodes.stdout is not None
    out = tmp_path / "grid"
    command = [sys.executable, "-m", "rewardfree", "bench", "table2", "--size", "tiny", "--seeds", "1"]
    command += [
        "--frames",
        "8000",
        "--updates",
        "1000",
        "--explorers",
        "random,rnd",
        "--planners",
        "ddpg-twin",
    ]
    command += ["--domains", "point_mass_maze", "--tasks", "reach_top_left,reach_top_right", "--json"]
    grid = subprocess.Popen(
        [*command, "--out", str(out), "--ray", address], stdout=subprocess.PIPE, text=True
    )
    while len(list((out / "cells").glob("*.json"))) < 2:
        assert grid.poll() is None
        time.sleep(0.05)
    nodes.stdin.write("kill one\n")
    nodes.stdin.flush()
    assert nodes.stdout.readline() == "killed\n"
    found, _ = grid.communicate(timeout=500)
    assert json.loads(found) == {"out": str(out), "cells": 6, "done": 6, "failed": {}}
    alone = tmp_path / "alone"
    subprocess.run([*command, "--out", str(alone)], check=True, capture_output=True)
    for path in (alone / "cells").glob("*.json"):  # the same cells, with the same returns
        ours, theirs = files.read_json(out / "cells" / path.name), files.read_json(path)
        assert ours["config"] == theirs["config"]
        assert ours["result"].get("returns") == theirs["result"].get("returns")


def test_no_cluster_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rewardfree", "bench", "table2", "--out", str(tmp_path)]
    done = subprocess.run([*command, "--ray", "127.0.0.1:1"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no Ray cluster at '127.0.0.1:1': start one with `ray start --head`" in done.stderr
    assert "Traceback" not in done.stderr
