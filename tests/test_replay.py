"""Sampling: n-step windows with known answers, and only what was stored."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
from conftest import SPEC, make_episode

from rewardfree.data.dataset import Dataset, DatasetWriter, LabelledDataset
from rewardfree.data.replay import ReplayBuffer, labelled_replay, nstep_sum, sample, take, windows

GAMMA, NSTEP = 0.5, 3
LENGTHS = np.array([4, 2])
REWARD = np.array([1, 2, 4, 8, 16, 32], np.float32)


def labelled(tmp_path: Path) -> LabelledDataset:
    """Two episodes, of 4 and 2 steps; the second terminates."""
    writer = DatasetWriter(tmp_path / "data", SPEC)
    writer.append(make_episode(4, 0))
    writer.append(make_episode(2, 1, terminated=True))
    writer.flush()
    return LabelledDataset(Dataset.open(tmp_path), "known", REWARD)


def test_windows_end_with_the_episode_and_termination_stops_the_bootstrap() -> None:
    steps, discount = windows(LENGTHS, np.array([0, 0, 0, 0, 0, 1], bool), NSTEP, GAMMA)
    np.testing.assert_array_equal(steps, [3, 3, 2, 1, 2, 1])
    np.testing.assert_array_equal(discount, [0.125, 0.125, 0.25, 0.5, 0, 0])  # 0.5^steps, or 0


def test_reward_sums_by_hand() -> None:
    steps = np.array([3, 3, 2, 1, 2, 1])
    sums = nstep_sum(REWARD, steps, NSTEP, GAMMA)
    # 1 + 2/2 + 4/4, 2 + 4/2 + 8/4, 4 + 8/2, 8 | 16 + 32/2, 32
    np.testing.assert_array_equal(sums, [3, 6, 8, 8, 32, 32])


def test_a_batch_holds_the_ends_of_its_windows(tmp_path: Path) -> None:
    replay = labelled_replay(labelled(tmp_path), NSTEP, GAMMA)
    first, second = make_episode(4, 0), make_episode(2, 1, terminated=True)
    batch = take(replay, np.arange(6))  # type: ignore[arg-type]
    np.testing.assert_array_equal(batch.observation[:4], first["observation"][:4])
    np.testing.assert_array_equal(batch.next_observation[:4], first["observation"][[3, 4, 4, 4]])
    np.testing.assert_array_equal(batch.observation[4:], second["observation"][:2])
    np.testing.assert_array_equal(batch.next_observation[4:], second["observation"][[2, 2]])
    np.testing.assert_array_equal(batch.action[4:], second["action"])
    np.testing.assert_array_equal(batch.reward, [3, 6, 8, 8, 32, 32])


def test_a_growing_replay_equals_the_whole_data_set(tmp_path: Path) -> None:
    whole = labelled_replay(labelled(tmp_path), NSTEP, GAMMA)
    buffer = ReplayBuffer(SPEC, 10, NSTEP, GAMMA)
    buffer.append(make_episode(4, 0))
    buffer.append(make_episode(2, 1, terminated=True))
    grown = take(buffer.replay, np.arange(6))  # type: ignore[arg-type]
    expected = take(whole, np.arange(6))  # type: ignore[arg-type]
    for name in ("observation", "action", "discount", "next_observation"):
        np.testing.assert_array_equal(getattr(grown, name), getattr(expected, name))
    assert (int(buffer.replay.size), int(buffer.replay.episodes)) == (buffer.size, buffer.episodes) == (6, 2)


def test_samples_come_from_what_is_filled_and_from_all_of_it() -> None:
    buffer = ReplayBuffer(SPEC, 20, NSTEP, GAMMA)
    episode = make_episode(5, 0)
    buffer.append(episode)
    batch = sample(buffer.replay, jax.random.PRNGKey(0), 200)
    drawn = {tuple(np.asarray(row).tolist()) for row in batch.action}
    assert drawn == {tuple(row.tolist()) for row in episode["action"]}


def test_a_partition_draws_from_its_own_episodes_only() -> None:
    buffer = ReplayBuffer(SPEC, 30, NSTEP, GAMMA)
    episodes = [make_episode(5, seed) for seed in range(6)]
    for episode in episodes:
        buffer.append(episode)
    for turn in range(8):
        batch = sample(buffer.replay, jax.random.PRNGKey(turn), 200, partition=4, turn=turn)
        drawn = {tuple(np.asarray(row).tolist()) for row in batch.action}
        owned = [episode for number, episode in enumerate(episodes) if number % 4 == turn % 4]
        assert drawn == {tuple(row.tolist()) for episode in owned for row in episode["action"]}
