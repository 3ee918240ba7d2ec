"""Nothing is lost: killed, interrupted, damaged and doubled runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SMALL

import rewardfree as rf
from rewardfree.data import dataset, files
from rewardfree.durable import Checkpoint, Checkpoints, StoppedError, locked
from rewardfree.interfaces import Explorer, Metrics

HERE = Path(__file__).parent


def content(run: Path) -> dict[str, Any]:
    """All that two runs must have in common: data, learner, and metrics but for the clock."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {
        "data": {path.name: path.read_bytes() for path in (run / "data").glob("*")},
        "checkpoints": {path.name for path in (run / "checkpoints").glob("*")},  # names hold checksums
        "metrics": [{name: value for name, value in line.items() if name != "seconds"} for line in lines],
    }


def test_a_run_that_is_killed_twenty_times_is_the_run_that_is_not(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "kill_and_resume.py", tmp_path, "20", "0"],
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["killed"] >= 20
    whole = content(tmp_path / "whole")
    assert len(whole["metrics"]) == 13
    for number in range(found["runs"]):
        assert content(tmp_path / f"killed-{number}") == whole


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "SHARD_FRAMES", 2000)


def explore(out: Path, resume: bool = False, frames: int = 6500) -> rf.Dataset:
    return rf.explore("point_mass_maze", SMALL, frames=frames, seed=2, out=out, resume=resume)


@pytest.mark.usefixtures("small_shards")
def test_ctrl_c_finishes_the_episode_and_the_rest_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explore(tmp_path / "whole")
    record = dataset.DatasetWriter.append
    seen = 0

    def interrupting(writer: dataset.DatasetWriter, episode: dict[str, np.ndarray]) -> bool:
        nonlocal seen
        seen += 1
        if seen == 3:  # in the middle of a shard
            os.kill(os.getpid(), signal.SIGINT)
        return record(writer, episode)

    monkeypatch.setattr(dataset.DatasetWriter, "append", interrupting)
    with pytest.raises(StoppedError, match="stopped after 3000 of 6500 frames"):
        explore(tmp_path / "stopped")
    assert rf.Dataset.open(tmp_path / "stopped").frames == 3000  # what is complete can be read
    assert files.read_json(tmp_path / "stopped" / "run.json")["status"] == "stopped"
    explore(tmp_path / "stopped", resume=True)
    ours, theirs = content(tmp_path / "stopped"), content(tmp_path / "whole")
    assert ours["data"] == theirs["data"]
    assert ours["metrics"] == theirs["metrics"]
    assert explore(tmp_path / "stopped", resume=True).frames == 6500  # complete: nothing left to do


@pytest.mark.usefixtures("small_shards")
def test_a_damaged_checkpoint_costs_time_and_nothing_else(tmp_path: Path) -> None:
    explore(tmp_path / "whole")
    explore(tmp_path / "damaged")
    files.write_json(
        tmp_path / "damaged" / "run.json",
        files.read_json(tmp_path / "damaged" / "run.json") | {"status": "running"},
    )
    newest = sorted((tmp_path / "damaged" / "checkpoints").glob("*"))[-1]
    newest.write_bytes(newest.read_bytes()[:-1] + b"x")
    explore(tmp_path / "damaged", resume=True)
    ours, theirs = content(tmp_path / "damaged"), content(tmp_path / "whole")
    assert ours["data"] == theirs["data"]
    assert ours["metrics"] == theirs["metrics"]


def test_only_the_same_run_is_resumed(small_run: rf.Dataset, tmp_path: Path) -> None:
    with pytest.raises(rf.UserError, match="was made with another budget"):
        rf.explore("point_mass_maze", SMALL, frames=9999, seed=3, out=small_run.path, resume=True)
    with pytest.raises(rf.UserError, match="was made with another seed"):
        rf.explore("point_mass_maze", SMALL, frames=2500, seed=4, out=small_run.path, resume=True)
    with pytest.raises(rf.UserError, match="there is no run in"):
        explore(tmp_path / "nothing", resume=True)
    with pytest.raises(rf.UserError, match="already holds a run: resume it"):
        explore(small_run.path)


