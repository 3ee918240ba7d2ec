"""How long cells take: from cells that are done or running, and before there are any from a short trial."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import jax
import numpy as np

from rewardfree import pipeline, registry
from rewardfree.bench.executors import one_thread
from rewardfree.bench.jobs import ExploreJob, Job, PlanJob, from_record
from rewardfree.bench.run import Progress
from rewardfree.data.dataset import Recorder
from rewardfree.data.replay import ReplayBuffer
from rewardfree.errors import UserError
from rewardfree.explorers.random import Random

_TRIAL_UPDATES = 20


def sort_of(job: Job) -> str:
    """Cells of one sort take the same time for a unit of work."""
    if isinstance(job, PlanJob):
        return json.dumps([job.needs.domain, job.planner], sort_keys=True)
    assert isinstance(job, ExploreJob)
    return json.dumps([job.domain, job.explorer], sort_keys=True)


def seconds_left(progress: Progress, workers: int) -> float | None:
    """Work that is left, spread over the workers; None while nothing is known of some sort of cell."""
    rates: dict[str, list[float]] = defaultdict(list)
    left = 0.0
    for job in progress.jobs:
        if job.key in progress.done:
            rates[sort_of(job)].append(progress.done[job.key] / job.total)
    for job in progress.running.values():
        share, taken = job.progress(progress.root)
        if share:
            rates[sort_of(job)].append(taken / (share * job.total))
    for job in (*progress.running.values(), *progress.waiting):
        if not rates[sort_of(job)]:
            return None
        rest = 1 - job.progress(progress.root)[0]
        left += rest * job.total * statistics.fmean(rates[sort_of(job)])
    return left / workers


def trial(jobs: Iterable[Job], heard: Callable[[Job], None]) -> dict[str, float]:
    """Seconds of each job by its key, from a short trial of each sort with one thread."""
    sorts: dict[str, Job] = {}
    for job in jobs:
        sorts.setdefault(sort_of(job), job)
    rates = {}
    for name, job in sorts.items():
        heard(job)
        tried = subprocess.run(
            [sys.executable, "-m", "rewardfree.bench.estimate"],
            input=json.dumps(job.record),
            env=one_thread(),
            capture_output=True,
            text=True,
            check=False,
        )
        if tried.returncode:
            raise UserError(f"{job.label} cannot be tried: {tried.stderr.strip().splitlines()[-1]}")
        rates[name] = float(tried.stdout)
    return {job.key: rates[sort_of(job)] * job.total for job in jobs}


def _explore_rate(job: ExploreJob) -> float:
    """Seconds of a frame: a step of the simulator, and its share of the learner's call."""
    simulator, explorer = pipeline.make_domain(job.domain), registry.from_json("explorer", job.explorer)
    spec = simulator.spec
    length = min(spec.episode_length, 1000)
    skill = explorer.skill(spec, np.zeros(2, np.uint32), 0)
    started = time.perf_counter()
    recorder = Recorder(simulator.reset(0))
    for action in np.random.default_rng(0).uniform(-1, 1, (length, spec.action)):
        step = simulator.step(action.astype(np.float32))
        recorder.add(action.astype(np.float32), step, skill)
        if step.terminated or step.truncated:
            break
    rate = (time.perf_counter() - started) / len(recorder)
    if explorer.seed_frames >= job.frames:
        return rate
    buffer = ReplayBuffer(spec, job.frames, explorer.nstep, explorer.gamma, explorer.skill_size(spec))
    buffer.append(recorder.arrays())
    state = explorer.absorb(explorer.init(spec, jax.random.PRNGKey(0)), buffer)
    updates = max(1, explorer.chunk // explorer.update_every)
    calls = -(-_TRIAL_UPDATES // updates)
    for number in range(calls + 1):
        state, metrics = explorer.update(state, buffer.replay, jax.random.PRNGKey(number), updates)
        float(metrics["intrinsic_reward"])  # waits for it
        if number == 0:  # that compiled it
            started = time.perf_counter()
    return rate + (time.perf_counter() - started) / (calls * explorer.chunk)


def _plan_rate(job: PlanJob) -> float:
    """Seconds of an update, of a second call: the first one compiles."""
    planner = registry.from_json("planner", job.planner)
    with tempfile.TemporaryDirectory() as folder:
        data = pipeline.explore(job.needs.domain, Random(), frames=1000, out=Path(folder) / "run")
        labelled = pipeline.label(data, job.task)
        planner.fit(labelled, _TRIAL_UPDATES, 0)
        started = time.perf_counter()
        planner.fit(labelled, _TRIAL_UPDATES, 1)
        return (time.perf_counter() - started) / _TRIAL_UPDATES


def table(jobs: Sequence[Job], seconds: dict[str, float]) -> list[tuple[str, str, str, int, float]]:
    """Cells by what they do: kind, domain, by what, how many, and seconds of one."""
    rows: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for job in jobs:
        rows[job.kind, job.domain, job.by].append(seconds[job.key])
    return [(*key, len(taken), statistics.fmean(taken)) for key, taken in rows.items()]


if __name__ == "__main__":
    asked = from_record(json.loads(sys.stdin.readline()))
    print(_explore_rate(asked) if isinstance(asked, ExploreJob) else _plan_rate(asked))  # type: ignore[arg-type]
