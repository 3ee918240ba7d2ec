"""Labels and recomputed quantities: the same values whether computed, recomputed, or read back."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

import rewardfree as rf
from rewardfree.data import derived
from rewardfree.data.dataset import DatasetWriter
from rewardfree.rewards.resolve import resolve


@pytest.fixture
def data(small_run: rf.Dataset, tmp_path: Path) -> rf.Dataset:
    """A copy that a test may change."""
    shutil.copytree(small_run.path, tmp_path / "run")
    for kept in ("labels", "data/derived"):
        shutil.rmtree(tmp_path / "run" / kept, ignore_errors=True)
    return rf.Dataset.open(tmp_path / "run")


def kept(data: rf.Dataset) -> list[Path]:
    return sorted((data.path / "labels").glob("*"))


def test_labels_are_kept_and_read_back(data: rf.Dataset) -> None:
    first = rf.label(data, "x + 2 * y").reward
    assert len(kept(data)) == 1
    again = rf.label(rf.Dataset.open(data.path), "x + 2 * y").reward
    np.testing.assert_array_equal(first, again)
    assert not again.flags.writeable  # a view of the file
    rf.label(data, "x + 3 * y")
    rf.label(data, lambda t: t["x"])  # nobody can tell whether it is the same function next time
    assert len(kept(data)) == 2


def test_labels_depend_on_the_code_of_a_file(data: rf.Dataset, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def up(t):\n    return t['y']\n")
    before = rf.label(data, f"{file}:up").reward
    file.write_text("def up(t):\n    return -t['y']\n")
    np.testing.assert_array_equal(rf.label(data, f"{file}:up").reward, -before)


def test_damaged_labels_are_made_again(data: rf.Dataset) -> None:
    expected = np.array(rf.label(data, "x").reward)
    (path,) = kept(data)
    for damage in (b"", b"nonsense", path.read_bytes()[:-4]):
        path.write_bytes(damage)
        np.testing.assert_array_equal(rf.label(data, "x").reward, expected)


def test_a_folder_that_cannot_be_written_costs_only_time(data: rf.Dataset) -> None:
    (data.path / "labels").write_text("in the way")
    (data.path / "data" / "derived").write_text("in the way")
    np.testing.assert_allclose(rf.label(data, "pointmass_x").reward, rf.label(data, "x").reward, atol=1e-6)


def test_what_is_recomputed_is_what_was_stored(data: rf.Dataset) -> None:
    for name, stored in {"pointmass_x": "x", "pointmass_y": "y", "pointmass_vx": "vx"}.items():
        np.testing.assert_allclose(data.values(name), data.values(stored), atol=1e-6)
    for shard in data.shards:
        np.testing.assert_allclose(shard.before("pointmass_y"), shard.before("y"), atol=1e-6)
    again = rf.Dataset.open(data.path)
    assert sorted(path.name for path in (data.path / "data" / "derived").glob("*/*")) == [
        "pointmass_vx.safetensors",
        "pointmass_x.safetensors",
        "pointmass_y.safetensors",
    ]
    np.testing.assert_array_equal(again.values("pointmass_x"), data.values("pointmass_x"))


def test_a_quantity_that_was_not_stored_can_be_rewarded(data: rf.Dataset, tmp_path: Path) -> None:
    """Data from before a domain had a name for its speed."""
    old = dataclasses.replace(data.spec, quantities=data.spec.quantities[:2])
    writer = DatasetWriter(tmp_path / "old" / "data", old)
    for episode in data.each_episode():
        writer.append(episode | {"quantities": episode["quantities"][:, :2]})
    writer.flush()
    reward = rf.label(tmp_path / "old", "norm(vx, vy) + x").reward
    expected = rf.label(data, "norm(vx, vy) + x").reward[: len(reward)]
    np.testing.assert_allclose(reward, expected, atol=1e-6)


def test_all_cores_give_what_one_gives(data: rf.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    reward = resolve("pointmass_x + pointmass_y", data.spec)
    alone = np.concatenate([reward(shard) for shard in data.shards])
    shutil.rmtree(data.path / "data" / "derived")
    monkeypatch.setattr(derived, "_ALONE", 0)
    monkeypatch.setattr(derived, "_CHUNK", 700)
    np.testing.assert_array_equal(rf.label(rf.Dataset.open(data.path), reward).reward, alone)


def test_a_plan_for_an_expression_can_be_loaded_and_run(data: rf.Dataset, tmp_path: Path) -> None:
    text = "tolerance(norm(pointmass_x, y), 0, 0.1, margin=0.1) - 0.1 * norm(action)"
    planner = rf.DdpgTwin(hidden=8, batch=16)
    rf.plan(data, text, planner, updates=2, out=tmp_path / "plan")
    loaded = rf.Plan.load(tmp_path / "plan")  # an expression is text, so it may be read without asking
    assert loaded.reward.name == text
    assert len(rf.evaluate(loaded, episodes=1).returns) == 1


def test_rewards_that_look_alike_get_folders_of_their_own(data: rf.Dataset) -> None:
    slugs = {resolve(text, data.spec).slug for text in ("x + y", "x - y", "x * y", "-x")}
    assert len(slugs) == 4
    assert all(slug.replace("-", "").replace("_", "").isalnum() for slug in slugs)
    long = resolve(" + ".join(["x"] * 80), data.spec).slug
    assert len(long) < 80


def test_zero_constant_and_shifted_rewards_give_the_values_they_must(data: rf.Dataset) -> None:
    """With gamma 0.5 and no end of an episode in sight, Q = c / (1 - gamma) for a constant reward c."""
    planner = rf.DdpgTwin(hidden=16, batch=64, gamma=0.5, nstep=1, learning_rate=1e-2, tau=0.2)

    def learned(reward: str) -> dict[str, float]:
        heard: list[dict[str, float]] = []
        labelled = rf.label(data, reward)
        planner.fit(labelled, 1000, 0, lambda done, metrics, policy: heard.append(metrics))
        return {name: float(value) for name, value in heard[-1].items()}

    assert abs(learned("0")["q"]) < 0.02
    assert learned("1")["q"] == pytest.approx(2.0, abs=0.05)
    plain, shifted = learned("x > 0")["q"], learned("(x > 0) + 1")["q"]
    assert shifted - plain == pytest.approx(2.0, abs=0.1)
