"""The statistics have known answers, and the page is whole in a real browser."""

from __future__ import annotations

import base64
import csv
import io
import itertools
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from rewardfree.bench.grid import Grid
from rewardfree.bench.jobs import ExploreJob, Job
from rewardfree.bench.published import TABLE2
from rewardfree.bench.results import Results, mean_and_std
from rewardfree.bench.statistics import difference, interval, iqm, probability_of_improvement, profile, ratio
from rewardfree.cli import main
from rewardfree.data import files


def test_the_interquartile_mean_is_of_the_middle_half() -> None:
    assert iqm([np.array([0.0, 1.0, 2.0, 100.0])]) == 1.5
    assert iqm([np.array([0.0, 2.0]), np.array([1.0, -50.0])]) == 0.5


def test_intervals_resample_seeds_within_tasks() -> None:
    apart = [np.full(5, 0.1), np.full(5, 0.9)]  # the tasks differ, the seeds do not
    assert interval(iqm, apart) == (0.5, 0.5)
    assert interval(iqm, [np.array([0.5])]) is None
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(40):
        bounds = interval(lambda scores: float(np.mean(scores)), [rng.normal(0.0, 1.0, 30)], seed=seed)
        assert bounds is not None
        hits += bounds[0] < 0.0 < bounds[1]
    assert hits >= 32  # of 40 at 95 %: fewer by less than one in a thousand


def test_profiles_and_probabilities_by_hand() -> None:
    scores = [np.array([0.2, 0.6]), np.array([0.8, 1.0])]
    np.testing.assert_allclose(profile(scores, np.array([0.0, 0.5, 0.9, 1.0])), [1.0, 0.75, 0.25, 0.0])
    low = [np.array([0.1, 0.2]), np.array([0.1, 0.8])]
    # 0.2 ties with one and beats one, 0.6 beats both: 3.5 of 4; 0.8 likewise, 1.0 beats both: 3.5 of 4
    assert probability_of_improvement(scores, low) == 3.5 / 4
    assert probability_of_improvement(low, scores) == 0.5 / 4
    assert probability_of_improvement(scores, scores) == 0.5


def test_differences_and_ratios_count_all_tasks_alike() -> None:
    scores = [np.array([0.2, 0.6]), np.array([0.8, 1.0, 0.9])]
    others = [np.array([0.1]), np.array([1.0])]
    assert difference(scores, others) == pytest.approx((0.3 - 0.1) / 2)
    assert difference(others, scores) == pytest.approx(-0.1)
    assert ratio(scores, others) == pytest.approx((0.4 + 0.9) / (0.1 + 1.0))
    assert ratio(others, scores) == pytest.approx(1.1 / 1.3)
    assert np.isfinite(ratio(scores, [np.zeros(1), np.zeros(1)]))


def test_spread_is_printed_as_the_paper_does() -> None:
    assert mean_and_std(np.array([100.0, 102.0])) == "101 ± 1"
    assert mean_and_std(np.array([100.4])) == "100"
    assert mean_and_std(np.array([])) == ""


def test_the_published_table_is_the_papers() -> None:
    spec = Path(__file__).parents[2] / "shared" / "spec" / "algorithms.md"
    if not spec.exists():
        pytest.skip("the paper's figures are not at hand")
    text = spec.read_text(encoding="utf-8")
    rows = [
        line.strip("| \n").split("|") for line in text.splitlines() if "+-" in line and line.count("|") == 10
    ]
    assert len(rows) == len(TABLE2) == 8
    for task, *cells in rows:
        domain, name = task.split()
        assert [f"{mean}+-{std}" for mean, std in TABLE2[domain, name].values()] == [c.strip() for c in cells]


