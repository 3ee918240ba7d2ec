"""The comparison as one page: tables beside the published ones, statistics, curves, maps and downloads."""

from __future__ import annotations

import html
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rewardfree.bench import plots, published
from rewardfree.bench.results import FULL_SCORE, Plans, Results, mean_and_std
from rewardfree.bench.statistics import (
    LEVEL,
    Scores,
    difference,
    interval,
    iqm,
    probability_of_improvement,
    ratio,
)
from rewardfree.webpage import (
    bullets,
    captioned,
    download,
    note,
    picture,
    pixels,
    section,
    table,
    write_page,
)


def report(results: Results, path: Path) -> None:
    """Write the page."""
    parts = [_head(results)]
    if results.planners:
        plans = results.plans(results.planners[0])
        for domain in results.domains:
            if results.tasks(domain):
                parts += [
                    _table2(results, plans, domain),
                    _aggregate(results, plans, domain),
                    _planning_steps(results, plans, domain),
                    _prefixes(results, domain),
                ]
        parts.append(_confound(results))
    parts += [_exploration(results, domain) for domain in results.domains]
    parts.append(_details(results))
    write_page(path, "Reward-free exploration: Table 2", parts)


def _head(results: Results) -> str:
    runs = [job for job, _ in results.explored]
    seeds = list(Counter((job.domain, job.label) for job in runs).values()) or [0]
    hours = sum(cell.result["seconds"] for cell in results.cells) / 3600
    frames = ", ".join(f"{count:,}" for count in sorted({job.frames for job in runs}))
    widths = ", ".join(str(width) for width in sorted({job.explorer.get("hidden", 0) for job in runs} - {0}))
    updates = ", ".join(f"{count:,}" for count in sorted(results.updates))
    lines = [
        f"Ours: {frames} frames, width {widths or 'none'}, {updates or 'no'} updates of planning,"
        f" {_range(seeds)} {'seed' if max(seeds) == 1 else 'seeds'}; {hours:.1f} hours of one core in all.",
        f"Published: {published.BUDGET}.",
        "Where the two budgets differ, our columns can be compared with each other, not with the published"
        " numbers: those show what the full budget gives.",
    ]
    if results.planners:
        lines.append(
            f"Every explorer's data is planned with {results.planners[0]}: fresh networks, the stored"
            " transitions and nothing else. The return is the mean of 10 episodes of the last policy."
        )
    if min(seeds) < 3:
        lines.append("With fewer than three seeds, a difference between two columns may well be chance.")
    command = f"<p><code>{html.escape(results.command)}</code></p>" if results.command else ""
    return (
        "<h1>Reward-free exploration: Table 2</h1><p>Explore once without a reward, then plan every task from"
        f" the same data.</p>{command}{bullets(lines)}"
    )


def _table2(results: Results, plans: Plans, domain: str) -> str:
    labels, tasks = results.labels(domain), results.tasks(domain)
    rows, best = [], []
    for number, task in enumerate(tasks):
        found = [plans.returns(domain, label, task) for label in labels]
        rows.append([task, *(mean_and_std(returns) for returns in found)])
        best.append(
            (number, 1 + int(np.argmax([returns.mean() if len(returns) else -1 for returns in found])))
        )
    whole = [plans.scores(domain, label, tasks) for label in labels]
    means = [None if one is None else FULL_SCORE * np.mean([runs.mean() for runs in one]) for one in whole]
    rows.append(["mean of tasks", *("" if mean is None else f"{mean:.0f}" for mean in means)])
    counts = [[len(plans.returns(domain, label, task)) for task in tasks] for label in labels]
    rows.append(["seeds", *map(_range, counts)])
    parts = ["<h3>Ours</h3>", table(["task", *labels], rows, best)]
    parts.append(note("Mean and standard deviation of the return over seeds."))
    theirs = {task: published.TABLE2[domain, task] for task in tasks if (domain, task) in published.TABLE2}
    if theirs:
        columns = list(next(iter(theirs.values())))
        paper = [[task, *(f"{mean} ± {std}" for mean, std in row.values())] for task, row in theirs.items()]
        bold = [
            (i, 1 + columns.index(max(row, key=row.__getitem__))) for i, row in enumerate(theirs.values())
        ]
        parts += ["<h3>As published</h3>", table(["task", *columns], paper, bold), note(published.BUDGET)]
    return section(domain, *parts)


