"""Rewards: found, checked and laid over data; mistakes get one clear line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import write_file

import rewardfree as rf
from rewardfree.rewards.support import occupied

Function = Callable[[rf.Transitions], Any]


def hashes(data: rf.Dataset) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (data.path / "data").iterdir()}


def test_a_label_lies_over_the_data_and_does_not_touch_it(small_run: rf.Dataset) -> None:
    before = hashes(small_run)
    labelled = rf.label(small_run, "reach_top_left")
    assert labelled.reward.shape == (2500,)
    assert labelled.reward.dtype == np.float32
    assert hashes(small_run) == before


def test_function_file_and_task_agree(small_run: rf.Dataset, tmp_path: Path) -> None:
    file = write_file(
        tmp_path / "mine.py",
        "import numpy as np\n"
        "from rewardfree import tolerance\n"
        "def corner(t):\n"
        "    near = tolerance(np.hypot(t['x'] + 0.15, t['y'] - 0.15), 0, 0.015, margin=0.015)\n"
        "    return near * ((1 - t['ctrl'] ** 2).mean(axis=1) + 4) / 5\n",
    )
    task = rf.label(small_run, "reach_top_left").reward
    np.testing.assert_allclose(rf.label(small_run, f"{file}:corner").reward, task, atol=1e-6)
    function = rf.label(small_run, lambda t: np.hypot(t["x"] + 0.15, t["y"] - 0.15) < 0.015).reward
    assert set(np.unique(function)) <= {0.0, 1.0}  # a boolean is a reward of 0 or 1
    assert (task[function == 1] >= 0.8).all()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: 1 / 0, "raised ZeroDivisionError"),
        (lambda t: t["heigth"], "unknown quantity 'heigth'"),
        (lambda t: 1.0, "a single number for 2500 transitions"),
        (lambda t: t["action"], r"shape \(2500, 2\)"),
        (lambda t: t["x"][:-1], r"shape \(2499,\)"),
        (lambda t: np.where(t["x"] < 0, np.nan, 1.0), "NaN or infinite"),
        (lambda t: np.full(len(t), "good"), "return numbers"),
        (lambda t: None, "single number"),
    ],
)
def test_a_wrong_function_gets_one_clear_line(
    small_run: rf.Dataset, function: Function, message: str
) -> None:
    with pytest.raises(rf.UserError, match=message) as caught:
        rf.label(small_run, function)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("reach_top_lef", "did you mean reach_top_left"),
        ("nowhere.py:f", "no file nowhere.py"),
        ("{tmp}/mine.py:corner", "unknown function 'corner'; did you mean corners"),
        ("{tmp}/broken.py:f", "cannot be loaded: NameError"),
    ],
)
def test_a_reward_that_is_not_there(small_run: rf.Dataset, tmp_path: Path, reward: str, message: str) -> None:
    write_file(tmp_path / "mine.py", "def corners(t): ...\n")
    write_file(tmp_path / "broken.py", "oops\n")
    with pytest.raises(rf.UserError, match=message):
        rf.label(small_run, reward.format(tmp=tmp_path))


def test_inspection_counts_what_is_there(small_run: rf.Dataset) -> None:
    x, y = small_run.values("x"), small_run.values("y")
    middle = float(np.median(x))
    found = rf.inspect(small_run, [lambda t: t["x"] > middle])
    share = float((x > middle).mean())
    assert (found["frames"], found["episodes"]) == (2500, 3)
    row = found["rewards"]["lambda"]
    assert (row["mean"], row["max"], row["nonzero"]) == pytest.approx((share, 1.0, share))
    visited = {
        (int((a + 0.3) / 0.02), int((b + 0.3) / 0.02)) for a, b in zip(x.tolist(), y.tolist(), strict=True)
    }
    grid = occupied(small_run)
    assert grid.shape == (30, 30)
    assert (
        len(visited) <= found["coverage"]["cells"] <= len(visited) + 3
    )  # a start's cell may be seen only once
    assert found["coverage"]["cells"] == grid.sum()
    assert list(rf.inspect(small_run)["rewards"]) == [
        f"reach_{corner}" for corner in ("top_left", "top_right", "bottom_left", "bottom_right")
    ]
