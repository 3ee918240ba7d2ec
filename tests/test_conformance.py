"""Whatever discovery finds keeps its role's promises; no plug-in needs a test of its own for them."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import SPEC, make_episode

import rewardfree as rf
from rewardfree import registry
from rewardfree.cli import main
from rewardfree.data import files
from rewardfree.data.replay import ReplayBuffer, take
from rewardfree.explorers._actor_critic import Values
from rewardfree.explorers._explorer import ActorCriticExplorer
from rewardfree.interfaces import Explorer, Moment, Oracle, Planner, Spec
from rewardfree.pages import documentation
from rewardfree.pipeline import make_domain, rollout
from rewardfree.policy import ActorPolicy
from rewardfree.rewards.resolve import resolve

KEY = jax.random.PRNGKey(0)
EPISODE_KEY = np.array([3, 4], np.uint32)
SPECS = [make_domain(name).spec for name in registry.names("domain")]


def small(config: Any) -> Any:
    """The same algorithm with narrow networks, three critics at most: widths of 100 or more become 16."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            changes[field.name] = small(value)
        elif isinstance(value, int) and value >= 100 and field.name != "seed_frames":
            changes[field.name] = 16
        elif field.name == "critics":
            changes["critics"] = min(value, 3)
    return dataclasses.replace(config, **changes)


def presets(role: str) -> list[Any]:
    """Every preset of every plug-in of a role, as pytest parameters."""
    found = []
    for name in registry.names(role):
        cls = registry.load(role, name)
        settings = cls.presets() if hasattr(cls, "presets") else {"default": cls()}
        found += [pytest.param(config, id=f"{name}-{preset}") for preset, config in settings.items()]
    return found


def leaves(tree: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in files.tree_arrays(tree).items()}


def collect(explorer: Explorer, spec: Spec, episodes: int = 4, length: int = 5) -> ReplayBuffer:
    """A replay of random numbers, with the explorer's own skills."""
    buffer = ReplayBuffer(spec, episodes * length, explorer.nstep, explorer.gamma, explorer.skill_size(spec))
    for number in range(episodes):
        episode = make_episode(length, number, spec)
        key = np.array([number, 0], np.uint32)
        episode["skill"] = np.stack([explorer.skill(spec, key, step) for step in range(length)])
        buffer.append(episode)
    return buffer


def learned(explorer: Explorer, buffer: ReplayBuffer, updates: int = 2) -> tuple[Any, dict[str, Any]]:
    state = explorer.absorb(explorer.init(SPEC, KEY), buffer)
    return explorer.update(state, buffer.replay, jax.random.PRNGKey(1), updates)


@pytest.mark.parametrize("explorer", presets("explorer"))
def test_an_explorer_repeats_itself_resumes_and_never_reads_a_reward(
    explorer: Explorer, tmp_path: Path
) -> None:
    explorer = small(explorer)
    buffer = collect(explorer, SPEC)
    state, metrics = learned(explorer, buffer)
    after = leaves(state)
    assert all(np.isfinite(value) for value in metrics.values())
    assert leaves(learned(explorer, buffer)[0]) == after

    path = tmp_path / "state.safetensors"
    files.write_arrays(path, files.tree_arrays(state))
    restored = files.fill_tree(explorer.init(SPEC, jax.random.PRNGKey(9)), files.map_arrays(path))
    assert leaves(restored) == after
    key = jax.random.PRNGKey(2)
    on, _ = explorer.update(state, buffer.replay, key, 2)
    again, _ = explorer.update(restored, buffer.replay, key, 2)
    assert leaves(on) == leaves(again)

    rewarded = collect(explorer, SPEC)
    rewarded.replay = rewarded.replay._replace(reward=jnp.arange(20.0))
    assert leaves(learned(explorer, rewarded)[0]) == after


