"""Minibatches of n-step transitions, drawn inside the compiled update from arrays on the device."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rewardfree.data.dataset import LabelledDataset
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
    size: Int[Array, ""]
    episodes: Int[Array, ""]


class Batch(NamedTuple):
    """B transitions, `next_observation` n steps later."""

    observation: Float[Array, "B O"]
    action: Float[Array, "B A"]
    reward: Float[Array, " B"]
    discount: Float[Array, " B"]
    next_observation: Float[Array, "B O"]
    skill: Float[Array, "B K"]


def take(replay: Replay, index: Int[Array, " B"]) -> Batch:
    """The transitions of the given indices."""
    return Batch(
        observation=replay.observation[replay.row[index]],
        action=replay.action[index],
        reward=replay.reward[index],
        discount=replay.discount[index],
        next_observation=replay.observation[replay.end[index]],
        skill=replay.skill[index],
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
    return Replay(
        observation=jnp.asarray(data.data.array("observation")),
        action=jnp.asarray(data.data.array("action")),
        row=jnp.asarray(row, jnp.int32),
        end=jnp.asarray(row + steps, jnp.int32),
        discount=jnp.asarray(discount),
        reward=jnp.asarray(nstep_sum(data.reward, steps, nstep, gamma)),
        start=jnp.asarray(start, jnp.int32),
        length=jnp.asarray(lengths, jnp.int32),
        skill=jnp.zeros((len(steps), 0)),  # a plan has no use for the skills that explored
        size=jnp.int32(len(steps)),
        episodes=jnp.int32(len(lengths)),
    )


class ReplayBuffer:
    """A replay that grows by whole episodes, in place, up to a stated number of frames."""

    def __init__(self, spec: Spec, frames: int, nstep: int, gamma: float, skills: int = 0) -> None:
        episodes = frames if spec.terminates else -(-frames // spec.episode_length)
        self._nstep, self._gamma = nstep, gamma
        self.size = self.episodes = 0
        self.replay = Replay(
            observation=jnp.zeros((frames + episodes, spec.observation)),
            action=jnp.zeros((frames, spec.action)),
            row=jnp.zeros(frames, jnp.int32),
            end=jnp.zeros(frames, jnp.int32),
            discount=jnp.zeros(frames),
            reward=jnp.zeros(frames),
            start=jnp.zeros(episodes, jnp.int32),
            length=jnp.zeros(episodes, jnp.int32),
            skill=jnp.zeros((frames, skills)),
            size=jnp.int32(0),
            episodes=jnp.int32(0),
        )

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
        }
        self.replay = _insert(self.replay, news, self.size, self.episodes)
        self.size += length
        self.episodes += 1


@partial(jax.jit, donate_argnums=0)
def _insert(replay: Replay, news: dict[str, Array], size: int, episodes: int) -> Replay:
    at = {"observation": size + episodes, "start": episodes, "length": episodes}

    def put(name: str, new: Array) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(getattr(replay, name), new, at.get(name, size), axis=0)

    changed = {name: put(name, new) for name, new in news.items()}
    length = news["action"].shape[0]
    return replay._replace(**changed, size=jnp.int32(size + length), episodes=jnp.int32(episodes + 1))
