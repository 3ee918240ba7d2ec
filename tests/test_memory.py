"""A replay beyond its memory budget lies in a file, and nothing else is different."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import numpy as np
import pytest
from conftest import SMALL, SPEC, make_episode
from test_durable import content

import rewardfree as rf
from rewardfree.cli import main
from rewardfree.data.mapped import exceeds
from rewardfree.data.replay import ReplayBuffer, take
from rewardfree.interfaces import Explorer


@pytest.mark.parametrize("explorer", [SMALL, rf.Diayn(hidden=8, batch=16, seed_frames=1000, chunk=100)])
def test_exploration_is_the_same_from_disk(explorer: Explorer, tmp_path: Path) -> None:
    for name, memory in (("memory", None), ("disk", 0.0)):
        rf.explore("point_mass_maze", explorer, frames=4000, seed=1, out=tmp_path / name, memory=memory)
    assert content(tmp_path / "disk") == content(tmp_path / "memory")


def test_planning_is_the_same_from_disk(
    small_run: rf.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["plan", str(small_run.path), "--reward", "vx", "--size", "tiny", "--updates", "250"]
    assert main([*command, "--out", str(tmp_path / "memory")]) == 0
    assert main([*command, "--out", str(tmp_path / "disk"), "--memory", "0"]) == 0
    for name in ("policy.safetensors", "critics.safetensors"):
        assert (tmp_path / "disk" / name).read_bytes() == (tmp_path / "memory" / name).read_bytes()
    before = sorted(path.name for path in small_run.path.iterdir())
    assert not [name for name in before if name.startswith("tmp")]  # the file never had a name
    assert main([*command, "--out", str(tmp_path / "other"), "--memory", "-1"]) == 2
    assert "memory is a number of gigabytes, 0 or more" in capsys.readouterr().err


def test_a_program_reads_what_was_appended_after_it_was_compiled(tmp_path: Path) -> None:
    buffer = ReplayBuffer(SPEC, 20, 3, 0.5, memory=0.0, folder=tmp_path)
    for seed in range(3):
        episode = make_episode(5, seed)
        buffer.append(episode)
        batch = take(buffer.replay, np.arange(5 * seed, 5 * seed + 5))  # type: ignore[arg-type]
        np.testing.assert_array_equal(batch.observation, episode["observation"][:5])
        np.testing.assert_array_equal(batch.action, episode["action"])


def test_the_file_is_not_held_in_memory(tmp_path: Path) -> None:
    def held() -> int:
        """Bytes of anonymous pages; pages of a file are the system's to take back."""
        found = re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    frames, length = 2_000_000, SPEC.episode_length
    episode, before = make_episode(length, 0), held()
    buffer = ReplayBuffer(SPEC, frames, 3, 0.99, memory=0.0, folder=tmp_path)
    size = sum(array.nbytes for array in buffer.replay)
    for file in buffer._files.values():
        file[:] = 1  # every page of it
    buffer.append(episode)
    assert size > 75 * 10**6
    assert held() - before < size / 4


def test_no_room_is_one_clear_line(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(
            rf.UserError, match=r"cannot keep .* GB of replay in .*: File too large; make room"
        ):
            ReplayBuffer(SPEC, 100_000, 3, 0.99, memory=0.0, folder=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_budget_is_counted_in_gigabytes() -> None:
    assert not exceeds(10**9, 1.0)
    assert exceeds(10**9 + 1, 1.0)
    assert not exceeds(10**6, None)  # half of any machine's memory is more
    with pytest.raises(rf.UserError, match="0 or more, not nan"):
        exceeds(1, float("nan"))
