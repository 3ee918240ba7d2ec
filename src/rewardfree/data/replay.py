"""Minibatches of n-step transitions, drawn inside the compiled update from arrays on the device."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rewardfree.data.dataset import Dataset, LabelledDataset
from rewardfree.data.mapped import device_view, exceeds, mapped_zeros
from rewardfree.interfaces import Spec


class Replay(NamedTuple):
    """Transitions on the device, of which the first `size` are filled. A pytree.

    A transition starts at the state in `row`; its n-step window ends at the state in `end`, or where its
    episode does. States are stored once: C transitions of E episodes need C + E rows.
    """

    observation: Float[Array, "R O"]
    action: Float[Array, "C A"]
    row: Int[Array, " C"]
    end: Int[Array, " C"]
    discount: Float[Array, " C"]
    """gamma^m over the window's m <= n steps; 0 where the episode terminated in it."""
    reward: Float[Array, " C"]
    """sum_j gamma^j r_{t+j} over the window, when planning. Exploration has no reward: zeros."""
    start: Int[Array, " E"]
    """The first transition of each episode."""
    length: Int[Array, " E"]
    skill: Float[Array, "C K"]
    """The skill that chose the action; K = 0 without skills."""
    quantities: Float[Array, "R Q"]
    """The domain's named quantities of each state, when exploring. A plan has them in its reward: Q = 0."""
    size: Int[Array, ""]
    episodes: Int[Array, ""]


class Batch(NamedTuple):
    """B transitions, `next_observation` and `next_quantities` n steps later."""

    observation: Float[Array, "B O"]
    action: Float[Array, "B A"]
    reward: Float[Array, " B"]
    discount: Float[Array, " B"]
    next_observation: Float[Array, "B O"]
    skill: Float[Array, "B K"]
    next_quantities: Float[Array, "B Q"]


def take(replay: Replay, index: Int[Array, " B"]) -> Batch:
    """The transitions of the given indices."""
    return Batch(
        observation=replay.observation[replay.row[index]],
        action=replay.action[index],
        reward=replay.reward[index],
        discount=replay.discount[index],
        next_observation=replay.observation[replay.end[index]],
        skill=replay.skill[index],
        next_quantities=replay.quantities[replay.end[index]],
    )


def sample(
    replay: Replay, key: PRNGKeyArray, batch: int, partition: int = 1, turn: Int[Array, ""] | int = 0
) -> Batch:
    """A uniform minibatch; with a partition, only of the episodes whose number is `turn` modulo it."""
    if partition == 1:
        return take(replay, jax.random.randint(key, (batch,), 0, replay.size))
    key_episode, key_step = jax.random.split(key)
    part = turn % jnp.minimum(partition, replay.episodes)  # before every part has an episode
    owned = (replay.episodes - part + partition - 1) // partition
    episode = part + partition * jax.random.randint(key_episode, (batch,), 0, owned)
    offset = jax.random.uniform(key_step, (batch,)) * replay.length[episode]
    return take(replay, replay.start[episode] + offset.astype(jnp.int32))


