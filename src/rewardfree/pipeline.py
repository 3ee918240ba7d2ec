"""explore -> label -> plan -> evaluate: the four functions, in the order of the paper."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewardfree import durable, registry
from rewardfree.data import files, trust
from rewardfree.data.dataset import Dataset, DatasetWriter, LabelledDataset, Recorder, Written, versions
from rewardfree.data.replay import ReplayBuffer
from rewardfree.data.transitions import STATE_ARRAYS, STEP_ARRAYS, Transitions
from rewardfree.domains import gymnasium
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
_STATE = "state."
CHECKPOINT_FRAMES = 50_000
"""A checkpoint comes with every shard; the two newest stay, and the first one in every so many frames."""
DIVERGED = 1e9
"""A metric of this size is no value of anything any more."""
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
    resume: bool = False,
    quiet: bool = True,
    tensorboard: bool = False,
) -> Dataset:
    """Phase I: collect a reward-free data set. The same arguments give the same data, bit for bit.

    `out` becomes the run's folder; it must not hold anything yet, unless `resume` continues the run that it
    holds. A run that was stopped anywhere and resumed ends as if it had not been stopped. `size` is only
    written down.
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
    run = _claim(Path(out), "run.json", "run", config, resume)
    with durable.locked(run):
        if resume and files.read_json(run / "run.json")["status"] == "complete":
            return Dataset.open(run)
        files.clean(run)
        checkpoints = durable.Checkpoints(run / "checkpoints", CHECKPOINT_FRAMES)
        loop = _Exploration(simulator, explorer, frames, seed)
        writer = loop.start(run, checkpoints.last() if resume else None)
        title = f"explore {domain} with {registry.name_of(explorer)}"
        status = "failed"
        with (
            durable.Interrupts() as interrupts,
            Monitor(title, frames, "frames", run, quiet=quiet, tensorboard=tensorboard) as monitor,
        ):
            try:
                for episode, metrics in loop.episodes():
                    _refuse_divergence(metrics)
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
                raise _diverged(f"frame {loop.frame}", error, checkpoints) from error
            except KeyboardInterrupt:
                status = "stopped"
                raise durable.StoppedError(
                    f"stopped at once; {run} can be resumed from its last checkpoint"
                ) from None
            finally:
                writer.flush()
                counts = {"frames": loop.frame, "episodes": loop.buffer.episodes, "updates": loop.updates}
                _update(run / "run.json", status=status, **counts, seconds=round(monitor.seconds, 3))
    return Dataset.open(run)


