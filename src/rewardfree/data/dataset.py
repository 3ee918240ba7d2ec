"""The reward-free data set on disk: append-only shards of whole episodes, named by a manifest."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from jaxtyping import Float, Int
from typeguard import CollectionCheckStrategy, TypeCheckError, check_type

from rewardfree.data import files
from rewardfree.data.derived import Derived
from rewardfree.data.transitions import STATE_ARRAYS, STEP_ARRAYS, Transitions
from rewardfree.errors import UserError
from rewardfree.interfaces import Axis, Spec, State, Step

FORMAT = 1
SHARD_FRAMES = 5000
NO_SKILL = np.zeros(0, np.float32)
REWARD_TIMING = "r_t = r(s_t, a_t, s_{t+1}); a name reads s_{t+1}"


def versions() -> dict[str, str]:
    """What produced the data: a simulator of another version may not repeat it."""
    return {name: metadata.version(name) for name in ("rewardfree", "mujoco", "dm_control", "jax", "numpy")}


class Recorder:
    """Collects one episode: T + 1 states, T steps."""

    def __init__(self, first: State) -> None:
        self._states = [first]
        self._steps: list[tuple[np.ndarray, np.ndarray, bool, np.ndarray]] = []

    def add(self, action: np.ndarray, step: Step, skill: np.ndarray = NO_SKILL) -> None:
        self._states.append(step.state)
        self._steps.append((np.asarray(action, np.float32), step.ctrl, step.terminated, skill))

    def __len__(self) -> int:
        return len(self._steps)

    def arrays(self) -> dict[str, np.ndarray]:
        states = {name: np.stack([getattr(state, name) for state in self._states]) for name in STATE_ARRAYS}
        steps = (np.stack(column) for column in zip(*self._steps, strict=True))
        return states | dict(zip(STEP_ARRAYS, steps, strict=True))


Prove = Callable[[Mapping[str, np.ndarray], Int[np.ndarray, " E"]], float]
"""From a shard's arrays and episode lengths to the largest error of its round trip."""


class Written(NamedTuple):
    """How far a data set had come."""

    shards: int
    pending: list[dict[str, np.ndarray]]
    """Episodes that were not in a shard yet."""


class DatasetWriter:
    """Appends episodes; every so many frames they become a shard, and the manifest names it."""

    def __init__(
        self, folder: Path, spec: Spec, prove: Prove | None = None, since: Written | None = None
    ) -> None:
        """`prove` looks at every shard before it is written, and its finding goes into the manifest.

        With `since`, continue from there: shards that came later are written again, the same.
        """
        self._folder, self._prove = folder, prove
        self.pending: list[dict[str, np.ndarray]] = []
        """Episodes that are not in a shard yet."""
        self._manifest: dict[str, Any] = {
            "format": FORMAT,
            "reward_timing": REWARD_TIMING,
            "versions": versions(),
            "spec": dataclasses.asdict(spec),
            "shards": [],
        }
        if since is not None:
            shards = files.read_json(folder / "manifest.json")["shards"]
            if len(shards) < since.shards:
                raise UserError(f"{folder} has lost shards that its checkpoint counts on: explore again")
            self._manifest["shards"] = shards[: since.shards]
            self.pending = list(since.pending)
        files.write_json(folder / "manifest.json", self._manifest)

    @property
    def written(self) -> Written:
        """How far it has come."""
        return Written(len(self._manifest["shards"]), list(self.pending))

    @property
    def lengths(self) -> list[int]:
        """Frames of each episode that was appended."""
        stored = [length for shard in self._manifest["shards"] for length in shard["lengths"]]
        return stored + [len(episode["action"]) for episode in self.pending]

    def append(self, episode: dict[str, np.ndarray]) -> bool:
        """Whether that completed a shard."""
        self.pending.append(episode)
        full = sum(len(pending["action"]) for pending in self.pending) >= SHARD_FRAMES
        if full:
            self.flush()
        return full

    def flush(self) -> None:
        """Write what is pending. The shard comes first: what the manifest names is complete."""
        if not self.pending:
            return
        name = f"shard-{len(self._manifest['shards']):05d}.safetensors"
        lengths = [len(episode["action"]) for episode in self.pending]
        arrays = {key: np.concatenate([episode[key] for episode in self.pending]) for key in self.pending[0]}
        proof = {} if self._prove is None else {"round_trip": self._prove(arrays, np.array(lengths))}
        size, digest = files.write_arrays(self._folder / name, arrays)
        entry = {"file": name, "bytes": size, "sha256": digest, "lengths": lengths, **proof}
        self._manifest["shards"].append(entry)
        files.write_json(self._folder / "manifest.json", self._manifest)
        self.pending = []