def windows(
    lengths: Int[np.ndarray, " E"], terminated: np.ndarray, nstep: int, gamma: float
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Steps in each transition's window, m = min(n, steps left in the episode), and its discount."""
    ends = np.cumsum(lengths)
    left = np.repeat(ends, lengths) - np.arange(ends[-1])
    steps = np.minimum(left, nstep)
    ended = terminated[np.arange(ends[-1]) + steps - 1]
    return steps.astype(np.int32), (gamma**steps * ~ended).astype(np.float32)


def nstep_sum(
    reward: Float[np.ndarray, " n"], steps: Int[np.ndarray, " n"], nstep: int, gamma: float
) -> Float[np.ndarray, " n"]:
    """sum_{j < m} gamma^j r_{t+j}."""
    index = np.arange(len(reward))
    total = np.zeros(len(reward), np.float64)
    for j in range(nstep):
        total += np.where(j < steps, gamma**j * reward[np.minimum(index + j, len(reward) - 1)], 0.0)
    return total.astype(np.float32)


def labelled_replay(data: LabelledDataset, nstep: int, gamma: float) -> Replay:
    """The replay of a planner: a whole labelled data set."""
    lengths, rows = data.data.lengths, np.concatenate([[0], np.cumsum(data.data.lengths + 1)])
    steps, discount = windows(lengths, data.data.array("terminated"), nstep, gamma)
    start = np.cumsum(lengths) - lengths
    row = np.arange(len(steps)) + np.repeat(rows[:-1] - start, lengths)
    spec = data.data.spec
    wide = 4 * (len(steps) * spec.action + rows[-1] * spec.observation)
    read = _mapped if exceeds(wide, data.memory) else _copied
    return Replay(
        observation=read(data.data, "observation"),
        action=read(data.data, "action"),
        row=jnp.asarray(row, jnp.int32),
        end=jnp.asarray(row + steps, jnp.int32),
        discount=jnp.asarray(discount),
        reward=jnp.asarray(nstep_sum(data.reward, steps, nstep, gamma)),
        start=jnp.asarray(start, jnp.int32),
        length=jnp.asarray(lengths, jnp.int32),
        skill=jnp.zeros((len(steps), 0)),  # a plan has no use for the skills that explored
        quantities=jnp.zeros((rows[-1], 0)),
        size=jnp.int32(len(steps)),
        episodes=jnp.int32(len(lengths)),
    )


def _copied(data: Dataset, name: str) -> Array:
    return jnp.asarray(data.array(name))


def _mapped(data: Dataset, name: str) -> Array:
    """The shards of an array one after the other, in a file."""
    parts = [shard.stored(name) for shard in data.shards]
    whole = mapped_zeros(data.path, (sum(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype)
    np.concatenate(parts, out=whole)
    return device_view(whole)


class ReplayBuffer:
    """A replay that grows by whole episodes, in place, up to a stated number of frames.

    What exceeds `memory` gigabytes lies in a file in `folder`. The numbers are the same: the programs are.
    """

    def __init__(
        self,
        spec: Spec,
        frames: int,
        nstep: int,
        gamma: float,
        skills: int = 0,
        memory: float | None = None,
        folder: Path = Path(),
    ) -> None:
        episodes = frames if spec.terminates else -(-frames // spec.episode_length)
        self._nstep, self._gamma = nstep, gamma
        self.size = self.episodes = 0
        shapes: dict[str, tuple[tuple[int, ...], type]] = {
            "observation": ((frames + episodes, spec.observation), np.float32),
            "action": ((frames, spec.action), np.float32),
            "row": ((frames,), np.int32),
            "end": ((frames,), np.int32),
            "discount": ((frames,), np.float32),
            "reward": ((frames,), np.float32),
            "start": ((episodes,), np.int32),
            "length": ((episodes,), np.int32),
            "skill": ((frames, skills), np.float32),
            "quantities": ((frames + episodes, len(spec.quantities)), np.float32),
        }
        self._files: dict[str, np.ndarray] = {}
        if exceeds(sum(4 * math.prod(shape) for shape, _ in shapes.values()), memory):
            self._files = {name: mapped_zeros(folder, *shape) for name, shape in shapes.items()}
            arrays = {name: device_view(file) for name, file in self._files.items()}
        else:
            arrays = {name: jnp.zeros(*shape) for name, shape in shapes.items()}
        self.replay = Replay(**arrays, size=jnp.int32(0), episodes=jnp.int32(0))

    def append(self, episode: dict[str, np.ndarray]) -> None:
        """Add an episode of T transitions (its arrays as recorded: T + 1 states, T steps)."""
        length = len(episode["action"])
        steps, discount = windows(np.array([length]), episode["terminated"], self._nstep, self._gamma)
        row = self.size + self.episodes + np.arange(length, dtype=np.int32)
        news = {
            "observation": episode["observation"],
            "action": episode["action"],
            "row": row,
            "end": row + steps,
            "discount": discount,
            "start": np.array([self.size], np.int32),
            "length": np.array([length], np.int32),
            "skill": episode["skill"],
            "quantities": episode["quantities"],
        }
        states = self.size + self.episodes
        at = {
            "observation": states,
            "quantities": states,
            "start": self.episodes,
            "length": self.episodes,
        }
        first = {name: at.get(name, self.size) for name in news}
        self.size += length
        self.episodes += 1
        if self._files:
            # A program that is still running reads what was filled before: these rows are not among it.
            for name, new in news.items():
                self._files[name][first[name] :][: len(new)] = new
            counts = {"size": jnp.int32(self.size), "episodes": jnp.int32(self.episodes)}
            self.replay = self.replay._replace(**counts)
        else:
            self.replay = _insert(self.replay, news, first)


@partial(jax.jit, donate_argnums=0)
def _insert(replay: Replay, news: dict[str, Array], first: dict[str, int]) -> Replay:
    put = jax.lax.dynamic_update_slice_in_dim
    changed = {name: put(getattr(replay, name), new, first[name], axis=0) for name, new in news.items()}
    length = news["action"].shape[0]
    return replay._replace(**changed, size=replay.size + length, episodes=replay.episodes + 1)
