"""Any Gymnasium environment: bounds, lengths, termination, and what is not supported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import run, run_json

import rewardfree as rf
from rewardfree.data.replay import ReplayBuffer
from rewardfree.domains.gymnasium import TRUSTED
from rewardfree.pipeline import make_domain

MODULE = '''
import gymnasium, numpy as np
from gymnasium import spaces

class Countdown(gymnasium.Env):
    """Ends by itself when the sum of the actions passes 3, is cut off after 12 steps."""

    observation_space = spaces.Dict({"sum": spaces.Box(-50, 50, (1,)), "step": spaces.Box(0, 50, (1,))})
    action_space = spaces.Box(np.array([-1.0, 10.0], np.float32), np.array([3.0, 20.0], np.float32))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sum, self.count = float(self.np_random.uniform(0, 1)), 0
        return self.seen(), {}

    def step(self, action):
        assert -1 <= action[0] <= 3 and 10 <= action[1] <= 20
        self.sum, self.count = self.sum + float(action[0]), self.count + 1
        return self.seen(), 0.0, self.sum > 3, self.count >= 12, {}

    def seen(self):
        return {"sum": np.array([self.sum], np.float32), "step": np.array([self.count], np.float32)}

def make():
    return Countdown()

def nothing():
    return "not an environment"
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "count_down.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(TRUSTED, raising=False)
    yield "gymnasium:count_down:make"
    sys.modules.pop("count_down", None)


def test_the_whole_story_of_a_registered_environment(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    explored = run_json(
        capsys,
        "explore",
        "gymnasium:Pendulum-v1",
        "--explorer",
        "random",
        "--frames",
        1000,
        "--out",
        tmp_path / "run",
    )
    assert (explored["frames"], explored["episodes"]) == (1000, 5)
    reward = "obs[0] - 0.1 * obs_o2 ** 2 - 0.001 * action[0] ** 2 + 0 * before(obs[1])"
    rewards = run_json(capsys, "inspect", tmp_path / "run", "--reward", reward)["rewards"]
    assert isinstance(rewards, dict)
    assert rewards[reward]["max"] <= 1
    tiny = ["--hidden", "8", "--batch", "16", "--updates", "5"]
    run_json(capsys, "plan", tmp_path / "run", "--reward", reward, *tiny, "--out", tmp_path / "plan")
    returns = run_json(capsys, "evaluate", tmp_path / "plan", "--episodes", 2)["returns"]
    assert isinstance(returns, list)
    assert len(returns) == 2
    assert run_json(capsys, "check", tmp_path / "run")["repeated"] == []


def test_the_same_seed_gives_the_same_data(tmp_path: Path) -> None:
    def data(name: str, seed: int) -> rf.Dataset:
        out = tmp_path / name
        return rf.explore("gymnasium:MountainCarContinuous-v0", rf.Random(), frames=300, seed=seed, out=out)

    first, again, other = data("a", 1), data("b", 1), data("c", 2)
    assert first.digest == again.digest != other.digest


def test_actions_are_scaled_and_episodes_end_as_they_do(module: str, tmp_path: Path) -> None:
    data = rf.explore(module, rf.Random(), frames=400, seed=0, out=tmp_path / "run")
    assert data.spec.observation == 2  # a dictionary, flattened
    assert data.spec.action == 2
    assert len(set(data.lengths)) > 2
    ctrl, action = data.values("ctrl"), data.values("action")
    np.testing.assert_allclose(ctrl, np.array([-1, 10]) + (action + 1) / 2 * np.array([4, 10]), atol=1e-6)
    terminated = data.array("terminated")
    ends = np.cumsum(data.lengths) - 1
    assert terminated[ends].any()
    assert not np.delete(terminated, ends).any()
    for episode in list(data.each_episode())[:-1]:  # the last one was cut off by the budget
        over = float(episode["observation"][-1, 1]) > 3  # the flattened order is that of the keys: step, sum
        assert bool(episode["terminated"][-1]) == over
        assert over or len(episode["action"]) == 12


def test_what_is_cut_off_still_has_a_future(module: str, tmp_path: Path) -> None:
    data = rf.explore(module, rf.Random(), frames=400, seed=0, out=tmp_path / "run")
    buffer = ReplayBuffer(data.spec, 400, nstep=1, gamma=0.9)
    for episode in data.each_episode():
        buffer.append(episode)
    discount = np.asarray(buffer.replay.discount)[: buffer.size]
    np.testing.assert_allclose(discount, np.where(data.array("terminated"), 0.0, 0.9))


def test_code_is_not_imported_on_a_data_set_s_word(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = rf.explore(module, rf.Random(), frames=50, seed=0, out=tmp_path / "run")
    rf.plan(data, "obs[0]", rf.DdpgTwin(hidden=8, batch=16), updates=2, out=tmp_path / "plan")
    monkeypatch.delenv(TRUSTED)
    with pytest.raises(rf.UserError, match=f"which is not run unasked: allow it with {TRUSTED}=count_down"):
        rf.evaluate(tmp_path / "plan", episodes=1)
    monkeypatch.setenv(TRUSTED, "count_down")
    assert len(rf.evaluate(tmp_path / "plan", episodes=1).returns) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gymnasium:CartPole-v1", "has the action space Discrete"),
        ("gymnasium:FrozenLake-v1", "has the observation space Discrete"),
        ("gymnasium:NoSuch-v0", "Gymnasium cannot make NoSuch-v0"),
        ("gymnasium", "did you mean gymnasium:ID"),
        ("gymnasium:no_such_module:make", "Gymnasium cannot make"),
        ("gymnasium:count_down:absent", "Gymnasium cannot make"),
        ("gymnasium:count_down:nothing", "makes no gymnasium.Env but str"),
    ],
)
def test_what_is_not_supported_says_so(
    name: str, message: str, module: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = run(capsys, "explore", name, "--explorer", "random", "--out", tmp_path / "out")
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_mujoco_environment_of_gymnasium() -> None:
    domain = make_domain("gymnasium:HalfCheetah-v5")
    assert (domain.spec.observation, domain.spec.action) == (17, 6)
    assert domain.spec.episode_length == 1000
    first = domain.reset(3)
    np.testing.assert_array_equal(first.observation, domain.reset(3).observation)
    step = domain.step(np.ones(6, np.float32))
    assert not step.terminated
    assert np.isfinite(step.state.observation).all()