class Dataset:
    """Whole episodes, read through memory maps, read-only. There is no reward in it."""

    def __init__(
        self,
        path: Path,
        spec: Spec,
        shards: Sequence[tuple[Int[np.ndarray, " E"], Mapping[str, np.ndarray]]],
        digest: str,
        manifest: Mapping[str, Any],
    ) -> None:
        """`shards` are episode lengths and stored arrays; `digest` stands for all that they hold."""
        self.manifest = manifest
        self.path = path
        self.spec = spec
        self.digest = digest
        self.derived = Derived(spec.domain, path / "data", [arrays for _, arrays in shards], digest)
        starts = np.cumsum([0, *(len(arrays["qpos"]) for _, arrays in shards)])
        self.shards = tuple(
            Transitions(spec, arrays, lengths, partial(self._derive, int(start), len(arrays["qpos"])))
            for start, (lengths, arrays) in zip(starts[:-1], shards, strict=True)
        )
        self.lengths: Int[np.ndarray, " E"] = np.concatenate(
            [lengths for lengths, _ in shards] or [np.zeros(0, np.int64)]
        )

    @classmethod
    def open(cls, path: str | Path) -> Dataset:
        """Open a run's data set, checking sizes and checksums.

        Raises UserError if there is none, if it is damaged, or if a newer version wrote it.
        """
        folder = Path(path) / "data"
        if not (folder / "manifest.json").is_file():
            raise UserError(f"{path} holds no run: there is no data/manifest.json in it; give a run's folder")
        manifest = files.read_json(folder / "manifest.json")
        with files.parsing(folder / "manifest.json"):
            if manifest["format"] > FORMAT:
                raise UserError(f"{folder} was written by a newer version of rewardfree: upgrade to read it")
            spec = spec_from_json(manifest["spec"])
            shards = [open_shard(folder, entry, spec) for entry in manifest["shards"]]
            digest = hashlib.sha256("".join(entry["sha256"] for entry in manifest["shards"]).encode())
        return cls(Path(path), spec, shards, digest.hexdigest(), manifest)

    @property
    def frames(self) -> int:
        return int(self.lengths.sum())

    @property
    def episodes(self) -> int:
        return len(self.lengths)

    def first(self, episodes: int) -> Dataset:
        """The data set as it was after so many episodes: nothing is copied."""
        if not 1 <= episodes <= self.episodes:
            raise UserError(f"{self.path} has {self.episodes} episodes: there is no prefix of {episodes}")
        kept, left = [], episodes
        for shard in self.shards:
            lengths = shard.lengths[:left]
            if not len(lengths):
                break
            steps = int(lengths.sum())
            states = {name: shard.stored(name)[: steps + len(lengths)] for name in STATE_ARRAYS}
            kept.append((lengths, states | {name: shard.stored(name)[:steps] for name in STEP_ARRAYS}))
            left -= len(lengths)
        digest = hashlib.sha256(f"{self.digest} {episodes}".encode()).hexdigest()
        return Dataset(self.path, self.spec, kept, digest, self.manifest)

    def array(self, name: str) -> np.ndarray:
        """One stored array, flat over all shards; a view of the file if there is a single shard."""
        parts = [shard.stored(name) for shard in self.shards]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def each_episode(self) -> Iterator[dict[str, np.ndarray]]:
        """The stored arrays of one episode after the other: T + 1 states, T steps."""
        for shard in self.shards:
            step = 0
            for number, length in enumerate(shard.lengths):
                states = {name: shard.stored(name)[step + number :][: length + 1] for name in STATE_ARRAYS}
                steps = {name: shard.stored(name)[step:][:length] for name in STEP_ARRAYS}
                yield states | steps
                step += int(length)

    def values(self, name: str) -> np.ndarray:
        """A named quantity over all transitions, as a reward sees it."""
        parts = [shard[name] for shard in self.shards]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def _derive(self, start: int, rows: int, name: str) -> np.ndarray:
        return self.derived[name][start : start + rows]

    def __repr__(self) -> str:
        return f"Dataset({self.path}: {self.spec.domain}, {self.frames} frames, {self.episodes} episodes)"


