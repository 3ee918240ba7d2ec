"""The only place that shows and writes down progress: metrics.jsonl, a bar, TensorBoard if asked for."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rewardfree.errors import UserError
from rewardfree.interfaces import Metrics

_SHOWN = 4
"""Metrics that fit beside a bar."""


class Monitor:
    """Follows one job. Use it as a context; `record` is called as often as there is news."""

    def __init__(
        self, title: str, total: int, unit: str, folder: Path | None, *, quiet: bool, tensorboard: bool
    ) -> None:
        self._unit = unit
        self._folder = folder
        self._tensorboard = tensorboard
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rates]}"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[metrics]}"),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), disable=quiet)
        self._task = self._bar.add_task(title, total=total, rates="", metrics="")
        self._started = time.perf_counter() - _spent(folder)

    def __enter__(self) -> Self:
        self._file = None
        self._writer: Any = None
        if self._folder is not None:
            self._file = (self._folder / "metrics.jsonl").open("a", encoding="utf-8")
            if self._tensorboard:
                from tensorboardX import SummaryWriter  # not needed by most runs

                self._writer = SummaryWriter(str(self._folder / "tensorboard"))
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if self._file is not None:
            self._file.close()
        if self._writer is not None:
            self._writer.close()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def record(self, done: int, counts: Mapping[str, int], metrics: Metrics) -> None:
        """News after `done` units: further counts whose rate is of interest, and the algorithm's metrics."""
        values = {name: _finite(value) for name, value in metrics.items()}
        counted = {self._unit: done, **counts}
        self._show(done, counted, values)
        if self._file is None:
            return
        line = {**counted, "seconds": round(self.seconds, 3), **values}
        try:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        except OSError as error:
            raise UserError(
                f"cannot write {self._file.name}: {error.strerror}; make room and run again"
            ) from error
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, math.nan if value is None else value, done)

    def _show(self, done: int, counted: Mapping[str, int], values: Mapping[str, float | None]) -> None:
        seconds = max(self.seconds, 1e-9)
        rates = "  ".join(f"{count / seconds:,.0f} {name}/s" for name, count in counted.items())
        shown = [f"{name} {value:.3g}" for name, value in values.items() if value is not None][:_SHOWN]
        self._bar.update(self._task, completed=done, rates=rates, metrics="  ".join(shown))


def _spent(folder: Path | None) -> float:
    """Seconds that a resumed job has on its clock: its log goes on, and so does its time."""
    if folder is None or not (folder / "metrics.jsonl").exists():
        return 0.0
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return float(json.loads(lines[-1])["seconds"]) if lines else 0.0


def _finite(value: Any) -> float | None:
    """JSON has no NaN."""
    number = float(np.asarray(value))
    return number if math.isfinite(number) else None
