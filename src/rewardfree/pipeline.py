"""explore -> label -> plan -> evaluate: the four functions, in the order of the paper."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewardfree import registry
from rewardfree.data import files, trust
from rewardfree.data.dataset import Dataset, DatasetWriter, LabelledDataset, Recorder, versions
from rewardfree.data.replay import ReplayBuffer
from rewardfree.data.transitions import Transitions
from rewardfree.errors import UserError
from rewardfree.explorers.gfa_rfe import GfaRfe
from rewardfree.interfaces import Domain, Explorer, Metrics, Moment, Planner, Policy, Reward
from rewardfree.monitor import Monitor
from rewardfree.planners.ddpg_twin import DdpgTwin
from rewardfree.policy import ActorPolicy
from rewardfree.rewards.labels import labels
from rewardfree.rewards.page import write_page
from rewardfree.rewards.resolve import NamedReward, resolve
from rewardfree.rewards.support import against_random, coverage, skills, support, unseen
from rewardfree.video import Film

_EXPLORE, _EVALUATE = 0, 1
"""Streams of random numbers: an episode's depend on (seed, stream, episode) alone."""


def explore(
    domain: str,
    explorer: Explorer | None = None,
    *,
    frames: int = 100_000,
    seed: int = 0,
    out: str | Path,
    size: str | None = None,
    quiet: bool = True,
    tensorboard: bool = False,
) -> Dataset:
    """Phase I: collect a reward-free data set. The same arguments give the same data, bit for bit.

    `out` becomes the run's folder; it must not hold anything yet. `size` is only written down.
    """
    if frames < 1:
        raise UserError(f"frames must be at least 1, not {frames}")
    explorer = GfaRfe() if explorer is None else explorer
    simulator = make_domain(domain)
    config = {
        "domain": domain,
        "explorer": registry.to_json(explorer),
        "frames": frames,
        "seed": seed,
        "size": size,
    }
    run = _claim(Path(out), "run.json", "run", config)
    writer = DatasetWriter(run / "data", simulator.spec, trust.prover(simulator.spec))
    buffer = ReplayBuffer(simulator.spec, frames, explorer.nstep, explorer.gamma, explorer.skills)
    title = f"explore {domain} with {registry.name_of(explorer)}"
    with Monitor(title, frames, "frames", run, quiet=quiet, tensorboard=tensorboard) as monitor:
        loop = _Exploration(simulator, explorer, buffer, frames, seed)
        status = "failed"
        try:
            for episode, metrics in loop.episodes():
                writer.append(episode)
                monitor.record(loop.frame, {"updates": loop.updates}, metrics)
            status = "complete"
        except KeyboardInterrupt:
            status = "stopped"
            raise UserError(f"stopped; the episodes that were complete are in {run}") from None
        finally:
            writer.flush()
            counts = {"frames": loop.frame, "episodes": buffer.episodes, "updates": loop.updates}
            _update(run / "run.json", status=status, **counts, seconds=round(monitor.seconds, 3))
    return Dataset.open(run)