@pytest.mark.parametrize("explorer", presets("explorer"))
def test_an_intrinsic_reward_is_one_finite_number_per_transition(explorer: Explorer) -> None:
    if not isinstance(explorer, ActorCriticExplorer):
        pytest.skip("this explorer maximises no reward")
    explorer = cast("ActorCriticExplorer", small(explorer))
    buffer = collect(explorer, SPEC)
    state = explorer.absorb(explorer.init(SPEC, KEY), buffer)
    batch = take(buffer.replay, jnp.arange(explorer.batch) % buffer.size)
    model, _ = explorer.fit(state.model, batch, KEY)
    values = explorer.target_values(state.agent, batch, KEY, here=True)
    _, reward, _ = explorer.intrinsic_reward(model, batch, values)
    weight, _ = explorer.weight(model, batch, values)
    assert reward.shape == weight.shape == (explorer.batch,)
    assert np.isfinite(reward).all()
    assert (np.asarray(weight) > 0).all()


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.domain)
@pytest.mark.parametrize("explorer", presets("explorer"))
def test_an_explorer_acts_in_range_on_every_domain(explorer: Explorer, spec: Spec) -> None:
    explorer = small(explorer)
    act = explorer.behaviour(explorer.init(spec, KEY))
    rng = np.random.default_rng(0)
    for step in range(60):
        observation = (10.0 ** rng.integers(-3, 4) * rng.normal(size=spec.observation)).astype(np.float32)
        skill = explorer.skill(spec, EPISODE_KEY, step)
        assert skill.shape == (explorer.skill_size(spec),)
        now = Moment(observation, skill, EPISODE_KEY, step)
        action = act(now)
        assert action.shape == (spec.action,)
        assert action.dtype == np.float32
        assert (np.abs(action) <= 1).all()
        assert np.array_equal(action, act(now))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.domain)
@pytest.mark.parametrize("explorer", presets("explorer"))
def test_an_explorer_learns_on_every_domain(explorer: Explorer, spec: Spec) -> None:
    """An update fits the domain's sizes and leaves the state's shapes as they were; traced, not compiled."""
    explorer = small(explorer)
    state, buffer = explorer.init(spec, KEY), collect(explorer, spec)
    after, _ = jax.eval_shape(lambda state: explorer.update(state, buffer.replay, KEY, 2), state)
    shapes = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(state)]
    assert [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(after)] == shapes


@pytest.mark.parametrize("name", registry.names("explorer"))
def test_an_explorers_run_repeats_itself_and_keeps_its_skills(name: str, tmp_path: Path) -> None:
    explorer = small(next(iter(registry.load("explorer", name).presets().values())))
    if isinstance(explorer, ActorCriticExplorer):
        explorer = dataclasses.replace(explorer, seed_frames=1000, chunk=200, update_every=50)
    runs = [rf.explore("point_mass_maze", explorer, frames=1400, out=tmp_path / str(n)) for n in range(2)]
    first, second = (
        {array: run.array(array) for array in ("observation", "action", "skill", "qpos")} for run in runs
    )
    assert all(np.array_equal(first[array], second[array]) for array in first)
    size = explorer.skill_size(runs[0].spec)
    assert first["skill"].shape == (1400, size)
    shown = rf.inspect(runs[0])["skills"]
    assert shown["length"] == size
    assert (shown["distinct"] > 0) == (size > 0)


@pytest.mark.parametrize(
    ("role", "config"),
    [
        pytest.param(role, *parameter.values, id=f"{role}-{parameter.id}")
        for role in ("explorer", "planner", "oracle")
        for parameter in presets(role)
    ],
)
def test_a_config_round_trips_through_json(role: str, config: Any) -> None:
    assert registry.from_json(role, registry.to_json(config)) == config


