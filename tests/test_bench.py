"""The grid: cells by content, nothing computed twice, nothing lost, failures reported."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rewardfree as rf
from rewardfree.bench.estimate import seconds_left
from rewardfree.bench.grid import Grid
from rewardfree.bench.jobs import ExploreJob, PlanJob, from_record
from rewardfree.bench.live import duration, live_table
from rewardfree.bench.run import Progress
from rewardfree.cli import main
from rewardfree.data import files

SMALL = ("--size", "tiny", "--frames", "2000", "--updates", "500", "--seeds", "1")
MAZE = ("--domains", "point_mass_maze", "--tasks", "reach_top_left", "--planners", "ddpg-twin")


def command(out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "rewardfree", "bench", "table2", *SMALL, *MAZE, "--out", str(out), *more]


def run(out: Path, *more: str) -> tuple[int, dict[str, Any], str]:
    done = subprocess.run([*command(out, *more), "--json"], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def results(out: Path) -> dict[str, Any]:
    """Returns and curves of every plan, by key."""
    cells = {path.stem: files.read_json(path) for path in (out / "cells").glob("*.json")}
    return {key: cell["result"]["returns"] for key, cell in cells.items() if cell["kind"] == "plan"}


def test_the_paper_grid_is_the_papers() -> None:
    jobs = Grid("paper").jobs()
    explored = [job for job in jobs if isinstance(job, ExploreJob)]
    planned = [job for job in jobs if isinstance(job, PlanJob)]
    assert len(explored) == 11 * 2 * 8
    assert {job.frames for job in explored} == {1_000_000}
    assert {job.seed for job in explored} == set(range(8))
    assert {job.explorer["hidden"] for job in explored if job.label != "random"} == {1024}
    assert {job.explorer["batch"] for job in explored if job.label != "random"} == {1024}
    assert {(job.needs.domain, job.task) for job in planned} == {
        *(("walker", task) for task in ("stand", "walk", "run", "flip")),
        *(("quadruped", task) for task in ("stand", "walk", "run", "jump")),
    }
    assert {job.updates for job in planned} == {50_000}
    shared = [job for job in planned if job.planner["name"] == "ddpg-twin"]
    confound = [job for job in planned if job.planner["name"] == "ddpg-ensemble"]
    assert len(shared) == 11 * 8 * 8
    assert {job.planner["learning_rate"] for job in shared} == {1e-4}
    assert {job.planner["behaviour"] for job in shared} == {0.0}
    assert {job.label for job in confound} == {"gfa-rfe", "gfa-rfe:paper", "gfa-rfe:released"}
    assert len({job.key for job in jobs}) == len(jobs)


def test_the_ablation_plans_from_prefixes_of_the_same_data() -> None:
    grid = Grid(
        "compact", explorers=("rnd", "icm"), domains=("walker",), tasks=("run",), seeds=1, ablation=True
    )
    planned = [job for job in grid.jobs() if isinstance(job, PlanJob)]
    assert [(job.label, job.episodes) for job in planned if job.planner["name"] == "ddpg-twin"] == [
        ("rnd", None),
        ("rnd", 25),
        ("rnd", 50),
        ("rnd", 75),
        ("icm", None),
    ]
    assert len({job.needs.key for job in planned if job.label == "rnd"}) == 1


def test_a_cell_is_known_by_what_decides_its_result() -> None:
    grid = Grid("tiny", explorers=("rnd",), domains=("walker",), seeds=1)
    explore, plan = grid.jobs()[:2]
    assert isinstance(explore, ExploreJob)
    assert isinstance(plan, PlanJob)
    for job in (explore, plan):
        record = json.loads(json.dumps({"kind": job.kind, "label": job.label, "config": job.config}))
        assert from_record(record).key == job.key
    assert replace(explore, label="another name").key == explore.key
    for change in ({"seed": 1}, {"frames": 7}, {"domain": "quadruped"}, {"explorer": {"name": "random"}}):
        other = replace(explore, **change)
        assert other.key != explore.key
        assert replace(plan, needs=other).key != plan.key
    assert replace(plan, episodes=3).key != plan.key


def test_a_prefix_is_the_data_as_it_was(small_run: rf.Dataset) -> None:
    for episodes in (1, 2, small_run.episodes):
        first = small_run.first(episodes)
        assert first.episodes == episodes
        states = first.frames + episodes
        assert (first.array("qpos") == small_run.array("qpos")[:states]).all()
        assert (first.values("vx") == small_run.values("vx")[: first.frames]).all()
        assert first.digest != small_run.digest  # labels of the one are not the other's
    with pytest.raises(rf.UserError, match="there is no prefix of 99"):
        small_run.first(99)


FAILING = '''
from dataclasses import dataclass
from rewardfree.explorers.random import Random as Uniform

@dataclass(frozen=True)
class Failing(Uniform):
    """Cannot begin."""

    def init(self, spec, key):
        raise RuntimeError("no idea\\nwhat to do")
'''


def test_a_failed_cell_is_reported_and_the_others_are_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "explorers").mkdir()
    (tmp_path / "explorers" / "failing.py").write_text(FAILING)
    monkeypatch.setenv("REWARDFREE_PLUGINS", str(tmp_path))
    out = tmp_path / "grid"
    code, found, err = run(out, "--explorers", "failing,random")
    assert code == 2
    assert (found["cells"], found["done"], len(found["failed"])) == (4, 2, 2)
    assert "explore point_mass_maze with failing, seed 0 failed: RuntimeError: no idea what to do" in err
    assert "plan reach_top_left from failing, seed 0 failed: the exploration it needs failed" in err
    assert "2 cells failed; the same command tries them again" in err
    assert "Traceback" not in err
    times = {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    code, found, _ = run(out, "--explorers", "random")
    assert (code, found["done"]) == (0, 2)
    assert {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()} == times
    cell = next(files.read_json(path) for path in times if "plan" in path.read_text())
    assert len(cell["result"]["returns"]) == 10
    assert [point[0] for point in cell["result"]["curve"]] == [250, 500]
    assert cell["result"]["curve"][-1][1] == cell["result"]["mean"]


def test_a_grid_that_is_killed_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    explorers = ("--explorers", "random", "--frames", "30000")
    assert run(tmp_path / "whole", *explorers)[0] == 0
    job = subprocess.Popen(command(tmp_path / "killed", *explorers), stderr=subprocess.DEVNULL)
    explored = tmp_path / "killed" / "explore"
    while not list(explored.glob("*/checkpoints/*")):
        assert job.poll() is None
        time.sleep(0.05)
    job.kill()
    job.wait()
    (folder,) = explored.iterdir()
    owner = int((folder / "lock").read_text()) if (folder / "lock").exists() else None
    deadline = time.monotonic() + 60
    while owner is not None and _alive(owner):  # its worker ends by itself
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert run(tmp_path / "killed", *explorers)[0] == 0
    assert results(tmp_path / "killed") == results(tmp_path / "whole")


def test_a_grid_goes_on_from_its_results_file_alone(tmp_path: Path) -> None:
    """Nothing in the file is computed again, and deleted data is explored again when a new plan needs it."""
    first, moved = tmp_path / "first", tmp_path / "moved"
    assert run(first, "--explorers", "random")[0] == 0
    moved.mkdir()
    shutil.copy(first / "results.json", moved)
    code, found, _ = run(moved, "--explorers", "random")
    assert (code, found["done"]) == (0, 2)
    assert results(moved) == results(first)
    assert not (moved / "explore").exists()
    more = ("--explorers", "random", "--tasks", "reach_top_left,reach_top_right")
    for out in (moved, first):
        code, found, _ = run(out, *more)
        assert (code, found["done"]) == (0, 3)
    assert results(moved) == results(first)
    assert len(list((moved / "plan").iterdir())) == 1
    (moved / "results.json").write_text('{"command": "", "cells": [{"kind": "plan"}]}')
    code, _, err = run(moved, "--explorers", "random")
    assert code == 2
    assert "results.json" in err
    assert "Traceback" not in err


def _alive(process: int) -> bool:
    status = Path(f"/proc/{process}/status")
    return status.exists() and "zombie" not in status.read_text()


def test_ctrl_c_stops_the_cells_where_they_can_be_resumed(tmp_path: Path) -> None:
    explorers = ("--explorers", "random", "--frames", "400000")
    job = subprocess.Popen(command(tmp_path, *explorers), stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.glob("explore/*/metrics.jsonl")):
        assert job.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)
    job.send_signal(signal.SIGINT)
    _, err = job.communicate()
    assert job.returncode == 130
    said = "stopped; 0 of 2 cells are there, and the same command goes on: rewardfree bench table2 "
    assert said in " ".join(err.split())
    assert "--resume" not in err
    assert "Traceback" not in err
    (folder,) = (tmp_path / "explore").iterdir()
    assert files.read_json(folder / "run.json")["status"] == "stopped"


def test_a_dry_run_estimates_and_computes_nothing(tmp_path: Path) -> None:
    code, found, _ = run(tmp_path / "grid", "--dry-run", "--explorers", "random", "--seeds", "2")
    assert code == 0
    assert (found["cells"], found["done"], len(found["jobs"])) == (4, 0, 4)
    assert found["seconds"] == pytest.approx(sum(job["seconds"] for job in found["jobs"]))
    assert all(job["seconds"] > 0 for job in found["jobs"])
    assert not (tmp_path / "grid").exists()


def test_the_live_table_counts_and_estimates(tmp_path: Path) -> None:
    jobs = Grid("tiny", explorers=("random",), domains=("walker",), seeds=2, tasks=("run",)).jobs()
    first, plan = jobs[0], jobs[1]
    progress = Progress(tmp_path, jobs)
    assert seconds_left(progress, 1) is None  # nothing is known yet
    for job, seconds in ((first, 100.0), (plan, 50.0)):
        files.write_json(job.cell(tmp_path), {"result": {"seconds": seconds}})
    progress = Progress(tmp_path, jobs)
    assert seconds_left(progress, 1) == pytest.approx(150.0)
    progress.running[jobs[2].key] = jobs[2]
    jobs[2].folder(tmp_path).mkdir(parents=True)
    line = json.dumps({"frames": jobs[2].total // 4, "seconds": 25.0})
    (jobs[2].folder(tmp_path) / "metrics.jsonl").write_text(line + '\n{"fra')  # it is being written
    assert seconds_left(progress, 2) == pytest.approx((75.0 + 50.0) / 2)
    caption = live_table(progress, 2).caption
    assert caption == "2 of 4 cells done, 1 running, 0 failed; time left: about 62 s"
    assert duration(3 * 3600 + 120) == "3 h 02 min"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("table3",), "unknown comparison 'table3'; did you mean table2?"),
        (("table2", "--explorers", "rnb"), "unknown explorer 'rnb'; did you mean rnd?"),
        (("table2", "--explorers", "gfa-rfe:papr"), "unknown preset 'papr'; did you mean paper?"),
        (("table2", "--domains", "hopper"), "unknown domain 'hopper'"),
        (("table2", "--tasks", "fly"), "unknown task 'fly'"),
        (("table2", "--seeds", "0"), "seeds must be at least 1, not 0"),
        (("table2", "--frames", "0"), "frames must be at least 1, not 0"),
        (("table2", "--planners", "ddpg-twin,ddpg-twin:paper"), "in a grid in one preset only"),
        (("table2", "--workers", "0"), "workers must be at least 1, not 0"),
    ],
)
def test_mistakes_are_one_line(
    flags: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *flags]) == 2
    assert message in capsys.readouterr().err


def test_a_report_of_nothing_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "none")]) == 2
    assert "run `rewardfree bench table2` first" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 2
    assert "there is no finished cell yet" in capsys.readouterr().err
    (tmp_path / "results.json").write_text('{"command": "", "cells": [{"kind": 3}]}')
    assert main(["report", str(tmp_path / "results.json")]) == 2
    assert "results.json is damaged" in capsys.readouterr().err


def test_two_grids_do_not_share_a_folder(tmp_path: Path) -> None:
    from rewardfree.durable import locked

    with locked(tmp_path):
        code, _, err = run(tmp_path, "--explorers", "random")
    assert code == 2
    assert f"is in use by process {os.getpid()}" in err