def _range(counts: Collection[int]) -> str:
    return " to ".join(str(count) for count in dict.fromkeys([min(counts), max(counts)]))


def _aggregate(results: Results, plans: Plans, domain: str) -> str:
    tasks, labels = results.tasks(domain), results.labels(domain)
    found = {label: plans.scores(domain, label, tasks) for label in labels}
    whole = {label: scores for label, scores in found.items() if scores is not None}
    if not whole:
        return note("No explorer has all of its plans yet: there are no statistics over tasks.")
    ranked = sorted(whole, key=lambda label: -iqm(whole[label]))
    rows = [
        [label, f"{iqm(whole[label]):.3f}", _interval(interval(iqm, whole[label]), 3) or "one seed"]
        for label in ranked
    ]
    figure = plots.profiles(whole, plots.colours(results.every_label))
    return section(
        f"{domain}: over all tasks",
        table(["data from", "interquartile mean", f"{LEVEL:.0%} interval"], rows),
        note("Shares of the full score, 1000. Intervals by bootstrap of the seeds within each task."),
        captioned(
            picture(figure, f"Performance profiles, {domain}"), "Performance profiles: higher is better."
        ),
        _against(whole, "Chance that a run of GFA-RFE beats one of another", probability_of_improvement, 2),
        _against(whole, "GFA-RFE's mean minus another's", difference, 3),
        _against(whole, "GFA-RFE's mean over another's", ratio, 2),
        level=3,
    )


def _against(
    whole: Mapping[str, Scores], title: str, compare: Callable[[Scores, Scores], float], digits: int
) -> str:
    """A row for each column of GFA-RFE: it beside every other one, with an interval."""
    rows = []
    for label in (label for label in whole if label.startswith("gfa-rfe")):
        row = [label]
        for other in whole:
            pair = whole[label], whole[other]
            bounds = _interval(interval(compare, *pair), digits)
            value = f"{compare(*pair):.{digits}f}" + (f" ({bounds})" if bounds else "")
            row.append("" if other == label else value)
        rows.append(row)
    return f"<h4>{title}</h4>" + table(["", *whole], rows) if rows else ""


def _interval(bounds: tuple[float, float] | None, digits: int) -> str:
    return "" if bounds is None else f"{bounds[0]:.{digits}f} to {bounds[1]:.{digits}f}"


def _planning_steps(results: Results, plans: Plans, domain: str) -> str:
    """Ablation 1: return against planning steps."""
    panels: dict[str, dict[str, list[plots.Curve]]] = {}
    for task in results.tasks(domain):
        of = {label: plans.of(domain, label, task) for label in results.labels(domain)}
        panels[task] = {
            label: [one["curve"] for one in seeds.values()] for label, seeds in of.items() if seeds
        }
    figure = plots.curves(panels, plots.colours(results.every_label), "planning updates", "return")
    caption = "Mean over seeds and their range; 3 episodes at each point, 10 at the last."
    return _drawn(f"{domain}: return against planning steps", figure, caption)


def _prefixes(results: Results, domain: str) -> str:
    """Ablation 2: return against the number of exploration episodes."""
    lines: dict[tuple[str, str, int], list[list[float]]] = defaultdict(list)
    for job, result in results.prefixes(results.planners[0]):
        if job.needs.domain == domain:
            used = job.episodes or results.episodes[job.needs.key]
            lines[job.task, job.label, job.needs.seed].append([used, result["mean"]])
    if not lines:
        return ""
    panels: dict[str, dict[str, list[plots.Curve]]] = defaultdict(lambda: defaultdict(list))
    for (task, label, _), points in lines.items():
        panels[task][label].append(sorted(points))
    figure = plots.curves(panels, plots.colours(results.every_label), "exploration episodes", "return")
    caption = "Prefixes of the same data sets: nothing was explored anew."
    return _drawn(f"{domain}: return against exploration episodes", figure, caption)


