"""Small real runs that several tests read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import rewardfree as rf
from rewardfree.cli import main
from rewardfree.exact import Mdp
from rewardfree.interfaces import Axis, Spec, State, Step

SMALL = rf.GfaRfe(oracle=rf.Elliptical(features=16), hidden=8, batch=16, seed_frames=1000, chunk=100)

SPEC = Spec(
    domain="point_mass_maze",
    observation=3,
    action=2,
    episode_length=5,
    timestep=0.1,
    quantities=("height", "speed"),
    joints={"hinge": (0, 1, 0, 1), "ball": (1, 5, 1, 4)},
    coverage=(Axis("height", 0.0, 1.0, 4),),
)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's cache is not the tests'."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> rf.Dataset:
    """2500 frames of the maze: two whole episodes and one cut off by the budget."""
    out = tmp_path_factory.mktemp("runs") / "small"
    return rf.explore("point_mass_maze", SMALL, frames=2500, seed=3, out=out)


def make_episode(
    length: int, seed: int, spec: Spec = SPEC, terminated: bool = False
) -> dict[str, np.ndarray]:
    """An episode of random numbers."""
    from rewardfree.data.dataset import Recorder

    rng = np.random.default_rng(seed)

    def state() -> State:
        return State(
            observation=rng.normal(size=spec.observation).astype(np.float32),
            qpos=rng.normal(size=5),
            qvel=rng.normal(size=4),
            act=np.zeros(0),
            quantities=rng.normal(size=len(spec.quantities)).astype(np.float32),
        )

    recorder = Recorder(state())
    for t in range(length):
        action = rng.uniform(-1, 1, spec.action).astype(np.float32)
        recorder.add(action, Step(state(), action.astype(np.float64), terminated and t == length - 1))
    return recorder.arrays()


Reward = Callable[[rf.Transitions], np.ndarray]


def write_file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def random_mdp(seed: int, S: int = 3, A: int = 2, H: int = 3, sparse: bool = True) -> Mdp:
    """A random MDP whose kernel changes from stage to stage; about half of the transitions are impossible."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(S), size=(H, S, A))
    if sparse:
        P = P * (rng.random(P.shape) < 0.5) + 1e-3 * np.eye(S)[rng.integers(S, size=(H, S, A))]
        P /= P.sum(axis=-1, keepdims=True)
    return Mdp(P, rng.dirichlet(np.ones(S)))


def run(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, str, str]:
    capsys.readouterr()
    try:
        code = main([str(word) for word in argv])
    except SystemExit as stopped:  # tyro's own
        code = int(stopped.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def run_json(capsys: pytest.CaptureFixture[str], *argv: object) -> dict[str, object]:
    code, out, err = run(capsys, *argv, "--json")
    assert code == 0, err
    lines = out.splitlines()
    assert len(lines) == 1
    value: dict[str, object] = json.loads(lines[0])
    return value