class _Exploration:
    """The loop of Algorithm 2: act, record, learn."""

    def __init__(
        self, simulator: Domain, explorer: Explorer, buffer: ReplayBuffer, frames: int, seed: int
    ) -> None:
        self._simulator, self._explorer, self._buffer = simulator, explorer, buffer
        self._frames, self._seed = frames, seed
        self._state = explorer.init(simulator.spec, _keys(np.random.default_rng(seed), 1)[0])
        self.frame = self.updates = 0

    def episodes(self) -> Iterator[tuple[dict[str, np.ndarray], Metrics]]:
        """Episodes and what was learned in each, until the frames are used up."""
        while self.frame < self._frames:
            episode, metrics = self._episode(
                np.random.default_rng([self._seed, _EXPLORE, self._buffer.episodes])
            )
            self._buffer.append(episode)
            self._state = self._explorer.absorb(self._state, self._buffer)
            yield episode, metrics

    def _episode(self, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], Metrics]:
        spec, explorer = self._simulator.spec, self._explorer
        length = min(spec.episode_length, self._frames - self.frame)
        state = self._simulator.reset(_simulator_seed(rng))
        recorder = Recorder(state)
        uniform = rng.uniform(-1.0, 1.0, (length, spec.action)).astype(np.float32)
        learned: list[Metrics] = []
        act, act_key = explorer.behaviour(self._state), _keys(rng, 1)[0]
        for number, (update_key, random_action) in enumerate(zip(_keys(rng, length), uniform, strict=True)):
            seeding = self.frame < explorer.seed_frames
            skill = explorer.skill(act_key, number)
            action = random_action if seeding else act(Moment(state.observation, skill, act_key, number))
            step = self._simulator.step(action)
            recorder.add(action, step, skill)
            state = step.state
            self.frame += 1
            if not seeding and self._buffer.size and self.frame % explorer.chunk == 0:
                updates = max(1, explorer.chunk // explorer.update_every)
                # Before the update, which returns at once: the simulator goes on while the learner learns.
                act = explorer.behaviour(self._state)
                self._state, metrics = explorer.update(self._state, self._buffer.replay, update_key, updates)
                self.updates += updates
                learned.append(metrics)
            if step.terminated:
                break
        return recorder.arrays(), _mean(learned)


def label(data: Dataset | str | Path, reward: str | Reward, *, quiet: bool = True) -> LabelledDataset:
    """Lay a reward over a data set; the data does not change, and the labels are kept beside it."""
    data = _dataset(data)
    named = resolve(reward, data.spec)
    title = f"label {named.name}"
    with Monitor(title, data.frames, "labels", None, quiet=quiet, tensorboard=False) as monitor:
        values = labels(data, named, lambda done: monitor.record(done, {}, {}))
    return LabelledDataset(data, named.name, values)


@dataclass(frozen=True)
class Plan:
    """A policy and what it was planned for."""

    policy: Policy
    domain: str
    reward: NamedReward
    path: Path | None = None

    @classmethod
    def load(cls, path: str | Path, reward: str | Reward | None = None) -> Plan:
        """Read a plan. A reward from a file of code is never run on the plan's own word: pass it."""
        path = Path(path)
        if not (path / "plan.json").is_file():
            raise UserError(f"{path} holds no plan: there is no plan.json in it; give a plan's folder")
        config = files.read_json(path / "plan.json")
        try:
            domain, name, kind = config["domain"], config["reward"]["name"], config["reward"]["kind"]
        except (KeyError, TypeError) as error:
            raise UserError(f"{path / 'plan.json'} is damaged: {error!r}") from error
        if reward is None and kind not in ("task", "expression"):
            raise UserError(
                f"this plan's reward is code, which is not run unasked: pass it, e.g. --reward {name}"
            )
        named = resolve(name if reward is None else reward, make_domain(domain).spec)
        return cls(ActorPolicy.load(path / "policy.safetensors"), domain, named, path)


def plan(
    data: Dataset | str | Path,
    reward: str | Reward,
    planner: Planner | None = None,
    *,
    updates: int = 20_000,
    seed: int = 0,
    out: str | Path | None = None,
    quiet: bool = True,
    tensorboard: bool = False,
) -> Plan:
    """Phase II: solve a reward from the data alone. Written to `out` if given."""
    if updates < 1:
        raise UserError(f"updates must be at least 1, not {updates}")
    planner = DdpgTwin() if planner is None else planner
    data = _dataset(data)
    if not data.frames:
        raise UserError(f"{data.path} holds no complete episode to plan from")
    named = resolve(reward, data.spec)
    labelled = label(data, named, quiet=quiet)
    folder = None
    if out is not None:
        config = {
            "domain": data.spec.domain,
            "reward": {"name": named.name, "kind": named.kind},
            "planner": registry.to_json(planner),
            "updates": updates,
            "seed": seed,
            "frames": data.frames,
        }
        folder = _claim(Path(out), "plan.json", "plan", config)
    title = f"plan {named.name} with {registry.name_of(planner)}"
    with Monitor(title, updates, "updates", folder, quiet=quiet, tensorboard=tensorboard) as monitor:
        policy = planner.fit(labelled, updates, seed, lambda done, metrics: monitor.record(done, {}, metrics))
        seconds = monitor.seconds
    if folder is not None:
        policy.save(folder / "policy.safetensors")
        _update(folder / "plan.json", status="complete", seconds=round(seconds, 3))
    return Plan(policy, data.spec.domain, named, folder)


@dataclass(frozen=True)
class Evaluation:
    """Returns of a policy in the simulator, one per episode."""

    returns: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.returns)

    @property
    def std(self) -> float:
        return statistics.pstdev(self.returns)

    def to_json(self) -> dict[str, Any]:
        return {"returns": list(self.returns), "mean": self.mean, "std": self.std}

    def __str__(self) -> str:
        return f"{self.mean:.1f} +- {self.std:.1f} over {len(self.returns)} episodes"


def evaluate(
    plan: Plan | str | Path, *, episodes: int = 10, seed: int = 0, video: str | Path | None = None
) -> Evaluation:
    """Run a plan's policy in the simulator, without noise; the first episode can be filmed."""
    if episodes < 1:
        raise UserError(f"episodes must be at least 1, not {episodes}")
    plan = plan if isinstance(plan, Plan) else Plan.load(plan)
    simulator = make_domain(plan.domain)
    returns = []
    for number in range(episodes):
        start = _simulator_seed(np.random.default_rng([seed, _EVALUATE, number]))
        filmed = Film(Path(video), simulator) if video is not None and number == 0 else nullcontext()
        with filmed as film:
            episode = rollout(simulator, plan.policy, start, film)
        returns.append(float(plan.reward(episode).sum()))
    evaluation = Evaluation(tuple(returns))
    if plan.path is not None:
        files.write_json(plan.path / "evaluation.json", {"seed": seed, **evaluation.to_json()})
    return evaluation


