"""Data sets of Minari, Gymnasium's library of offline data: needs `pip install rewardfree[minari]`.

A step's qpos, qvel and act are kept in Minari's infos, so that what was exported can be relabelled later.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rewardfree.data import files
from rewardfree.data.dataset import Dataset
from rewardfree.errors import UserError
from rewardfree.exchange.npz import write_run

_ROOT = "MINARI_DATASETS_PATH"
_PHYSICS = ("qpos", "qvel", "act")


def export_minari(data: Dataset, folder: Path, reward: np.ndarray | None = None) -> str:
    """Write the data set `rewardfree/NAME-v0` below the folder; returns that id."""
    minari = _minari()
    from gymnasium.spaces import Box
    from minari.data_collector import EpisodeBuffer

    files.refuse_full(folder)
    buffers, first = [], 0
    for number, episode in enumerate(data.each_episode()):
        length = len(episode["action"])
        paid = np.zeros(length) if reward is None else np.asarray(reward[first : first + length], np.float64)
        ended = episode["terminated"]
        cut = np.zeros(length, bool)
        cut[-1] = not ended[-1]
        buffers.append(
            EpisodeBuffer(
                id=number,
                observations=episode["observation"],
                actions=episode["action"],
                rewards=list(paid),
                terminations=list(ended),
                truncations=list(cut),
                infos={name: episode[name] for name in _PHYSICS if episode[name].shape[1]},
            )
        )
        first += length
    name = "".join(c if c.isalnum() else "-" for c in data.spec.domain).strip("-")
    id_ = f"rewardfree/{name}-v0"
    # it warns of metadata that only a published data set has: an author, a link to code
    with _root(folder), warnings.catch_warnings(action="ignore"):
        minari.create_dataset_from_buffers(
            id_,
            buffers,
            observation_space=Box(-np.inf, np.inf, (data.spec.observation,), np.float32),
            action_space=Box(-1.0, 1.0, (data.spec.action,), np.float32),
            algorithm_name="rewardfree",
            description=f"{data.spec.domain}, explored without a reward; actions are scaled to [-1, 1].",
        )
    return id_


def import_minari(id_: str, folder: Path | None, domain: str, out: Path) -> Dataset:
    """A run from a data set of Minari: one that is installed, or one below the folder."""
    minari = _minari()
    with _root(folder):
        try:
            found = minari.load_dataset(id_)
        except (FileNotFoundError, ValueError, OSError) as error:
            raise UserError(f"Minari has no data set {id_}: {' '.join(str(error).split())}") from error
        return write_run(_episodes(found), domain, id_, out)


def _episodes(found: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    space = found.action_space
    low, high = np.ravel(space.low).astype(np.float64), np.ravel(space.high).astype(np.float64)
    for episode in found.iterate_episodes():
        label = f"episode {episode.id}"
        if not isinstance(episode.observations, np.ndarray) or not isinstance(episode.actions, np.ndarray):
            raise UserError(f"{label}: only observations and actions that are plain arrays are supported")
        share = (episode.actions.reshape(len(episode.actions), -1) - low) / (high - low)
        action = episode.actions if (low == -1).all() and (high == 1).all() else 2 * share - 1
        arrays: dict[str, Any] = {
            "observation": episode.observations,
            "action": np.concatenate([np.zeros_like(action[:1]), action]),
            "discount": np.concatenate([[1.0], 1.0 - episode.terminations]),
        }
        infos = episode.infos or {}
        if {"qpos", "qvel"} <= infos.keys():
            parts = [np.asarray(infos[name]) for name in _PHYSICS if name in infos]
            arrays["physics"] = np.concatenate(parts, axis=1)
        yield label, arrays


def _minari() -> Any:
    try:
        import minari
    except ImportError as error:
        raise UserError("this needs Minari: pip install rewardfree[minari]") from error
    return minari


@contextmanager
def _root(folder: Path | None) -> Iterator[None]:
    """Have Minari look below a folder, for as long as this lasts."""
    before = os.environ.get(_ROOT)
    if folder is not None:
        os.environ[_ROOT] = str(folder)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_ROOT, None)
        else:
            os.environ[_ROOT] = before
