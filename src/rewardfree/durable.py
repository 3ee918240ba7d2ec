"""What makes a job survive: checkpoints, a lock on its folder, and a way to stop that loses nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from rewardfree.data import files
from rewardfree.data.dataset import versions
from rewardfree.data.files import Arrays
from rewardfree.errors import UserError
from rewardfree.interfaces import Metrics

_NAME = re.compile(r"(\d{10})-([0-9a-f]{16})\.safetensors")
DIVERGED = 1e9
"""A metric of this size is no value of anything any more."""
_RECENT = 2
"""The newest checkpoints are kept, however close: one may be damaged by a failing disk."""


class InUseError(UserError):
    """Another process works in the folder."""


class StoppedError(UserError):
    """The job was asked to stop, and did so where it can be resumed."""


class Checkpoint(NamedTuple):
    """A moment of a job from which it continues as if nothing had happened."""

    done: int
    """Frames or updates so far."""
    arrays: Arrays
    record: dict[str, Any]


class Checkpoints:
    """The checkpoints of one job: the two newest, and the first one in every `every` units of work."""

    def __init__(self, folder: Path, every: int) -> None:
        self._folder, self._every = folder, every

    def write(self, checkpoint: Checkpoint) -> None:
        """One file, whole or absent; its name holds the checksum of what is in it."""
        record = np.frombuffer(json.dumps(checkpoint.record).encode(), np.uint8)
        content = files.array_bytes({**checkpoint.arrays, "record": record})
        digest = hashlib.sha256(content).hexdigest()[:16]
        files.write_bytes(self._folder / f"{checkpoint.done:010d}-{digest}.safetensors", content)
        self._drop()

    def last(self) -> Checkpoint | None:
        """The newest checkpoint that is whole."""
        for path in reversed(self._paths()):
            match = _NAME.fullmatch(path.name)
            assert match is not None
            with contextlib.suppress(UserError), files.parsing(path):
                if files.sha256(path)[:16] == match[2]:
                    arrays = files.map_arrays(path)
                    record = json.loads(arrays.pop("record").tobytes())
                    if isinstance(record, dict):
                        return Checkpoint(int(match[1]), arrays, record)
        return None

    def _paths(self) -> list[Path]:
        return sorted(path for path in self._folder.glob("*.safetensors") if _NAME.fullmatch(path.name))

    def _drop(self) -> None:
        """Keep what the rule keeps."""
        paths = self._paths()
        milestones: dict[int, Path] = {}
        for path in paths:
            milestones.setdefault(int(path.name[:10]) // self._every, path)
        for path in set(paths[:-_RECENT]) - set(milestones.values()):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time. The lock is the operating system's, so one that died holds none."""
    try:
        import fcntl
    except ImportError:  # not on this system
        yield
        return
    path = folder / "lock"
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            raise InUseError(
                f"{folder} is in use by process {owner}; wait for it, or stop it first"
            ) from None
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


class Interrupts:
    """The first Ctrl-C asks the job to stop where it can be resumed; the second stops it at once."""

    def __init__(self) -> None:
        self.asked = False
        self._main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Interrupts:
        if self._main:
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def claim(folder: Path, record: str, what: str, config: dict[str, Any], resume: bool = False) -> Path:
    """Make the folder of a new run or plan; one that holds anything already is left alone, or resumed."""
    if (folder / record).exists():
        if not resume:
            raise UserError(f"{folder} already holds a {what}: resume it, choose another --out, or remove it")
        before = files.read_json(folder / record)
        for name, value in json.loads(json.dumps(config)).items():
            if before.get(name) != value:
                raise UserError(f"{folder} was made with another {name}: resume it with the settings it has")
        return folder
    if resume and not folder.exists():
        raise UserError(f"there is no {what} in {folder} to resume")
    if resume:
        files.clean(folder)  # of a writer that was killed before its first record was whole
    files.refuse_full(folder)
    files.write_json(folder / record, {**config, "versions": versions(), "status": "running"})
    return folder


def update(path: Path, **changes: Any) -> None:
    """Change some entries of a JSON file."""
    files.write_json(path, {**files.read_json(path), **changes})


def keep_lines(path: Path, count: int) -> None:
    """Drop what a log says of the time after a checkpoint."""
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        files.write_bytes(path, "".join(lines[:count]).encode())


def refuse_divergence(metrics: Metrics) -> None:
    """Stop before noise is stored: a metric that is not finite, or beyond any value."""
    for name, value in metrics.items():
        number = float(np.asarray(value))
        if not abs(number) < DIVERGED:  # NaN is not
            raise FloatingPointError(f"{name} is {number:g}")


def diverged(where: str, error: FloatingPointError, checkpoints: Checkpoints | None) -> UserError:
    """What to tell of a learner that diverged."""
    last = checkpoints.last() if checkpoints is not None else None
    good = "there is no checkpoint" if last is None else f"the last good checkpoint is at {last.done}"
    return UserError(f"the learner diverged at {where}: {error}; {good}")
