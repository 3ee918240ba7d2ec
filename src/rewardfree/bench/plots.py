"""The figures of the report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from rewardfree.bench.statistics import Scores, profile

Curve = Sequence[Sequence[float]]
"""Points (x, y)."""
_PALETTE = colormaps["tab20"].colors  # type: ignore[attr-defined]


def colours(labels: Sequence[str]) -> dict[str, Any]:
    """A colour for each explorer: the strong half of the palette first."""
    return {label: _PALETTE[i * 2 % 20 + i // 10] for i, label in enumerate(labels)}


def curves(
    panels: Mapping[str, Mapping[str, Sequence[Curve]]], colour: Mapping[str, Any], x: str, y: str
) -> Figure:
    """A panel for each title, in it a line for each label: the mean of its curves, and their range."""
    figure, grid = _panels(len(panels), 2, 3.0)
    handles: dict[str, Any] = {}
    for axes, (title, lines) in zip(grid, panels.items(), strict=True):
        for label, several in lines.items():
            handles[label] = _band(axes, several, colour[label])
        axes.set(title=title, xlabel=x, ylabel=y)
        axes.grid(alpha=0.3)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=6, fontsize=8)
    return figure


def own_curves(lines: Mapping[str, Sequence[Curve]], colour: Mapping[str, Any], x: str) -> Figure:
    """A small panel of its own for each label: their scales have nothing in common."""
    figure, grid = _panels(len(lines), 4, 2.2)
    for axes, (label, several) in zip(grid, lines.items(), strict=True):
        _band(axes, several, colour[label])
        axes.set(title=label, xlabel=x)
        axes.grid(alpha=0.3)
    return figure


def profiles(scores: Mapping[str, Scores], colour: Mapping[str, Any]) -> Figure:
    """For each level of the score the share of runs above it."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.add_subplot()
    levels = np.linspace(0, 1, 101)
    for label, one in scores.items():
        axes.plot(levels, profile(one, levels), label=label, color=colour[label])
    axes.set(xlabel="share of the full score", ylabel="share of runs above it", ylim=(-0.02, 1.02))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=2)
    return figure


def maps(found: Mapping[str, Mapping[str, Any]]) -> Figure:
    """How often each cell of two quantities was visited, on a logarithmic scale."""
    figure, grid = _panels(len(found), 4, 2.4)
    for axes, (label, one) in zip(grid, found.items(), strict=True):
        visits, (x, y) = np.array(one["visits"]), one["axes"]
        axes.imshow(
            np.ma.masked_equal(visits.T, 0),
            origin="lower",
            extent=(x["low"], x["high"], y["low"], y["high"]),
            aspect="auto",
            norm=LogNorm(1, max(2, visits.max())),
        )
        axes.set(title=label, xlabel=x["quantity"], ylabel=y["quantity"])
    return figure


def _panels(count: int, columns: int, height: float) -> tuple[Figure, list[Any]]:
    columns = max(1, min(columns, count))
    rows = max(1, -(-count // columns))
    figure = Figure(figsize=(10, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in grid[count:]:
        axes.set_axis_off()
    return figure, grid[:count]


def _band(axes: Any, several: Sequence[Curve], colour: Any) -> Any:
    points: dict[float, list[float]] = defaultdict(list)
    for curve in several:
        for x, y in curve:
            points[x].append(y)
    xs = sorted(points)
    (line,) = axes.plot(xs, [np.mean(points[x]) for x in xs], color=colour, marker=".", markersize=3)
    low, high = [min(points[x]) for x in xs], [max(points[x]) for x in xs]
    axes.fill_between(xs, low, high, color=colour, alpha=0.15)
    return line