def record(job: Job, rng: np.random.Generator, frames: int) -> dict[str, Any]:
    """What a cell might have found."""
    if isinstance(job, ExploreJob):
        axes = [{"quantity": name, "low": 0.0, "high": 1.0, "cells": 4} for name in ("height", "speed")]
        result: dict[str, Any] = {
            "frames": frames,
            "episodes": 100,
            "seconds": 600.0,
            "coverage": {"cells": int(rng.integers(99)), "of": 100, "quantities": ["height", "speed"]},
            "map": {"visits": rng.integers(0, 9, (4, 4)).tolist(), "axes": axes},
            "tasks": {
                task: {"mean": 0.1, "max": 1.0, "verdict": "likely"}
                for task in ("stand", "walk", "run", "flip")
            },
            "intrinsic_reward": [] if job.label == "random" else [[1000 * i, rng.random()] for i in range(5)],
        }
    else:
        returns = rng.uniform(0, 1000, 10).tolist()
        mean = float(np.mean(returns))
        curve = [[2500, mean / 2], [20_000, mean]]
        result = {
            "returns": returns,
            "mean": mean,
            "std": float(np.std(returns)),
            "seconds": 60.0,
            "curve": curve,
        }
    return {
        "kind": job.kind,
        "label": job.label,
        "config": job.config,
        "result": result,
        "versions": {"jax": "1"},
        "machine": {"cores": 2},
        "finished": "2026-01-01T00:00:00+00:00",
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    grid = Grid(
        "compact", explorers=("gfa-rfe", "rnd", "random"), domains=("walker",), seeds=3, ablation=True
    )
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("grid")
    records = [record(job, rng, 100_000) for job in grid.jobs()]
    command = "rewardfree bench table2 --tasks '<script>alert(1)</script>'"
    files.write_json(folder / "results.json", {"command": command, "cells": records})
    assert main(["report", str(folder)]) == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("there is no Chromium here: apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in ("--headless=new", "--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield chrome
    chrome.quit()


def test_the_page_is_whole_in_a_browser(page: Path, browser: webdriver.Chrome) -> None:
    browser.get(page.as_uri())
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]
    fetched = browser.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('data:'))"
    )
    assert fetched == []
    images = browser.find_elements(By.TAG_NAME, "img")
    assert len(images) == 5  # profiles, planning steps, prefixes, maps, intrinsic rewards
    assert all(image.get_property("naturalWidth") > 300 for image in images)  # type: ignore[operator]
    assert all(image.get_attribute("alt") for image in images)
    heads = [head.text for head in browser.find_elements(By.TAG_NAME, "h2")]
    assert heads[:2] == ["walker", "What the planner does"]
    assert "<script>alert(1)</script>" in browser.find_element(By.TAG_NAME, "code").text
    width = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert width <= 0  # wide tables scroll by themselves


def test_the_page_says_what_the_cells_say(page: Path, browser: webdriver.Chrome) -> None:
    results = Results.open(page.parent / "results.json")
    browser.get(page.as_uri())
    table = browser.find_element(By.TAG_NAME, "table").text.splitlines()
    plans = results.plans("ddpg-twin")
    assert table[0].split() == ["task", "gfa-rfe", "rnd", "random"]
    assert [line.split()[0] for line in table[1:5]] == ["stand", "walk", "run", "flip"]
    for line, task in zip(table[1:5], ("stand", "walk", "run", "flip"), strict=True):
        cells = [mean_and_std(plans.returns("walker", label, task)) for label in ("gfa-rfe", "rnd", "random")]
        assert line == " ".join([task, *cells])
    links = {link.text: link.get_attribute("href") for link in browser.find_elements(By.TAG_NAME, "a")}
    text = base64.b64decode((links["returns.csv"] or "").partition(",")[2]).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    planned = [cell for cell in results.cells if cell.job.kind == "plan"]
    assert len(rows) == len(planned)
    for row, cell in zip(rows, planned, strict=True):
        assert float(row["mean"]) == cell.result["mean"]
        assert [float(row[f"return_{i}"]) for i in range(10)] == cell.result["returns"]


def test_the_page_says_how_many_seeds_each_column_has(tmp_path: Path) -> None:
    """A grid that was continued for some of its explorers alone."""
    rng = np.random.default_rng(0)
    grid = Grid("tiny", explorers=("gfa-rfe",), domains=("walker",), planners=("ddpg-twin",), seeds=3)
    first, more = replace(grid, explorers=("gfa-rfe", "random"), seeds=1).jobs(), grid.jobs()
    cells = [record(job, rng, 1000) for job in {job.key: job for job in (*first, *more)}.values()]
    files.write_json(tmp_path / "results.json", {"command": "", "cells": cells[:-1]})  # a plan is missing
    assert main(["report", str(tmp_path / "results.json")]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<td>seeds</td><td>2 to 3</td><td>1</td>" in page
    assert "1 to 3 seeds" in page
    assert "With fewer than three seeds" in page


def test_the_page_of_a_grid_that_has_just_begun(tmp_path: Path) -> None:
    """Every subset of the kinds of cells gives a page."""
    jobs = Grid("tiny", explorers=("gfa-rfe", "random"), domains=("walker",), seeds=1, ablation=True).jobs()
    rng = np.random.default_rng(0)
    explored = [job for job in jobs if isinstance(job, ExploreJob)]
    planned = [job for job in jobs if not isinstance(job, ExploreJob)]
    for number, (first, second) in enumerate(itertools.product((1, len(explored)), (0, 1, 4, len(planned)))):
        cells = [record(job, rng, 1000) for job in (*explored[:first], *planned[:second])]
        cells = [cell for cell in cells if cell["kind"] == "explore" or _explored(cell, explored[:first])]
        path = tmp_path / f"{number}.json"
        files.write_json(path, {"command": "", "cells": cells})
        assert main(["report", str(path), "--out", str(tmp_path / "page.html")]) == 0


def _explored(cell: dict[str, Any], runs: list[ExploreJob]) -> bool:
    return any(cell["config"]["explore"] == run.config for run in runs)
