"""What `inspect` found, as lines of text and as one self-contained HTML page."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from rewardfree import webpage
from rewardfree.data.dataset import Dataset, LabelledDataset
from rewardfree.rewards.support import coverage_map
from rewardfree.webpage import bullets, pixels


def lines(found: dict[str, Any]) -> list[str]:
    """The whole page as text."""
    text = [
        f"{found['domain']}: {found['frames']} frames in {found['episodes']} episodes",
        *data_lines(found),
    ]
    for name, row in found["rewards"].items():
        text += ["", f"{name}: {row['verdict']}, {row['why']}", *(f"  {line}" for line in reward_lines(row))]
    return text


def data_lines(found: dict[str, Any]) -> list[str]:
    """Where the data has been."""
    cover = found["coverage"]
    text = [f"coverage: {cover['cells']} of {cover['of']} cells of {' x '.join(cover['quantities'])}"]
    if reference := cover.get("reference"):
        text.append(
            f"in {reference['frames']} frames: {reference['cells']} cells, uniformly random actions"
            f" {reference['random_cells']}; effective dimension of the observations"
            f" {reference['dimension']:.1f}, random {reference['random_dimension']:.1f}"
        )
    if found["skills"]["length"]:
        text.append(
            f"skills: {found['skills']['distinct']} different ones of length {found['skills']['length']}"
        )
    return text


def reward_lines(row: dict[str, Any]) -> list[str]:
    """What was seen of one reward."""
    if not row.get("episodes"):
        return []
    quantiles = ", ".join(f"{float(q):.1%} {value:.3g}" for q, value in row["quantiles"].items())
    windows = ", ".join(f"{value:.3g} over {n}" for n, value in row["windows"].items())
    above = ", ".join(f"{share:.2%} above {float(level):.0%}" for level, share in row["above"].items())
    text = [
        f"reward: mean {row['mean']:.4f}, from {row['min']:.4f} to {row['max']:.4f}; quantiles {quantiles}",
        f"of its range: {above}; at least half of it in {row['successes']} of {row['episodes']} episodes",
        f"best mean in one episode: {windows} steps; best return {row['returns']['best']:.1f},"
        f" mean {row['returns']['mean']:.1f}",
    ]
    if row["unseen"]:
        text.append(f"warning: it reads {', '.join(row['unseen'])}, which the policy cannot see")
    if plan := row["plan"]:
        text.append(f"planned: return {plan['return']:.1f}{_outside(plan)}")
    return text


def _outside(plan: dict[str, Any]) -> str:
    if plan["outside"] is None:
        return "; one critic, so there is no disagreement to look at"
    where = "outside the data" if plan["outside"] > 0.5 else "within the data"
    return (
        f"; its critics disagree more than on 95 % of the data in {plan['outside']:.0%} of its steps: {where}"
    )


def write_page(path: Path, found: dict[str, Any], data: Dataset, labelled: Sequence[LabelledDataset]) -> None:
    """Write the page. Pictures are inside it: nothing is fetched."""
    parts = [
        f"<h1>Can this data solve it?</h1><p><code>{html.escape(found['run'])}</code>,"
        f" {html.escape(found['domain'])}, {found['frames']} frames in {found['episodes']} episodes</p>",
        bullets(data_lines(found)),
    ]
    if data.frames:
        parts.append(pixels(_map_figure(data), "How often each cell of two quantities was visited"))
    for over, (name, row) in zip(labelled, found["rewards"].items(), strict=True):
        word = row["verdict"]
        drawn = pixels(_reward_figure(over), "Rewards and returns in the data") if data.frames else ""
        parts.append(
            f"<section><h2><code>{html.escape(name)}</code></h2>"
            f"<p><span class='verdict {word.replace(' ', '-')}'>{word}</span> {html.escape(row['why'])}</p>"
            f"{bullets(reward_lines(row))}{drawn}</section>"
        )
    webpage.write_page(path, "Can this data solve it?", parts)


def _map_figure(data: Dataset) -> Figure:
    counts, (first, second) = coverage_map(data)
    figure = Figure(figsize=(5.5, 4), layout="constrained")
    axes = figure.add_subplot()
    drawn = axes.imshow(
        np.ma.masked_equal(counts.T, 0),
        origin="lower",
        extent=(first.low, first.high, second.low, second.high),
        aspect="auto",
        norm=LogNorm(1, max(2, counts.max())),
    )
    axes.set(xlabel=first.quantity, ylabel=second.quantity, title="visits")
    figure.colorbar(drawn)
    return figure


def _reward_figure(over: LabelledDataset) -> Figure:
    figure = Figure(figsize=(9, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.hist(over.reward, bins=60, log=True)
    left.set(xlabel="reward", ylabel="transitions")
    ends = np.cumsum(over.data.lengths)
    returns = [float(part.sum()) for part in np.split(np.asarray(over.reward), ends[:-1])]
    right.plot(returns, ".")
    right.set(xlabel="episode", ylabel="return")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    return figure
