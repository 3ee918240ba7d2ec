"""Films of an episode, at the speed at which it happened."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import imageio_ffmpeg

from rewardfree.errors import UserError
from rewardfree.interfaces import Domain

HEIGHT, WIDTH = 240, 320
FRAMES_PER_SECOND = 25


class Film:
    """Call it after every step of the simulator; the mp4 is complete when the context ends.

    ffmpeg is started here because the package's own writer forks, which may hang a process that runs JAX.
    """

    def __init__(self, path: Path, simulator: Domain) -> None:
        self._path = path
        self._simulator = simulator
        self._every = max(1, round(1 / (FRAMES_PER_SECOND * simulator.spec.timestep)))
        self._steps = 0

    def __enter__(self) -> Self:
        self._simulator.render(HEIGHT, WIDTH)  # no back-end for pictures: say so before anything is written
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()
        except OSError as error:
            raise UserError(f"cannot write {self._path}: {error.strerror}") from error
        rate = 1 / (self._every * self._simulator.spec.timestep)
        raw = [
            "-f",
            "rawvideo",
            "-pix_fmt",
            "rgb24",
            "-s",
            f"{WIDTH}x{HEIGHT}",
            "-r",
            f"{rate:.3f}",
            "-i",
            "-",
        ]
        encoded = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-f", "mp4", str(self._path)]
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error", *raw, *encoded]
        self._ffmpeg = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        return self

    def __call__(self) -> None:
        if self._steps % self._every == 0 and self._ffmpeg.stdin is not None:
            self._ffmpeg.stdin.write(self._simulator.render(HEIGHT, WIDTH).tobytes())
        self._steps += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _, complaints = self._ffmpeg.communicate()
        if self._ffmpeg.returncode and error is None:
            raise UserError(f"cannot write {self._path}: {complaints.decode().strip().splitlines()[-1]}")
