"""explore -> label -> plan -> evaluate: the four functions, in the order of the paper."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rewardfree import durable, registry, trust
from rewardfree.data import files
from rewardfree.data.dataset import Dataset, LabelledDataset, Recorder
from rewardfree.data.transitions import Transitions
from rewardfree.domains import gymnasium
from rewardfree.errors import UserError
from rewardfree.exploration import EVALUATE, Exploration, simulator_seed
from rewardfree.explorers.gfa_rfe import GfaRfe
from rewardfree.interfaces import Domain, Explorer, Metrics, Planner, Policy, Report, Reward
from rewardfree.monitor import Monitor
from rewardfree.planners.ddpg_twin import DdpgTwin
from rewardfree.policy import ActorPolicy
from rewardfree.rewards.labels import labels
from rewardfree.rewards.page import write_page
from rewardfree.rewards.resolve import NamedReward, resolve
from rewardfree.rewards.support import against_random, coverage, skills, support, unseen
from rewardfree.video import Film

CHECKPOINT_FRAMES = 50_000
"""A checkpoint comes with every shard; the two newest stay, and the first one in every so many frames."""
_WATCHED = 3
"""Episodes of a policy that is looked at on the way."""
_LONG = 200_000
"""Frames from which labelling shows its progress."""


def explore(
    domain: str,
    explorer: Explorer | None = None,
    *,
    frames: int = 100_000,
    seed: int = 0,
    out: str | Path,
    size: str | None = None,
    memory: float | None = None,
    resume: bool = False,
    quiet: bool = True,
    tensorboard: bool = False,
) -> Dataset:
    """Phase I: collect a reward-free data set. The same arguments give the same data, bit for bit.

    `out` becomes the run's folder; it must not hold anything yet, unless `resume` continues the run that it
    holds. A run that was stopped anywhere and resumed ends as if it had not been stopped. `size` is only
    written down. A replay beyond `memory` gigabytes (half of the machine's, if not stated) is read from disk.
    """
    if frames < 1:
        raise UserError(f"frames must be at least 1, not {frames}")
    explorer = GfaRfe() if explorer is None else explorer
    gymnasium.allow(domain)
    simulator = make_domain(domain)
    config = {
        "domain": domain,
        "explorer": registry.to_json(explorer),
        "budget": frames,
        "seed": seed,
        "size": size,
    }
    run = durable.claim(Path(out), "run.json", "run", config, resume)
    with durable.locked(run):
        if resume and files.read_json(run / "run.json")["status"] == "complete":
            return Dataset.open(run)
        files.clean(run)
        checkpoints = durable.Checkpoints(run / "checkpoints", CHECKPOINT_FRAMES)
        loop = Exploration(simulator, explorer, frames, seed, run, memory)
        writer = loop.start(checkpoints.last() if resume else None)
        title = f"explore {domain} with {registry.name_of(explorer)}"
        status = "failed"
        with (
            durable.Interrupts() as interrupts,
            Monitor(title, frames, "frames", run, quiet=quiet, tensorboard=tensorboard) as monitor,
        ):
            try:
                for episode, metrics in loop.episodes():
                    durable.refuse_divergence(metrics)
                    full = writer.append(episode)
                    monitor.record(loop.frame, {"updates": loop.updates}, metrics)
                    if full or interrupts.asked:
                        checkpoints.write(loop.checkpoint(writer.written))
                    if interrupts.asked and loop.frame < frames:
                        status = "stopped"
                        raise durable.StoppedError(
                            f"stopped after {loop.frame} of {frames} frames; {run} can be resumed"
                        )
                status = "complete"
            except FloatingPointError as error:
                raise durable.diverged(f"frame {loop.frame}", error, checkpoints) from error
            except KeyboardInterrupt:
                status = "stopped"
                raise durable.StoppedError(
                    f"stopped at once; {run} can be resumed from its last checkpoint"
                ) from None
            finally:
                writer.flush()
                lengths = writer.lengths  # of an episode that was broken off, nothing
                counts = {"frames": sum(lengths), "episodes": len(lengths), "updates": loop.updates}
                durable.update(run / "run.json", status=status, **counts, seconds=round(monitor.seconds, 3))
    return Dataset.open(run)


def label(data: Dataset | str | Path, reward: str | Reward, *, quiet: bool = True) -> LabelledDataset:
    """Lay a reward over a data set; the data does not change, and the labels are kept beside it."""
    data = _dataset(data)
    named = resolve(reward, data.spec)
    quiet = quiet or data.frames < _LONG
    with Monitor(
        f"label {named.name}", data.frames, "labels", None, quiet=quiet, tensorboard=False
    ) as monitor:
        values = labels(data, named, lambda done: monitor.record(done, {}, {}))
    return LabelledDataset(data, named.name, values)


@dataclass(frozen=True)
class Plan:
    """A policy and what it was planned for."""

    policy: Policy
    domain: str
    reward: NamedReward
    path: Path | None = None

    @staticmethod
    def checked(path: Path) -> Path:
        """The folder, if it holds a plan."""
        if not (path / "plan.json").is_file():
            raise UserError(f"{path} holds no plan: there is no plan.json in it; give a plan's folder")
        return path

    @classmethod
    def load(cls, path: str | Path, reward: str | Reward | None = None) -> Plan:
        """Read a plan. A reward from a file of code is never run on the plan's own word: pass it."""
        path = cls.checked(Path(path))
        config = files.read_json(path / "plan.json")
        with files.parsing(path / "plan.json"):
            domain, name, kind = config["domain"], config["reward"]["name"], config["reward"]["kind"]
            if not (isinstance(domain, str) and isinstance(name, str)):
                raise TypeError("domain and reward are names")
        if reward is None and kind not in ("task", "expression"):
            raise UserError(
                f"this plan's reward is code, which is not run unasked: pass it, e.g. --reward {name}"
            )
        spec = make_domain(domain).spec
        named = resolve(name if reward is None else reward, spec)
        policy = ActorPolicy.load(path / "policy.safetensors")
        with files.parsing(path / "policy.safetensors"):
            if policy(np.zeros(spec.observation, np.float32)).shape != (spec.action,):
                raise ValueError(f"it does not act in {domain}")
        return cls(policy, domain, named, path)


def plan(
    data: Dataset | str | Path,
    reward: str | Reward,
    planner: Planner | None = None,
    *,
    updates: int = 50_000,
    seed: int = 0,
    out: str | Path | None = None,
    evaluate_every: int | None = None,
    memory: float | None = None,
    resume: bool = False,
    quiet: bool = True,
    tensorboard: bool = False,
) -> Plan:
    """Phase II: solve a reward from the data alone. Written to `out` if given, and resumed from there.

    After every `evaluate_every` updates the policy is run in the simulator, for the log alone: it changes
    nothing. Data beyond `memory` gigabytes (half of the machine's, if not stated) is read from disk.
    """
    if updates < 1:
        raise UserError(f"updates must be at least 1, not {updates}")
    planner = DdpgTwin() if planner is None else planner
    data = _dataset(data)
    if not data.frames:
        raise UserError(f"{data.path} holds no complete episode to plan from")
    named = resolve(reward, data.spec)
    labelled = replace(label(data, named, quiet=quiet), memory=memory)
    watch = _Watch(data.spec.domain, named, evaluate_every)
    if out is None:
        with Monitor(
            _title(named, planner), updates, "updates", None, quiet=quiet, tensorboard=False
        ) as monitor:
            policy = planner.fit(labelled, updates, seed, _reporter(monitor, watch))
            return Plan(policy, data.spec.domain, named)
    config = {
        "domain": data.spec.domain,
        "reward": {"name": named.name, "kind": named.kind},
        "planner": registry.to_json(planner),
        "updates": updates,
        "seed": seed,
        "frames": data.frames,
    }
    folder = durable.claim(Path(out), "plan.json", "plan", config, resume)
    with durable.locked(folder):
        if resume and files.read_json(folder / "plan.json")["status"] == "complete":
            return Plan.load(folder, named)
        files.clean(folder)
        checkpoints = durable.Checkpoints(folder / "checkpoints", updates)
        last = checkpoints.last() if resume else None
        durable.keep_lines(folder / "metrics.jsonl", 0 if last is None else last.record["reports"])
        title = _title(named, planner)
        with (
            durable.Interrupts() as interrupts,
            Monitor(title, updates, "updates", folder, quiet=quiet, tensorboard=tensorboard) as monitor,
        ):
            report = _reporter(monitor, watch, checkpoints, interrupts)
            policy = planner.fit(labelled, updates, seed, report, checkpoints, last)
            policy.save(folder / "policy.safetensors")
            durable.update(folder / "plan.json", status="complete", seconds=round(monitor.seconds, 3))
    return Plan(policy, data.spec.domain, named, folder)


def _title(reward: NamedReward, planner: Planner) -> str:
    return f"plan {reward.name} with {registry.name_of(planner)}"


class _Watch:
    """Now and then, the return of a policy that is still being planned."""

    def __init__(self, domain: str, reward: NamedReward, every: int | None) -> None:
        self._domain, self._reward, self._every = domain, reward, every

    def __call__(self, done: int, policy: Callable[[], Policy]) -> Metrics:
        if self._every is None or done % self._every:
            return {}
        return {"return": evaluate(Plan(policy(), self._domain, self._reward), episodes=_WATCHED).mean}


def _reporter(
    monitor: Monitor,
    watch: _Watch,
    checkpoints: durable.Checkpoints | None = None,
    interrupts: durable.Interrupts | None = None,
) -> Report:
    def report(done: int, metrics: Metrics, policy: Callable[[], Policy]) -> None:
        try:
            durable.refuse_divergence(metrics)
        except FloatingPointError as error:
            raise durable.diverged(f"update {done}", error, checkpoints) from error
        monitor.record(done, {}, metrics | watch(done, policy))
        if interrupts is not None and interrupts.asked:
            raise durable.StoppedError(f"stopped after {done} updates; it can be resumed")

    return report


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
        start = simulator_seed(np.random.default_rng([seed, EVALUATE, number]))
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
        if step.terminated or step.truncated:
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
        rollout(simulator, policy, simulator_seed(np.random.default_rng([0, EVALUATE, number])))
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


def repair(run: str | Path) -> list[str]:
    """Drop what is incomplete or damaged of a run's data; returns what was dropped."""
    if not (Path(run) / "data" / "manifest.json").is_file():
        raise UserError(f"{run} holds no run: there is no data/manifest.json in it; give a run's folder")
    return trust.repair(Path(run))


def make_domain(name: str) -> Domain:
    """A simulator of the named domain."""
    domain: Domain = registry.load("domain", name)()
    return domain


def _dataset(data: Dataset | str | Path) -> Dataset:
    return data if isinstance(data, Dataset) else Dataset.open(data)
