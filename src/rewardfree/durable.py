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
from rewardfree.data.files import Arrays
from rewardfree.errors import UserError

_NAME = re.compile(r"(\d{10})-([0-9a-f]{16})\.safetensors")
_RECENT = 2
"""The newest checkpoints are kept, however close: one may be damaged by a failing disk."""


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
            with contextlib.suppress(UserError, ValueError, KeyError):
                if files.sha256(path)[:16] == match[2]:
                    arrays = files.map_arrays(path)
                    record = json.loads(arrays.pop("record").tobytes())
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
            raise UserError(f"{folder} is in use by process {owner}; wait for it, or stop it first") from None
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
