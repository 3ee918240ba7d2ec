"""The reward-free data set: what is written comes back, and damage is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import SPEC, make_episode
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from rewardfree.data import dataset as dataset_module
from rewardfree.data import files
from rewardfree.data.dataset import Dataset, DatasetWriter
from rewardfree.data.transitions import STATE_ARRAYS, Transitions

LENGTHS = (5, 3, 5, 1)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four episodes in two shards."""
    monkeypatch.setattr(dataset_module, "SHARD_FRAMES", 8)
    writer = DatasetWriter(tmp_path / "data", SPEC)
    for seed, length in enumerate(LENGTHS):
        writer.append(make_episode(length, seed))
    writer.flush()
    return tmp_path


def manifest_of(run: Path) -> dict[str, object]:
    manifest: dict[str, object] = json.loads((run / "data" / "manifest.json").read_text())
    return manifest


def test_what_is_written_comes_back_exactly(run: Path) -> None:
    data = Dataset.open(run)
    assert (data.frames, data.episodes, len(data.shards)) == (14, 4, 2)
    assert data.spec == SPEC
    episodes = [make_episode(length, seed) for seed, length in enumerate(LENGTHS)]
    for name in episodes[0]:
        stored = data.array(name)
        expected = np.concatenate([episode[name] for episode in episodes])
        np.testing.assert_array_equal(stored, expected)
        assert stored.dtype == expected.dtype
        assert len(stored) == (14 + 4 if name in STATE_ARRAYS else 14)


def test_names_read_the_next_state_and_before_reads_the_first(run: Path) -> None:
    data = Dataset.open(run)
    episodes = [make_episode(length, seed) for seed, length in enumerate(LENGTHS)]
    after = np.concatenate([episode["quantities"][1:, 1] for episode in episodes])
    before = np.concatenate([episode["quantities"][:-1, 1] for episode in episodes])
    np.testing.assert_array_equal(data.values("speed"), after)
    np.testing.assert_array_equal(np.concatenate([s.before("speed") for s in data.shards]), before)
    np.testing.assert_array_equal(data.values("action"), np.concatenate([e["action"] for e in episodes]))


def test_every_name_a_batch_lists_can_be_read(run: Path) -> None:
    shard = Dataset.open(run).shards[0]
    stored = [name for name in shard if shard.names.locate(name) is not None]
    assert {"height", "speed", "obs", "qpos", "hinge", "ball_velocity", "action", "skill"} <= set(stored)
    for name in stored:
        assert len(shard[name]) == len(shard) == 8
    np.testing.assert_array_equal(shard["hinge"], shard["qpos"][:, 0])
    np.testing.assert_array_equal(shard["ball"], shard["qpos"][:, 1:5])
    np.testing.assert_array_equal(shard["ball_velocity"], shard["qvel"][:, 1:4])
    with pytest.raises(rf.UserError, match="unknown quantity 'sped'; did you mean speed"):
        shard["sped"]
    with pytest.raises(rf.UserError, match="do not fit the point_mass_maze"):
        shard["pointmass_x"]


def test_there_is_no_reward_in_the_data(run: Path) -> None:
    for path in (run / "data").glob("*.safetensors"):
        assert not [name for name in files.map_arrays(path) if "reward" in name]
    assert "s_{t+1}" in str(manifest_of(run)["reward_timing"])


def test_the_data_is_read_only(run: Path) -> None:
    stored = Dataset.open(run).shards[0].stored("observation")
    assert isinstance(stored.base, np.memmap) or isinstance(stored, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        stored[0] = 1.0


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"), [(truncate, "damaged"), (flip, "damaged"), (Path.unlink, "missing")]
)
def test_a_damaged_shard_is_noticed(run: Path, damage: object, message: str) -> None:
    assert callable(damage)
    damage(run / "data" / "shard-00001.safetensors")
    with pytest.raises(rf.UserError, match=message):
        Dataset.open(run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "newer version"),
        (
            {"shards": [{"file": "../../secret.safetensors", "bytes": 1, "sha256": "", "lengths": [1]}]},
            "outside",
        ),
        ({"spec": {}}, "damaged"),
        ({"shards": 3}, "damaged"),
    ],
)
def test_a_manifest_that_lies_is_noticed(run: Path, change: dict[str, object], message: str) -> None:
    path = run / "data" / "manifest.json"
    path.write_text(json.dumps(manifest_of(run) | change))
    with pytest.raises(rf.UserError, match=message):
        Dataset.open(run)


def test_an_unfinished_shard_is_ignored(run: Path) -> None:
    (run / "data" / ".writing-abc").write_bytes(b"half")
    (run / "data" / "shard-00002.safetensors").write_bytes(b"not named by the manifest")
    assert Dataset.open(run).frames == 14


@settings(max_examples=200, deadline=None)
@given(
    cut=st.integers(0, 400),
    changes=st.lists(st.tuples(st.integers(0, 399), st.integers(0, 255)), max_size=6),
)
def test_a_hostile_file_gives_a_user_error_or_arrays(
    tmp_path_factory: pytest.TempPathFactory, cut: int, changes: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile.safetensors"
    files.write_arrays(path, {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros((4, 0), np.float32)})
    content = bytearray(path.read_bytes())
    for position, value in changes:
        content[position % len(content)] = value
    path.write_bytes(bytes(content[: len(content) - cut]) if cut < len(content) else b"")
    try:
        arrays = files.map_arrays(path)
    except rf.UserError:
        return
    for array in arrays.values():
        array.sum()


def test_a_tree_of_arrays_round_trips_bit_for_bit(tmp_path: Path) -> None:
    tree = {"a": np.array([1.5, np.pi], np.float32), "b": (np.int32(3), np.zeros((2, 2), bool))}
    files.write_arrays(tmp_path / "tree.safetensors", files.tree_arrays(tree))
    arrays = files.map_arrays(tmp_path / "tree.safetensors")
    assert {name: array.shape for name, array in arrays.items()} == {"a": (2,), "b.0": (), "b.1": (2, 2)}
    for name, leaf in files.tree_arrays(tree).items():
        np.testing.assert_array_equal(arrays[name], leaf, strict=True)


def test_transitions_print_what_they_hold() -> None:
    transitions = Transitions(SPEC, make_episode(4, 0), np.array([4]))
    assert "4 of point_mass_maze" in repr(transitions)