class _Exploration:
    """The loop of Algorithm 2: act, record, learn."""

    def __init__(self, simulator: Domain, explorer: Explorer, frames: int, seed: int) -> None:
        self._simulator, self._explorer = simulator, explorer
        self._frames, self._seed = frames, seed
        self.buffer = ReplayBuffer(simulator.spec, frames, explorer.nstep, explorer.gamma, explorer.skills)
        self._state = explorer.init(simulator.spec, _keys(np.random.default_rng(seed), 1)[0])
        self.frame = self.updates = 0

    def start(self, run: Path, checkpoint: durable.Checkpoint | None) -> DatasetWriter:
        """Begin, or go on from a checkpoint. Chance is a function of (seed, episode): it needs no state."""
        spec = self._simulator.spec
        prove = trust.prover(spec)
        if checkpoint is None:
            (run / "metrics.jsonl").unlink(missing_ok=True)
            return DatasetWriter(run / "data", spec, prove)
        arrays, record = checkpoint.arrays, checkpoint.record
        state = {
            name.removeprefix(_STATE): array for name, array in arrays.items() if name.startswith(_STATE)
        }
        self._state = files.fill_tree(self._state, state)
        self.frame, self.updates = checkpoint.done, record["updates"]
        pending = [
            {name: arrays[f"pending.{number}.{name}"] for name in (*STATE_ARRAYS, *STEP_ARRAYS)}
            for number in range(record["pending"])
        ]
        writer = DatasetWriter(run / "data", spec, prove, Written(record["shards"], pending))
        for episode in (*Dataset.open(run).each_episode(), *pending):
            self.buffer.append(episode)
        _keep_lines(run / "metrics.jsonl", self.buffer.episodes)
        return writer

    def checkpoint(self, written: Written) -> durable.Checkpoint:
        """All that the rest of the run depends on."""
        state = {_STATE + name: array for name, array in files.tree_arrays(self._state).items()}
        pending = {
            f"pending.{number}.{name}": array
            for number, episode in enumerate(written.pending)
            for name, array in episode.items()
        }
        record = {"updates": self.updates, "shards": written.shards, "pending": len(written.pending)}
        return durable.Checkpoint(self.frame, state | pending, record)

    def episodes(self) -> Iterator[tuple[dict[str, np.ndarray], Metrics]]:
        """Episodes and what was learned in each, until the frames are used up."""
        while self.frame < self._frames:
            episode, metrics = self._episode(
                np.random.default_rng([self._seed, _EXPLORE, self.buffer.episodes])
            )
            self.buffer.append(episode)
            self._state = self._explorer.absorb(self._state, self.buffer)
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
            if not np.isfinite(action).all():
                raise FloatingPointError("its action is not a number")
            step = self._simulator.step(action)
            recorder.add(action, step, skill)
            state = step.state
            self.frame += 1
            if not seeding and self.buffer.size and self.frame % explorer.chunk == 0:
                updates = max(1, explorer.chunk // explorer.update_every)
                # Before the update, which returns at once: the simulator goes on while the learner learns.
                act = explorer.behaviour(self._state)
                self._state, metrics = explorer.update(self._state, self.buffer.replay, update_key, updates)
                self.updates += updates
                learned.append(metrics)
            if step.terminated or step.truncated:
                break
        return recorder.arrays(), _mean(learned)


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
    resume: bool = False,
    quiet: bool = True,
    tensorboard: bool = False,
) -> Plan:
    """Phase II: solve a reward from the data alone. Written to `out` if given, and resumed from there."""
    if updates < 1:
        raise UserError(f"updates must be at least 1, not {updates}")
    planner = DdpgTwin() if planner is None else planner
    data = _dataset(data)
    if not data.frames:
        raise UserError(f"{data.path} holds no complete episode to plan from")
    named = resolve(reward, data.spec)
    labelled = label(data, named, quiet=quiet)
    if out is None:
        with Monitor(
            _title(named, planner), updates, "updates", None, quiet=quiet, tensorboard=False
        ) as monitor:
            return Plan(
                planner.fit(labelled, updates, seed, _reporter(monitor, None)), data.spec.domain, named
            )
    config = {
        "domain": data.spec.domain,
        "reward": {"name": named.name, "kind": named.kind},
        "planner": registry.to_json(planner),
        "updates": updates,
        "seed": seed,
        "frames": data.frames,
    }
    folder = _claim(Path(out), "plan.json", "plan", config, resume)
    with durable.locked(folder):
        if resume and files.read_json(folder / "plan.json")["status"] == "complete":
            return Plan.load(folder, named)
        files.clean(folder)
        checkpoints = durable.Checkpoints(folder / "checkpoints", updates)
        last = checkpoints.last() if resume else None
        _keep_lines(folder / "metrics.jsonl", 0 if last is None else last.record["reports"])
        title = _title(named, planner)
        with (
            durable.Interrupts() as interrupts,
            Monitor(title, updates, "updates", folder, quiet=quiet, tensorboard=tensorboard) as monitor,
        ):
            report = _reporter(monitor, checkpoints, interrupts)
            policy = planner.fit(labelled, updates, seed, report, checkpoints, last)
            policy.save(folder / "policy.safetensors")
            _update(folder / "plan.json", status="complete", seconds=round(monitor.seconds, 3))
    return Plan(policy, data.spec.domain, named, folder)


def _title(reward: NamedReward, planner: Planner) -> str:
    return f"plan {reward.name} with {registry.name_of(planner)}"


def _reporter(
    monitor: Monitor,
    checkpoints: durable.Checkpoints | None = None,
    interrupts: durable.Interrupts | None = None,
) -> Callable[[int, Metrics], None]:
    def report(done: int, metrics: Metrics) -> None:
        try:
            _refuse_divergence(metrics)
        except FloatingPointError as error:
            raise _diverged(f"update {done}", error, checkpoints) from error
        monitor.record(done, {}, metrics)
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


def _claim(folder: Path, record: str, what: str, config: dict[str, Any], resume: bool = False) -> Path:
    """Make the folder of a new run or plan; one that holds anything already is left alone, or resumed."""
    if (folder / record).exists():
        if not resume:
            raise UserError(f"{folder} already holds a {what}: resume it, choose another --out, or remove it")
        before = files.read_json(folder / record)
        for name, value in json.loads(json.dumps(config)).items():
            if before.get(name) != value:
                raise UserError(f"{folder} was made with another {name}: resume it with the settings it has")
        return folder
    if resume and not folder.exists():
        raise UserError(f"there is no {what} in {folder} to resume")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not an empty folder: choose another --out")
    files.write_json(folder / record, {**config, "versions": versions(), "status": "running"})
    return folder


def _refuse_divergence(metrics: Metrics) -> None:
    """Stop before noise is stored: a metric that is not finite, or beyond any value."""
    for name, value in metrics.items():
        number = float(np.asarray(value))
        if not abs(number) < DIVERGED:  # NaN is not
            raise FloatingPointError(f"{name} is {number:g}")


def _diverged(where: str, error: FloatingPointError, checkpoints: durable.Checkpoints | None) -> UserError:
    last = checkpoints.last() if checkpoints is not None else None
    good = "there is no checkpoint" if last is None else f"the last good checkpoint is at {last.done}"
    return UserError(f"the learner diverged at {where}: {error}; {good}")


def _keep_lines(path: Path, count: int) -> None:
    """Drop what a log says of the time after a checkpoint."""
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        files.write_bytes(path, "".join(lines[:count]).encode())


def _update(path: Path, **changes: Any) -> None:
    files.write_json(path, {**files.read_json(path), **changes})