def _drawn(title: str, figure: Figure, caption: str) -> str:
    return section(title, captioned(picture(figure, title), caption), level=3)


def _confound(results: Results) -> str:
    """GFA-RFE's data under the other planners."""
    rows = []
    for domain in results.domains if len(results.planners) > 1 else ():
        for label in results.labels(domain):
            for task in results.tasks(domain):
                found = [results.plans(planner).returns(domain, label, task) for planner in results.planners]
                if all(len(returns) for returns in found):
                    rows.append([f"{domain} {task}", label, *(mean_and_std(returns) for returns in found)])
    if not rows:
        return ""
    why = (
        "The published GFA-RFE was planned with the mean of ten critics, the others with the smaller of two."
        " Here is the same data under both."
    )
    return section(
        "What the planner does",
        f"<p>{why}</p>",
        table(["task", "data from", *results.planners], rows),
    )


def _exploration(results: Results, domain: str) -> str:
    runs = [(job, result) for job, result in results.explored if job.domain == domain]
    runs.sort(key=lambda run: run[0].seed)
    by = {label: [one for job, one in runs if job.label == label] for label in results.labels(domain)}
    cover, tasks = runs[0][1]["coverage"], list(runs[0][1]["tasks"])
    rows = []
    for label, several in by.items():
        cells = mean_and_std(np.array([one["coverage"]["cells"] for one in several], float))
        support = [np.mean([one["tasks"][task]["mean"] for one in several]) for task in tasks]
        minutes = np.mean([one["seconds"] for one in several]) / 60
        rows.append([label, cells, *(f"{mean:.3f}" for mean in support), f"{minutes:.0f}"])
    colour = plots.colours(results.every_label)
    curves = {label: [one["intrinsic_reward"] for one in several] for label, several in by.items()}
    curves = {label: several for label, several in curves.items() if any(several)}
    drawn = pixels(plots.maps({label: several[0]["map"] for label, several in by.items()}), "Coverage maps")
    parts = [
        table(["data from", f"cells of {cover['of']}", *(f"mean {task}" for task in tasks), "minutes"], rows),
        note(
            f"Visited cells of {' x '.join(cover['quantities'])}; the mean reward of each task in the data;"
            " minutes of exploration."
        ),
        captioned(drawn, f"Visits of the first seed, {domain}, on a logarithmic scale."),
    ]
    if curves:
        intrinsic = picture(plots.own_curves(curves, colour, "frames"), f"Intrinsic reward, {domain}")
        parts.append(
            captioned(
                intrinsic, "Intrinsic reward (of GFA-RFE the bonus D): each explorer's own, not comparable."
            )
        )
    return section(f"Exploration: {domain}", *parts)


def _details(results: Results) -> str:
    links = "".join(f"<li>{download(name, content)}</li>" for name, content in results.csv().items())
    planned = [cell for planner in results.planners for cell in results.plans(planner).cells]
    rows = [
        [
            job.needs.domain,
            job.task,
            job.label,
            job.planner["name"],
            str(job.needs.seed),
            f"{one['mean']:.1f}",
        ]
        for job, one in planned
    ]
    configs: dict[str, Any] = {f"explorer {job.label}": job.explorer for job, _ in results.explored}
    configs |= {f"planner {job.planner['name']}": job.planner for job, _ in planned}
    facts = {
        json.dumps(cell.record[name], sort_keys=True)
        for cell in results.cells
        for name in ("versions", "machine")
    }
    dates = sorted(cell.record["finished"] for cell in results.cells)
    written = "".join(
        f"<h3>{html.escape(name)}</h3><pre>{html.escape(json.dumps(value, indent=1))}</pre>"
        for name, value in configs.items()
    )
    return (
        section("Downloads", f"<ul>{links}</ul>")
        + section("Every seed", table(["domain", "task", "data from", "planner", "seed", "return"], rows))
        + section("Versions and machines", bullets([*sorted(facts), f"{dates[0]} to {dates[-1]}"]))
        + f"<h2>Settings</h2>{written}"
    )