def test_a_plan_that_is_stopped_and_resumed_is_the_same_plan(
    small_run: rf.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner = rf.DdpgTwin(hidden=8, batch=16, average=0.1)

    def plan(out: Path, resume: bool = False) -> rf.Plan:
        return rf.plan(small_run, "reach_top_left", planner, updates=6000, out=out, resume=resume)

    plan(tmp_path / "whole")
    fit = type(planner).fit

    def stopping(self: Any, data: Any, updates: int, seed: int, report: Any, *rest: Any) -> Any:
        def until(done: int, metrics: Metrics, policy: Any) -> None:
            report(done, metrics, policy)
            if done == 4000:
                os.kill(os.getpid(), signal.SIGINT)

        return fit(self, data, updates, seed, until, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(type(planner), "fit", stopping)
        with pytest.raises(StoppedError, match="it can be resumed"):
            plan(tmp_path / "stopped")
    plan(tmp_path / "stopped", resume=True)
    for name in ("policy.safetensors", "critics.safetensors"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert len((tmp_path / "stopped" / "metrics.jsonl").read_text().splitlines()) == 24


def test_checkpoints_are_kept_by_their_rule(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, every=100)
    assert kept.last() is None
    for done in range(20, 301, 20):
        kept.write(Checkpoint(done, {"x": np.arange(done)}, {"note": done}))
    numbers = sorted(int(path.name[:10]) for path in tmp_path.iterdir())
    assert numbers == [20, 100, 200, 280, 300]  # the first in every hundred, and the two newest
    last = kept.last()
    assert last is not None
    assert (last.done, last.record) == (300, {"note": 300})
    np.testing.assert_array_equal(last.arrays["x"], np.arange(300))


LOCK = """
import sys, time
from pathlib import Path
from rewardfree.durable import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", LOCK, tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(rf.UserError, match=f"is in use by process {other.pid}"), locked(tmp_path):
            pass
    finally:
        other.kill()
        other.wait()
        other.stdout.close()  # type: ignore[union-attr]
    assert (tmp_path / "lock").exists()  # it died with the lock in its hand
    with locked(tmp_path):  # which counts for nothing now
        assert (tmp_path / "lock").read_text().strip() == str(os.getpid())
    assert not (tmp_path / "lock").exists()


def test_two_explorations_do_not_share_a_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rewardfree", "explore", "point_mass_maze", "--explorer", "random"]
    command += ["--frames", "400000", "--out", str(tmp_path / "run")]
    first = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        while not (tmp_path / "run" / "metrics.jsonl").exists():
            assert first.poll() is None
            time.sleep(0.05)
        second = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    finally:
        first.kill()
        first.wait()
    assert second.returncode == 2
    assert f"is in use by process {first.pid}; wait for it" in second.stderr
    assert "Traceback" not in second.stderr


KILLED_PLAN = """
import sys
import rewardfree as rf
from rewardfree.planners import _ddpg
_ddpg.CHUNK, _ddpg.CHECKPOINT_EVERY = 50, 100
planner = rf.DdpgTwin(hidden=8, batch=16)
rf.plan(sys.argv[1], "reach_top_left", planner, updates=4000, out=sys.argv[2], resume=len(sys.argv) > 3)
"""


def test_a_plan_that_is_killed_is_the_plan_that_is_not(small_run: rf.Dataset, tmp_path: Path) -> None:
    def start(name: str, *resume: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {
            "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "programs"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        command = [sys.executable, "-c", KILLED_PLAN, str(small_run.path), str(tmp_path / name), *resume]
        return subprocess.Popen(command, env=environment)

    assert start("whole").wait() == 0
    rng, log = np.random.default_rng(0), tmp_path / "killed" / "metrics.jsonl"
    resume: tuple[str, ...] = ()
    for kill in range(4):
        job = start("killed", *resume)
        lines = 15 * (kill + 1)
        while not log.exists() or len(log.read_bytes().splitlines()) < lines:
            assert job.poll() is None
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.05))
        job.kill()
        job.wait()
        resume = ("--resume",)
    assert start("killed", *resume).wait() == 0
    for name in ("policy.safetensors", "critics.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert len(log.read_text().splitlines()) == 80


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 800 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=800k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.usefixtures("small_shards")
def test_a_full_disk_loses_nothing_and_the_run_goes_on_with_more_room(disk: Path, tmp_path: Path) -> None:
    with pytest.raises(rf.UserError, match=r"cannot write .*: No space left on device; .* intact, make room"):
        explore(disk / "run", frames=16_000)
    kept = rf.Dataset.open(disk / "run").frames
    assert 2000 <= kept < 16_000
    subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
    explore(disk / "run", resume=True, frames=16_000)
    explore(tmp_path / "whole", frames=16_000)
    ours, theirs = content(disk / "run"), content(tmp_path / "whole")
    assert ours["data"] == theirs["data"]
    assert ours["metrics"] == theirs["metrics"]


def test_a_read_only_disk_is_read_and_not_written(disk: Path, small_run: rf.Dataset) -> None:
    shutil.copytree(small_run.path / "data", disk / "run" / "data")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(rf.UserError, match=r"cannot write .*: Read-only file system"):
        explore(disk / "new")
    assert rf.label(disk / "run", "vx").reward.shape == (small_run.frames,)
    planner = rf.DdpgTwin(hidden=8, batch=16)
    with pytest.raises(rf.UserError, match=r"cannot write .*: Read-only file system"):
        rf.plan(disk / "run", "vx", planner, updates=10, out=disk / "run" / "plans" / "vx")
    assert rf.plan(disk / "run", "vx", planner, updates=10).policy is not None


def plugged(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> Explorer:
    """A small explorer of a plug-in file."""
    (folder / "explorers").mkdir()
    (folder / "explorers" / f"{name}.py").write_text(code)
    monkeypatch.setenv("REWARDFREE_PLUGINS", str(folder))
    found: Explorer = rf.registry.load("explorer", name)(hidden=8, batch=16, seed_frames=1000, chunk=100)
    return found


DIVERGING = '''
from dataclasses import dataclass
import jax.numpy as jnp
from rewardfree import ActorCriticExplorer

@dataclass(frozen=True)
class Diverging(ActorCriticExplorer):
    """Pays nothing that is a number."""

    def intrinsic_reward(self, model, batch, values):
        return model, jnp.full_like(batch.discount, jnp.nan), {}
'''


def test_a_learner_that_diverges_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = plugged(tmp_path, monkeypatch, "diverging", DIVERGING)
    with pytest.raises(
        rf.UserError, match=r"diverged at frame 1\d+: its action is not a number; there is no checkpoint"
    ):
        rf.explore("point_mass_maze", explorer, frames=3000, seed=0, out=tmp_path / "run")
    assert rf.Dataset.open(tmp_path / "run").frames == 1000  # the noise was not stored


EXPLODING = '''
from dataclasses import dataclass
import jax.numpy as jnp
from rewardfree import ActorCriticExplorer

@dataclass(frozen=True)
class Exploding(ActorCriticExplorer):
    """Pays nothing at first, and then beyond all bounds."""

    def init_model(self, spec, key):
        return jnp.int32(0)

    def intrinsic_reward(self, model, batch, values):
        return model + 1, jnp.where(model > 1700, 1e12, 0.0) + 0 * batch.discount, {}
'''


@pytest.mark.usefixtures("small_shards")
def test_an_exploding_critic_is_named_with_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer = plugged(tmp_path, monkeypatch, "exploding", EXPLODING)
    with pytest.raises(
        rf.UserError, match=r"diverged at frame 5000: \w+ is .*e\+\d+; the last good checkpoint is at 4000"
    ):
        rf.explore("point_mass_maze", explorer, frames=9000, seed=0, out=tmp_path / "run")
    record = files.read_json(tmp_path / "run" / "run.json")
    assert (record["status"], record["frames"]) == ("failed", 4000)
    assert rf.Dataset.open(tmp_path / "run").frames == 4000


def test_a_plan_that_explodes_stops(small_run: rf.Dataset, tmp_path: Path) -> None:
    with pytest.raises(rf.UserError, match=r"diverged at update 250: \w+ is .*; there is no checkpoint"):
        rf.plan(small_run, "1e12 * vx", rf.DdpgTwin(hidden=8, batch=16), updates=500, out=tmp_path / "plan")


def test_ctrl_c_on_the_command_line_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rewardfree", "explore", "point_mass_maze", "--explorer", "random"]
    command += ["--frames", "400000", "--out", str(tmp_path / "run")]
    job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while (
        not (tmp_path / "run" / "metrics.jsonl").exists()
        or not (tmp_path / "run" / "metrics.jsonl").stat().st_size
    ):
        assert job.poll() is None
        time.sleep(0.05)
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=60)
    assert job.returncode == 130
    assert re.search(r"can be resumed: rewardfree explore point_mass_maze .* --resume", err)
    assert "Traceback" not in err
    assert rf.Dataset.open(tmp_path / "run").frames > 0
