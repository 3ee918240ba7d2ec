"""The loop of Algorithm 2, and what it takes to stop and continue it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rewardfree import durable, trust
from rewardfree.data import files
from rewardfree.data.dataset import Dataset, DatasetWriter, Prove, Recorder, Written
from rewardfree.data.replay import ReplayBuffer
from rewardfree.data.transitions import STATE_ARRAYS, STEP_ARRAYS
from rewardfree.interfaces import Domain, Explorer, Metrics, Moment

EXPLORE, EVALUATE = 0, 1
"""Streams of random numbers: an episode's depend on (seed, stream, episode) alone."""
_STATE = "state."


class Exploration:
    """The loop of Algorithm 2: act, record, learn."""

    def __init__(
        self, simulator: Domain, explorer: Explorer, frames: int, seed: int, run: Path, memory: float | None
    ) -> None:
        self._simulator, self._explorer = simulator, explorer
        self._frames, self._seed, self._run = frames, seed, run
        self.buffer = ReplayBuffer(
            simulator.spec,
            frames,
            explorer.nstep,
            explorer.gamma,
            explorer.skill_size(simulator.spec),
            memory,
            run,
        )
        self._state = explorer.init(simulator.spec, _keys(np.random.default_rng(seed), 1)[0])
        self.frame = self.updates = 0

    def start(self, checkpoint: durable.Checkpoint | None) -> DatasetWriter:
        """Begin, or go on from a checkpoint. Chance is a function of (seed, episode): it needs no state."""
        spec, run = self._simulator.spec, self._run
        prove = trust.prover(spec)
        if checkpoint is None:
            (run / "metrics.jsonl").unlink(missing_ok=True)
            return DatasetWriter(run / "data", spec, prove)
        with files.parsing(run / "checkpoints"):
            writer = self._restore(checkpoint, prove)
        durable.keep_lines(run / "metrics.jsonl", self.buffer.episodes)
        return writer

    def _restore(self, checkpoint: durable.Checkpoint, prove: Prove | None) -> DatasetWriter:
        arrays, record = checkpoint.arrays, checkpoint.record
        state = {
            name.removeprefix(_STATE): array for name, array in arrays.items() if name.startswith(_STATE)
        }
        self._state = files.fill_tree(self._state, state)
        self.frame, self.updates = checkpoint.done, record["updates"]
        pending = [
            {name: arrays[f"pending.{number}.{name}"] for name in (*STATE_ARRAYS, *STEP_ARRAYS)}
            for number in range(record["pending"])
        ]
        written = Written(record["shards"], pending)
        writer = DatasetWriter(self._run / "data", self._simulator.spec, prove, written)
        for episode in (*Dataset.open(self._run).each_episode(), *pending):
            self.buffer.append(episode)
        return writer

    def checkpoint(self, written: Written) -> durable.Checkpoint:
        """All that the rest of the run depends on."""
        state = {_STATE + name: array for name, array in files.tree_arrays(self._state).items()}
        pending = {
            f"pending.{number}.{name}": array
            for number, episode in enumerate(written.pending)
            for name, array in episode.items()
        }
        record = {"updates": self.updates, "shards": written.shards, "pending": len(written.pending)}
        return durable.Checkpoint(self.frame, state | pending, record)

    def episodes(self) -> Iterator[tuple[dict[str, np.ndarray], Metrics]]:
        """Episodes and what was learned in each, until the frames are used up."""
        while self.frame < self._frames:
            episode, metrics = self._episode(
                np.random.default_rng([self._seed, EXPLORE, self.buffer.episodes])
            )
            self.buffer.append(episode)
            self._state = self._explorer.absorb(self._state, self.buffer)
            yield episode, metrics

    def _episode(self, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], Metrics]:
        spec, explorer = self._simulator.spec, self._explorer
        length = min(spec.episode_length, self._frames - self.frame)
        state = self._simulator.reset(simulator_seed(rng))
        recorder = Recorder(state)
        uniform = rng.uniform(-1.0, 1.0, (length, spec.action)).astype(np.float32)
        learned: list[Metrics] = []
        act, act_key = explorer.behaviour(self._state), _keys(rng, 1)[0]
        for number, (update_key, random_action) in enumerate(zip(_keys(rng, length), uniform, strict=True)):
            seeding = self.frame < explorer.seed_frames
            skill = explorer.skill(spec, act_key, number)
            action = random_action if seeding else act(Moment(state.observation, skill, act_key, number))
            if not np.isfinite(action).all():
                raise FloatingPointError("its action is not a number")
            step = self._simulator.step(action)
            recorder.add(action, step, skill)
            state = step.state
            self.frame += 1
            if not seeding and self.buffer.size and self.frame % explorer.chunk == 0:
                updates = max(1, explorer.chunk // explorer.update_every)
                # Before the update, which returns at once: the simulator goes on while the learner learns.
                act = explorer.behaviour(self._state)
                self._state, metrics = explorer.update(self._state, self.buffer.replay, update_key, updates)
                self.updates += updates
                learned.append(metrics)
            if step.terminated or step.truncated:
                break
        return recorder.arrays(), _mean(learned)


def _keys(rng: np.random.Generator, count: int) -> np.ndarray:
    """JAX's raw keys, uint32 [count, 2], drawn on the host: splitting on the device costs a call each."""
    return rng.integers(0, 2**32, (count, 2), np.uint32)


def simulator_seed(rng: np.random.Generator) -> int:
    """What an episode's start depends on."""
    return int(rng.integers(0, 2**32))


def _mean(metrics: list[Metrics]) -> Metrics:
    return {
        name: np.mean([np.asarray(one[name]) for one in metrics]) for name in (metrics[0] if metrics else {})
    }