@pytest.mark.parametrize(
    ("role", "name"), [(role, name) for role in ("explorer", "planner") for name in registry.names(role)]
)
def test_help_documents_every_field(
    role: str, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    command = ["explore", "walker"] if role == "explorer" else ["plan", "run", "--reward", "flip"]
    with pytest.raises(SystemExit):
        main([*command, f"--{role}", name, "--help"])
    shown = " ".join(re.sub(r"[│╭╮╰╯─]", " ", capsys.readouterr().out).split())
    cls = registry.load(role, name)
    for field in dataclasses.fields(cls):
        text = documentation(cls, field.name)
        assert text, field.name
        if field.name not in registry.ROLES:
            assert re.search(rf"--(no-)?{field.name.replace('_', '-')}\b", shown), field.name
            assert text.rstrip(".") in shown, field.name


@pytest.fixture(scope="module")
def labelled(small_run: rf.Dataset) -> Any:
    return rf.label(small_run, "reach_top_left")


@pytest.mark.parametrize("planner", presets("planner"))
def test_a_planner_repeats_itself_and_its_policy_outlives_the_process(
    planner: Planner, labelled: Any, tmp_path: Path
) -> None:
    planner = small(planner)
    policy, again = (planner.fit(labelled, 3, seed=5) for _ in range(2))
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    actions = policy(observations)
    assert actions.shape == (50, 2)
    assert (np.abs(actions) <= 1).all()
    assert np.array_equal(actions, again(observations))
    policy.save(tmp_path / "policy.safetensors")
    assert np.array_equal(ActorPolicy.load(tmp_path / "policy.safetensors")(observations), actions)


@pytest.mark.parametrize("oracle", presets("oracle"))
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.domain)
def test_an_oracle_gives_a_width_and_survives_a_checkpoint(
    oracle: Oracle, spec: Spec, tmp_path: Path
) -> None:
    oracle = small(oracle)
    buffer = collect(small(rf.GfaRfe()), spec)
    value = jax.tree_util.Partial(lambda s, a: jnp.zeros(len(s)))  # type: ignore[no-untyped-call]
    state = oracle.absorb(oracle.init(spec, KEY), buffer, value)
    batch = take(buffer.replay, jnp.arange(7))
    values = jax.random.normal(KEY, (3, 7))
    state, _ = oracle.fit(state, batch, Values(values, values, batch.action))
    width = oracle.width(state, batch.observation, batch.action, values)
    assert width.shape == (7,)
    assert (np.asarray(width) >= 0).all()
    files.write_arrays(tmp_path / "state.safetensors", files.tree_arrays(state))
    restored = files.fill_tree(oracle.init(spec, KEY), files.map_arrays(tmp_path / "state.safetensors"))
    assert leaves(restored) == leaves(state)


@pytest.mark.parametrize("name", registry.names("domain"))
def test_a_domain_is_what_its_spec_says(name: str) -> None:
    domain = make_domain(name)
    spec = dataclasses.replace(domain.spec, episode_length=20)
    first, again = domain.reset(7), domain.reset(7)
    assert np.array_equal(first.observation, again.observation)
    assert not np.array_equal(first.observation, domain.reset(8).observation)
    domain.spec = spec
    rng = np.random.default_rng(0)

    class Policy:
        def __call__(self, observation: np.ndarray) -> np.ndarray:
            assert observation.shape == (spec.observation,)
            return rng.uniform(-1, 1, spec.action).astype(np.float32)

        def save(self, path: Path) -> None:
            raise NotImplementedError

    episode = rollout(domain, Policy(), seed=7)
    assert len(episode["action"]) == 20
    for quantity in spec.quantities:
        assert np.isfinite(episode[quantity]).all()
    for task in domain.tasks:
        paid = resolve(task, spec)(episode)
        assert paid.shape == (20,), task
        assert np.isfinite(paid).all(), task


PLUGIN = '''
from dataclasses import dataclass
import jax.numpy as jnp
from rewardfree import ActorCriticExplorer

@dataclass(frozen=True)
class Outlier(ActorCriticExplorer):
    """Rewards states that lie far from the middle of the minibatch."""

    power: float = 1.0
    """Exponent of the distance."""

    def intrinsic_reward(self, model, batch, values):
        far = jnp.linalg.norm(batch.next_observation - batch.next_observation.mean(axis=0), axis=-1)
        return model, far**self.power, {}
'''


def test_a_plug_in_that_is_dropped_in_passes_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "explorers").mkdir()
    (tmp_path / "explorers" / "outlier.py").write_text(PLUGIN)
    monkeypatch.setenv("REWARDFREE_PLUGINS", str(tmp_path))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "outlier", __file__]
    run = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=Path(__file__).parent.parent
    )
    assert run.returncode == 0, run.stdout
    assert re.search(r"\b11 passed", run.stdout), run.stdout