@dataclass(frozen=True)
class LabelledDataset:
    """A reward laid over a data set: many rewards share one. The only thing a planner accepts."""

    data: Dataset
    name: str
    reward: Float[np.ndarray, " n"]
    """float32, one per transition."""
    memory: float | None = None
    """Gigabytes that a replay of it may take in memory; half of the machine's by default."""


def spec_from_json(value: Mapping[str, Any]) -> Spec:
    """The Spec that a manifest holds; whatever else it holds raises."""
    fields = dict(value)
    fields["quantities"] = tuple(fields["quantities"])
    fields["joints"] = {name: tuple(bounds) for name, bounds in fields["joints"].items()}
    fields["coverage"] = tuple(Axis(**axis) for axis in fields["coverage"])
    for name in ("observation_names", "unseen"):
        fields[name] = tuple(fields.get(name, ()))
    spec = Spec(**fields)
    try:
        for name, kind in get_type_hints(Spec).items():
            check_type(getattr(spec, name), kind, collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS)
    except TypeCheckError as error:
        raise TypeError(f"{name} {error}") from error
    return spec


def open_shard(
    folder: Path, entry: Mapping[str, Any], spec: Spec
) -> tuple[np.ndarray, Mapping[str, np.ndarray]]:
    """Episode lengths and arrays of a shard, once it is what the manifest says. Raises UserError if not."""
    name = entry["file"]
    if not re.fullmatch(r"shard-\d+\.safetensors", name):
        raise UserError(f"{folder / 'manifest.json'} names a file outside the data set: {name!r}")
    path = folder / name
    if not path.is_file():
        raise UserError(f"{path} is missing: the data set is incomplete; rewardfree check --repair drops it")
    if path.stat().st_size != entry["bytes"] or files.sha256(path) != entry["sha256"]:
        raise UserError(
            f"{path} is damaged: its size or checksum is not the one in the manifest;"
            " rewardfree check --repair drops it"
        )
    arrays = files.map_arrays(path)
    lengths = np.asarray(entry["lengths"], np.int64)
    if lengths.ndim != 1 or (lengths < 1).any():
        raise ValueError(f"{name} has no episodes of such lengths")
    frames = int(lengths.sum())
    for array in (*STATE_ARRAYS, *STEP_ARRAYS):
        rows = frames + len(lengths) if array in STATE_ARRAYS else frames
        kind, columns = _layout(spec).get(array, (np.float64, None))
        found = arrays.get(array)
        if (
            found is None
            or found.dtype != kind
            or found.shape[:1] != (rows,)
            or found.ndim != (1 if array == "terminated" else 2)
            or (columns is not None and found.shape[1:] != (columns,))
        ):
            raise UserError(f"{path} does not fit the manifest at '{array}'")
    ends = np.array(list(spec.joints.values()), np.int64).reshape(-1, 4)
    if (
        (ends < 0).any()
        or (ends[:, 1] > arrays["qpos"].shape[1]).any()
        or (ends[:, 3] > arrays["qvel"].shape[1]).any()
    ):
        raise UserError(f"{path} does not fit the manifest at its joints")
    return lengths, arrays


def _layout(spec: Spec) -> dict[str, tuple[type, int | None]]:
    """Type and columns of the arrays that the spec speaks of; the others are the simulator's own, float64."""
    return {
        "observation": (np.float32, spec.observation),
        "quantities": (np.float32, len(spec.quantities)),
        "action": (np.float32, spec.action),
        "terminated": (np.bool_, None),
        "skill": (np.float32, None),
    }
