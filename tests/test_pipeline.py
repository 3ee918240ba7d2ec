"""explore, plan, evaluate: deterministic, complete, and nothing lost."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import SMALL

import rewardfree as rf
from rewardfree.data.transitions import STATE_ARRAYS, STEP_ARRAYS

PLANNER = rf.DdpgTwin(hidden=8, batch=16)


def test_the_same_seed_gives_the_same_data_bit_for_bit(small_run: rf.Dataset, tmp_path: Path) -> None:
    again = rf.explore("point_mass_maze", SMALL, frames=2500, seed=3, out=tmp_path / "again")
    other = rf.explore("point_mass_maze", SMALL, frames=2500, seed=4, out=tmp_path / "other")
    for name in (*STATE_ARRAYS, *STEP_ARRAYS):
        np.testing.assert_array_equal(again.array(name), small_run.array(name))
    assert not np.array_equal(other.array("action"), small_run.array("action"))


def test_a_run_writes_down_what_made_it(small_run: rf.Dataset) -> None:
    record = json.loads((small_run.path / "run.json").read_text())
    assert record["status"] == "complete"
    assert (record["frames"], record["episodes"], record["seed"]) == (2500, 3, 3)
    assert record["updates"] == 15 * 100 // 2  # from frame 1000 on, every two frames
    assert record["explorer"]["name"] == "gfa-rfe"
    assert record["explorer"]["oracle"] == {
        "name": "elliptical",
        "features": 16,
        "length_scale": 2.0,
        "ridge": 1.0,
        "action_scale": 0.0,
        "sigma_epistemic": 0.0,
        "sigma_aleatoric": 0.0,
        "sigma_floor": 1.0,
    }
    assert {"rewardfree", "mujoco", "dm_control", "jax"} <= set(record["versions"])
    metrics = [json.loads(line) for line in (small_run.path / "metrics.jsonl").read_text().splitlines()]
    assert [line["frames"] for line in metrics] == [1000, 2000, 2500]
    assert "bonus" not in metrics[0]
    assert metrics[1]["bonus"] > 0


def test_the_budget_cuts_the_last_episode(small_run: rf.Dataset) -> None:
    assert small_run.lengths.tolist() == [1000, 1000, 500]
    assert not small_run.array("terminated").any()


def test_uniform_actions_come_first_and_learning_changes_them(small_run: rf.Dataset, tmp_path: Path) -> None:
    random = rf.explore("point_mass_maze", rf.Random(), frames=2500, seed=3, out=tmp_path / "random")
    ours, theirs = small_run.array("action"), random.array("action")
    np.testing.assert_array_equal(ours[:1000], theirs[:1000])
    assert not np.array_equal(ours[1000:], theirs[1000:])
    assert np.abs(theirs.mean()) < 0.05
    assert theirs.min() >= -1
    assert theirs.max() <= 1


def test_the_same_plan_twice_and_from_disk(small_run: rf.Dataset, tmp_path: Path) -> None:
    first = rf.plan(small_run, "reach_top_left", PLANNER, updates=30, seed=1, out=tmp_path / "plan")
    second = rf.plan(small_run, "reach_top_left", PLANNER, updates=30, seed=1)
    loaded = rf.Plan.load(tmp_path / "plan")
    other = rf.plan(small_run, "reach_top_left", PLANNER, updates=30, seed=2)
    observations = small_run.array("observation")[:200]
    actions = first.policy(observations)
    np.testing.assert_array_equal(second.policy(observations), actions)
    np.testing.assert_array_equal(loaded.policy(observations), actions)
    assert not np.array_equal(other.policy(observations), actions)
    assert np.abs(actions).max() <= 1
    one, two = rf.evaluate(first, episodes=2), rf.evaluate(loaded, episodes=2)
    assert one == two
    assert json.loads((tmp_path / "plan" / "evaluation.json").read_text())["returns"] == list(two.returns)


def test_planning_improves_the_return_where_the_data_allows(tmp_path: Path) -> None:
    """Driving left is easy to learn, and easy to tell from not having learned it.

    Uniform data: a learned explorer may sit at a wall, where no action changes the speed.
    """
    data = rf.explore("point_mass_maze", rf.Random(), frames=3000, out=tmp_path / "run")

    def leftness(t: rf.Transitions) -> np.ndarray:
        return -t["vx"]

    planner = rf.DdpgTwin(hidden=16, batch=64, learning_rate=3e-3, gamma=0.9)
    left = rf.plan(data, leftness, planner, updates=1500)
    right = rf.plan(data, lambda t: t["vx"], planner, updates=1500)
    observations = data.array("observation")
    assert left.policy(observations)[:, 0].mean() < -0.8
    assert right.policy(observations)[:, 0].mean() > 0.8


@pytest.mark.parametrize("planner", [replace(PLANNER, normalise=False), rf.Ddpg(hidden=8, batch=16)])
def test_planners_report_their_progress(small_run: rf.Dataset, planner: rf.DdpgTwin | rf.Ddpg) -> None:
    seen = []
    planner.fit(
        rf.label(small_run, "reach_top_left"),
        300,
        0,
        lambda done, metrics, policy: seen.append((done, metrics)),
    )
    assert [done for done, _ in seen] == [250, 300]
    assert np.isfinite(seen[-1][1]["critic_loss"])


def test_a_folder_that_is_in_use_is_left_alone(small_run: rf.Dataset, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in small_run.path.rglob("*")}
    with pytest.raises(rf.UserError, match="already holds a run"):
        rf.explore("point_mass_maze", SMALL, frames=10, out=small_run.path)
    assert {path: path.stat().st_mtime_ns for path in small_run.path.rglob("*")} == before
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(rf.UserError, match="not an empty folder"):
        rf.explore("point_mass_maze", SMALL, frames=10, out=tmp_path)


def test_code_named_by_a_plan_is_not_run_unasked(small_run: rf.Dataset, tmp_path: Path) -> None:
    trap = tmp_path / "trap.py"
    sprung = tmp_path / "sprung"
    trap.write_text(f"import pathlib\npathlib.Path({str(sprung)!r}).touch()\ndef f(t): return t['x']\n")
    rf.plan(small_run, "reach_top_left", PLANNER, updates=1, out=tmp_path / "plan")
    record = tmp_path / "plan" / "plan.json"
    config = json.loads(record.read_text())
    record.write_text(json.dumps(config | {"reward": {"name": f"{trap}:f", "kind": "file"}}))
    with pytest.raises(rf.UserError, match="not run unasked"):
        rf.Plan.load(tmp_path / "plan")
    assert not sprung.exists()
    assert rf.Plan.load(tmp_path / "plan", reward=f"{trap}:f").reward.kind == "file"


def test_a_write_that_fails_loses_nothing_written_before(tmp_path: Path) -> None:
    """No file may grow past 300 kB: four shards of 1000 frames fit, then one of 4000 does not."""
    script = (
        "import resource, sys\n"
        "from rewardfree.data import dataset\n"
        "from rewardfree.data.dataset import DatasetWriter\n"
        "from rewardfree.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "dataset.SHARD_FRAMES = 1000\n"
        "flush = DatasetWriter.flush\n"
        "def fill(writer):\n"
        "    flush(writer)\n"
        "    if len(writer._manifest['shards']) == 4:\n"
        "        dataset.SHARD_FRAMES = 4000\n"
        "DatasetWriter.flush = fill\n"
        "argv = ['explore', 'point_mass_maze', '--explorer', 'random', '--frames', '9000', '--out']\n"
        "sys.exit(main([*argv, sys.argv[1]]))\n"
    )
    run = tmp_path / "run"
    full = subprocess.run(
        [sys.executable, "-c", script, str(run)], capture_output=True, text=True, check=False
    )
    assert full.returncode == 2
    assert "Traceback" not in full.stderr
    assert "cannot write" in full.stderr.splitlines()[-1]
    assert "is intact" in full.stderr.splitlines()[-1]
    kept = rf.Dataset.open(run)
    assert kept.frames == 4000
    assert not list((run / "data").glob(".writing-*"))
    random = rf.explore("point_mass_maze", rf.Random(), frames=4000, out=tmp_path / "whole")
    np.testing.assert_array_equal(kept.array("qpos"), random.array("qpos"))
