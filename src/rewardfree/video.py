"""Films of an episode, at the speed at which it happened."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Self

import imageio_ffmpeg
import numpy as np

from rewardfree.errors import UserError
from rewardfree.interfaces import Domain

HEIGHT, WIDTH = 240, 320
FRAMES_PER_SECOND = 25


class Film:
    """Call it after every step of the simulator; the mp4 is complete when the context ends."""

    def __init__(self, path: Path, simulator: Domain) -> None:
        self._simulator = simulator
        self._every = max(1, round(1 / (FRAMES_PER_SECOND * simulator.spec.timestep)))
        self._steps = 0
        self._path = path
        self._frames: Generator[None, np.ndarray | None, None] | None = None

    def __enter__(self) -> Self:
        self._simulator.render(HEIGHT, WIDTH)  # no back-end for pictures: say so before anything is written
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()
        except OSError as error:
            raise UserError(f"cannot write {self._path}: {error.strerror}") from error
        rate = 1 / (self._every * self._simulator.spec.timestep)
        self._frames = imageio_ffmpeg.write_frames(str(self._path), (WIDTH, HEIGHT), fps=rate)
        self._frames.send(None)
        return self

    def __call__(self) -> None:
        if self._steps % self._every == 0 and self._frames is not None:
            self._frames.send(np.ascontiguousarray(self._simulator.render(HEIGHT, WIDTH)))
        self._steps += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._frames is not None:
            self._frames.close()