def rollout(
    simulator: Domain, policy: Policy, seed: int, film: Callable[[], None] | None = None
) -> Transitions:
    """One episode of a policy."""
    state = simulator.reset(seed)
    recorder = Recorder(state)
    for _ in range(simulator.spec.episode_length):
        action = policy(state.observation)
        step = simulator.step(action)
        recorder.add(action, step)
        state = step.state
        if film is not None:
            film()
        if step.terminated:
            break
    return Transitions(simulator.spec, recorder.arrays(), np.array([len(recorder)]))


def inspect(
    data: Dataset | str | Path,
    rewards: list[str | Reward] | None = None,
    html: str | Path | None = None,
    *,
    quiet: bool = True,
) -> dict[str, Any]:
    """Can this data solve it? Where it has been, what it saw of each reward, a verdict, and its plans."""
    data = _dataset(data)
    asked = list(registry.load("domain", data.spec.domain).tasks) if rewards is None else rewards
    named = [resolve(reward, data.spec) for reward in asked]
    labelled = [label(data, reward, quiet=quiet) for reward in named]
    found = {
        "run": str(data.path),
        "domain": data.spec.domain,
        "frames": data.frames,
        "episodes": data.episodes,
        "coverage": coverage(data) | ({"reference": against_random(data)} if data.frames else {}),
        "skills": skills(data),
        "rewards": {
            reward.name: support(over)
            | {"unseen": unseen(reward, data.spec), "plan": _inspect_plan(data, reward)}
            for reward, over in zip(named, labelled, strict=True)
        },
    }
    if html is not None:
        write_page(Path(html), found, data, labelled)
    return found


def _inspect_plan(data: Dataset, reward: NamedReward, episodes: int = 2) -> dict[str, Any] | None:
    """Is the plan outside the data? The critics' disagreement along its own trajectories and on the data."""
    folder = data.path / "plans" / reward.slug
    if (
        not (folder / "plan.json").is_file()
        or files.read_json(folder / "plan.json").get("status") != "complete"
    ):
        return None
    policy, simulator = ActorPolicy.load(folder / "policy.safetensors"), make_domain(data.spec.domain)
    paths = [
        rollout(simulator, policy, _simulator_seed(np.random.default_rng([0, _EVALUATE, number])))
        for number in range(episodes)
    ]
    found: dict[str, Any] = {
        "path": str(folder),
        "return": float(np.mean([reward(path).sum() for path in paths])),
    }
    taken = np.linspace(0, data.frames - 1, min(data.frames, 5000)).astype(int)
    there = policy.disagreement(
        np.concatenate([shard.before("obs") for shard in data.shards])[taken], data.values("action")[taken]
    )
    if there is None:
        return found | {"outside": None}
    along = [policy.disagreement(path.before("obs"), path["action"]) for path in paths]
    here = np.concatenate([part for part in along if part is not None])
    usual = float(np.quantile(there, 0.95))
    return found | {
        "disagreement": {"plan": float(np.median(here)), "data": float(np.median(there)), "data_95": usual},
        "outside": float((here > usual).mean()),
    }


def check(data: Dataset | str | Path) -> dict[str, Any]:
    """Is the data whole, and does the installed simulator still repeat it?"""
    return trust.check(_dataset(data))


def make_domain(name: str) -> Domain:
    """A simulator of the named domain."""
    domain: Domain = registry.load("domain", name)()
    return domain


def _dataset(data: Dataset | str | Path) -> Dataset:
    return data if isinstance(data, Dataset) else Dataset.open(data)


def _keys(rng: np.random.Generator, count: int) -> np.ndarray:
    """JAX's raw keys, uint32 [count, 2], drawn on the host: splitting on the device costs a call each."""
    return rng.integers(0, 2**32, (count, 2), np.uint32)


def _simulator_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(0, 2**32))


def _mean(metrics: list[Metrics]) -> Metrics:
    return {
        name: np.mean([np.asarray(one[name]) for one in metrics]) for name in (metrics[0] if metrics else {})
    }


def _claim(folder: Path, record: str, what: str, config: dict[str, Any]) -> Path:
    """Make the folder of a new run or plan; one that holds anything already is left alone."""
    if (folder / record).exists():
        raise UserError(f"{folder} already holds a {what}: choose another --out, or remove it first")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not an empty folder: choose another --out")
    files.write_json(folder / record, {**config, "versions": versions(), "status": "running"})
    return folder


def _update(path: Path, **changes: Any) -> None:
    files.write_json(path, {**files.read_json(path), **changes})
