"""The command line as a user meets it: JSON, help, films, and one line for every mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import imageio_ffmpeg
import pytest
from conftest import run, run_json

import rewardfree as rf
from rewardfree import video
from rewardfree.domains.point_mass_maze import PointMassMaze

TINY = ["--hidden", "8", "--batch", "16"]
EXPLORE = [
    "explore",
    "point_mass_maze",
    *TINY,
    "--features",
    "16",
    "--seed-frames",
    "1000",
    "--frames",
    "2000",
]


def test_the_whole_story_from_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    explored = run_json(capsys, *EXPLORE, "--out", tmp_path / "run", "--tensorboard")
    assert (explored["frames"], explored["episodes"], explored["updates"]) == (2000, 2, 500)
    assert explored["run"] == str(tmp_path / "run")
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    planned = run_json(capsys, "plan", tmp_path / "run", "--reward", "reach_top_left", *TINY, "--updates", 20)
    assert planned["plan"] == str(tmp_path / "run" / "plans" / "reach_top_left")
    assert planned["updates"] == 20
    evaluated = run_json(capsys, "evaluate", str(planned["plan"]), "--episodes", 2)
    returns = evaluated["returns"]
    assert isinstance(returns, list)
    assert evaluated["mean"] == pytest.approx(sum(returns) / 2)
    inspected = run_json(capsys, "inspect", tmp_path / "run", "--reward", "reach_top_left")
    assert inspected["frames"] == 2000
    code, text, _ = run(capsys, "inspect", tmp_path / "run")
    assert code == 0
    assert "coverage" in text
    assert "reach_bottom_right" in text


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    listed = run_json(capsys, "list")
    assert listed["domains"]["walker"]["tasks"] == ["stand", "walk", "run", "flip"]  # type: ignore[index]
    assert "torso_height" in listed["domains"]["walker"]["quantities"]  # type: ignore[index]
    assert {"gfa-rfe", "random"} <= set(listed["explorers"])  # type: ignore[call-overload]
    assert {"ddpg", "ddpg-twin"} <= set(listed["planners"])  # type: ignore[call-overload]
    code, text, _ = run(capsys, "list")
    assert code == 0
    assert "quadruped" in text


def test_help_shows_the_chosen_algorithms_fields(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, "explore", "--help")
    assert code == 0
    for flag in ("--frames", "--oracle", "--length-scale", "--weight-at", "--preset"):
        assert flag in text
    _, text, _ = run(capsys, "explore", "--explorer", "random", "--help")
    assert "--weight-at" not in text
    _, text, _ = run(capsys, "explore", "--preset", "released", "--help")
    assert "--length-scale" not in text
    code, text, _ = run(capsys, "--help")
    assert code == 0
    assert "evaluate" in text


def test_preset_size_oracle_and_field_flags_come_together(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    argv = ["explore", "point_mass_maze", "--preset", "paper", "--size", "tiny", "--oracle", "elliptical"]
    run_json(capsys, *argv, "--ridge", 0.5, "--beta", 3, "--frames", 5, "--out", tmp_path / "run")
    config = json.loads((tmp_path / "run" / "run.json").read_text())
    explorer = config["explorer"]
    assert (explorer["epsilon"], explorer["hidden"], explorer["beta"]) == (0.2, 64, 3.0)
    assert (explorer["oracle"]["name"], explorer["oracle"]["ridge"]) == ("elliptical", 0.5)
    assert config["size"] == "tiny"


def mistakes(tmp: Path, data: Path) -> dict[str, tuple[Sequence[object], str]]:
    return {
        "command": (["exlpore"], "did you mean explore"),
        "domain": (["explore", "wolker"], "unknown domain 'wolker'; did you mean walker"),
        "explorer": (["explore", "walker", "--explorer", "gfa"], "unknown explorer 'gfa'"),
        "preset": (["explore", "walker", "--preset", "papr"], "did you mean paper"),
        "oracle": (["explore", "walker", "--oracle", "eliptical"], "did you mean elliptical"),
        "frames": (["explore", "walker", "--frames", "0", "--out", tmp / "a"], "at least 1"),
        "run": (["plan", tmp / "nowhere", "--reward", "flip"], "holds no run"),
        "task": (["plan", data, "--reward", "reach_top"], "did you mean"),
        "planner": (["plan", data, "--reward", "reach_top_left", "--planner", "dpg"], "did you mean ddpg"),
        "plan": (["evaluate", data], "holds no plan"),
        "inspect": (["inspect", tmp / "nowhere"], "holds no run"),
        "in use": (["explore", "point_mass_maze", "--frames", "5", "--out", data], "already holds a run"),
    }


@pytest.mark.parametrize("mistake", mistakes(Path(), Path()))
def test_a_mistake_gets_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, small_run: rf.Dataset, mistake: str
) -> None:
    argv, message = mistakes(tmp_path, small_run.path)[mistake]
    code, out, err = run(capsys, *argv)
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert message in err


def test_a_wrong_flag_says_what_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, message in (
        (["--hiden", 3], "--hidden"),
        (["--hidden", "wide"], "INT"),
        (["--size", "huge"], "compact"),
        (["--preset", "paper", "--share", "norm"], "cannot share parameters"),
        (["--critics", "0"], "critics must be at least 1, not 0"),
        (["--gamma", "1.5"], "gamma must be between 0 and 1, not 1.5"),
    ):
        code, out, err = run(capsys, "explore", "walker", *argv)
        assert (code, out) == (2, "")
        assert message in err
        assert "Traceback" not in err


def test_a_film_has_the_length_of_its_episode(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    small_run: rf.Dataset,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(video, "FRAMES_PER_SECOND", 2)  # drawing without a GPU is slow
    try:
        PointMassMaze().render(8, 8)
    except rf.UserError as error:
        pytest.skip(str(error))
    planner = rf.DdpgTwin(hidden=8, batch=16)
    rf.plan(small_run, "reach_top_left", planner, updates=1, out=tmp_path / "plan")
    film = tmp_path / "films" / "plan.mp4"
    run_json(capsys, "evaluate", tmp_path / "plan", "--episodes", 1, "--video", film)
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(film))
    assert frames == 40  # every 25th of 1000 steps of 0.02 s
    assert seconds == pytest.approx(20.0, abs=0.1)


def test_the_installed_command_runs_without_a_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rewardfree", "explore", "wolker"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rewardfree: unknown domain 'wolker'")


@pytest.mark.parametrize("words", [("list", "--json"), ("explore", "--help"), ("list",)])
def test_a_reader_that_has_seen_enough_gets_no_traceback(words: Sequence[str]) -> None:
    command = [sys.executable, "-m", "rewardfree", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # as `head` does
        assert process.stderr.read() == ""
    assert process.returncode != 0
