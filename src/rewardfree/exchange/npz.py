"""Data for and from other tools: folders of episodes as ExORL and URLB write them.

One .npz file per episode of T steps, every array with T + 1 rows, of which the first is the start (its action
and reward are dummies): observation, action in [-1, 1], reward, discount (0 where the episode ended by
itself) and physics, the simulator's qpos, qvel and act side by side.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rewardfree import registry, trust
from rewardfree.data import files
from rewardfree.data.dataset import Dataset, DatasetWriter, versions
from rewardfree.errors import UserError
from rewardfree.interfaces import Domain

NEEDED = ("observation", "action", "discount")


def export_npz(data: Dataset, folder: Path, reward: np.ndarray | None = None) -> int:
    """Write every episode to a file of its own; the reward is what is laid over the data, or 0."""
    files.refuse_full(folder)
    first = 0
    for number, episode in enumerate(data.each_episode()):
        length = len(episode["action"])
        paid = np.zeros(length) if reward is None else reward[first : first + length]
        arrays = {
            "observation": episode["observation"],
            "action": _after_a_dummy(episode["action"]),
            "reward": _after_a_dummy(paid[:, None].astype(np.float32)),
            "discount": np.concatenate([[[1.0]], 1.0 - episode["terminated"][:, None]]).astype(np.float32),
            "physics": np.concatenate([episode[name] for name in ("qpos", "qvel", "act")], axis=1),
            "skill": _after_a_dummy(episode["skill"]),
        }
        _save(folder / f"episode_{number:06d}_{length}.npz", arrays)
        first += length
    return data.episodes


def import_npz(folder: Path, domain: str, out: Path) -> Dataset:
    """A run from such a folder. Quantities are recomputed from the physics; its rewards are left behind."""
    paths = sorted(folder.glob("*.npz"), key=_in_order)
    if not paths:
        raise UserError(f"there are no .npz files in {folder}; give the folder with one file per episode")
    return write_run(((str(path), files.read_npz(path)) for path in paths), domain, folder.name, out)


def write_run(episodes: Iterable[tuple[str, dict[str, Any]]], domain: str, source: str, out: Path) -> Dataset:
    """A run from episodes of the layout above, each with what to call it in an error."""
    world: Domain = registry.load("domain", domain)()
    files.refuse_full(out)
    record = {"domain": domain, "imported": source, "versions": versions()}
    files.write_json(out / "run.json", {**record, "status": "running"})
    writer = DatasetWriter(out / "data", world.spec, trust.prover(world.spec))
    frames = count = 0
    for label, arrays in episodes:
        episode = _episode(label, arrays, world)
        writer.append(episode)
        frames, count = frames + len(episode["action"]), count + 1
    writer.flush()
    counts = {"frames": frames, "episodes": count, "updates": 0, "seconds": 0.0}
    files.write_json(out / "run.json", {**record, "status": "complete", **counts})
    return Dataset.open(out)


def _episode(label: str, arrays: dict[str, Any], world: Domain) -> dict[str, np.ndarray]:
    spec = world.spec
    for name in NEEDED:
        if name not in arrays:
            raise UserError(f"{label} has no array '{name}'; it has {', '.join(sorted(arrays)) or 'none'}")
    rows = len(arrays["observation"]) if np.ndim(arrays["observation"]) else 0
    widths = {"observation": spec.observation, "action": spec.action, "discount": 1}
    for name, width in widths.items():
        array = np.asarray(arrays[name])
        array = arrays[name] = (
            array.reshape(len(array), -1) if array.ndim and len(array) else np.zeros((0, 0))
        )
        if array.shape != (rows, width):
            raise UserError(f"{label}: {name} has shape {array.shape}, {spec.domain} needs ({rows}, {width})")
        if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
            raise UserError(f"{label}: {name} has values that are not numbers")
    if rows < 2:
        raise UserError(f"{label} holds no step")
    qpos, qvel, act = _physics(label, arrays.get("physics"), rows, world)
    observation, action = arrays["observation"].astype(np.float32), arrays["action"][1:].astype(np.float32)
    skill = np.asarray(arrays.get("skill", np.zeros((rows, 0))))
    if len(skill) != rows or skill.dtype.kind not in "fiub":
        raise UserError(f"{label}: skill does not fit the {rows} rows of the others")
    return {
        "observation": observation,
        "qpos": qpos,
        "qvel": qvel,
        "act": act,
        "quantities": world.quantities_of(observation, qpos, qvel),
        "action": action,
        "ctrl": world.control(action),
        "terminated": arrays["discount"][1:, 0] == 0,
        "skill": skill.reshape(rows, -1)[1:].astype(np.float32),
    }


def _physics(
    label: str, physics: np.ndarray | None, rows: int, world: Domain
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    widths = world.physics
    total = sum(widths)
    if total and (physics is None or physics.shape != (rows, total)):
        have = "none" if physics is None else f"shape {physics.shape}"
        raise UserError(
            f"{label}: {world.spec.domain} needs physics of shape ({rows}, {total}); there is {have}"
        )
    whole = np.zeros((rows, 0)) if physics is None or not total else physics.astype(np.float64)
    first, second = widths[0], widths[0] + widths[1]
    return whole[:, :first], whole[:, first:second], whole[:, second:]


def _save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    files.write_bytes(path, content.getvalue())


def _after_a_dummy(array: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros_like(array[:1]), array])


def _in_order(path: Path) -> tuple[list[int], str]:
    """By the numbers in the name: episode_2 comes before episode_10."""
    return [int(number) for number in re.findall(r"\d+", path.stem)], path.name
