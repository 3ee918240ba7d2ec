"""Data for and from other tools: exact round trips, a layout that others write, and hostile files."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import run, run_json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rewardfree as rf
from rewardfree.data.transitions import STATE_ARRAYS, STEP_ARRAYS
from rewardfree.domains._dm_control import load
from rewardfree.exchange.minari import import_minari
from rewardfree.exchange.npz import export_npz, import_npz

MAZE = "point_mass_maze"


def test_there_and_back_is_the_same_data(
    small_run: rf.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reward = "tolerance(norm(x, y), 0, 0.1, margin=0.2)"
    out = run_json(capsys, "export", small_run.path, "--out", tmp_path / "npz", "--reward", reward)
    assert out["episodes"] == small_run.episodes
    back = run_json(capsys, "import", tmp_path / "npz", "--domain", MAZE, "--out", tmp_path / "run")
    assert back["frames"] == small_run.frames
    again = rf.Dataset.open(tmp_path / "run")
    np.testing.assert_array_equal(again.lengths, small_run.lengths)
    for name in (*STATE_ARRAYS, *STEP_ARRAYS):
        np.testing.assert_array_equal(again.array(name), small_run.array(name), err_msg=name)
        assert again.array(name).dtype == small_run.array(name).dtype
    first = np.load(tmp_path / "npz" / "episode_000000_1000.npz")
    np.testing.assert_array_equal(first["reward"][1:, 0], rf.label(small_run, reward).reward[:1000])
    np.testing.assert_array_equal(first["action"][0], 0)  # the dummy row


def exorl_folder(folder: Path, episodes: int = 2, steps: int = 30) -> np.ndarray:
    """What ExORL's collection writes of the walker, by dm_control alone. Returns the rewards that it paid."""
    environment = load("suite.walker").walk(random=np.random.RandomState(0))
    rng = np.random.default_rng(0)
    folder.mkdir()
    paid = []
    for number in range(episodes):
        time = environment.reset()
        rows: dict[str, list[np.ndarray]] = {
            name: [] for name in ("observation", "action", "reward", "discount", "physics")
        }
        for step in range(steps + 1):
            action = np.zeros(6, np.float32) if step == 0 else rng.uniform(-1, 1, 6).astype(np.float32)
            if step:
                time = environment.step(action)
                paid.append(time.reward)
            flat = np.concatenate([np.ravel(part) for part in time.observation.values()]).astype(np.float32)
            rows["observation"].append(flat)
            rows["action"].append(action)
            rows["reward"].append(np.array([time.reward or 0.0], np.float32))
            rows["discount"].append(np.array([1.0], np.float32))
            rows["physics"].append(environment.physics.get_state())
        arrays: dict[str, Any] = {name: np.array(values) for name, values in rows.items()}
        np.savez_compressed(folder / f"episode_{number}_{steps}.npz", **arrays)
    return np.array(paid)


def test_an_exorl_folder_is_imported_and_relabelled(tmp_path: Path) -> None:
    paid = exorl_folder(tmp_path / "exorl")
    data = import_npz(tmp_path / "exorl", "walker", tmp_path / "run")
    assert (data.frames, data.episodes) == (60, 2)
    np.testing.assert_allclose(rf.label(data, "walk").reward, paid, atol=1e-5)
    assert rf.label(data, "left_foot_z > 0").reward.shape == (60,)
    assert rf.pipeline.check(data)["drift"] == 0  # the actions repeat the states
    plan = rf.plan(data, "flip", rf.DdpgTwin(hidden=8, batch=16), updates=2)
    assert len(rf.evaluate(plan, episodes=1).returns) == 1


def test_episodes_are_taken_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    data = rf.explore("gymnasium:Pendulum-v1", rf.Random(), frames=2400, seed=0, out=tmp_path / "run")
    export_npz(data, tmp_path / "npz")
    for path in sorted((tmp_path / "npz").iterdir()):
        path.rename(path.with_name(f"episode_{int(path.name.split('_')[1])}_200.npz"))  # no leading zeros
    again = import_npz(tmp_path / "npz", "gymnasium:Pendulum-v1", tmp_path / "again")
    np.testing.assert_array_equal(again.array("observation"), data.array("observation"))


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return (Path.touch, (Path("hostile-was-here"),))


def good(**changes: Any) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "observation": np.zeros((4, 4), np.float32),
        "action": np.zeros((4, 2), np.float32),
        "discount": np.ones((4, 1), np.float32),
        "physics": np.zeros((4, 4)),
    }
    return {name: value for name, value in (arrays | changes).items() if value is not None}


BAD = {
    "has no array 'action'": good(action=None),
    "observation has shape (4, 3)": good(observation=np.zeros((4, 3))),
    "action has shape (3, 2)": good(action=np.zeros((3, 2))),
    "needs physics of shape (4, 4); there is none": good(physics=None),
    "needs physics of shape (4, 4); there is shape (4, 9)": good(physics=np.zeros((4, 9))),
    "observation has values that are not numbers": good(observation=np.full((4, 4), np.nan)),
    "action has values": good(action=np.full((4, 2), "x")),
    "holds no step": {name: value[:1] for name, value in good().items()},
    "not a .npz file of plain arrays": good(action=np.array([Hostile()] * 4, dtype=object)),
}


@pytest.mark.parametrize("message", BAD)
def test_a_file_that_does_not_fit_says_why(
    message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    np.savez(tmp_path / "in" / "episode_0_3.npz", **BAD[message])
    with pytest.raises(rf.UserError) as caught:
        import_npz(tmp_path / "in", MAZE, tmp_path / "out")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "hostile-was-here").exists()


def test_hostile_files_execute_nothing_and_unpack_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    file = folder / "episode_0_3.npz"
    file.write_bytes(pickle.dumps(Hostile()))  # a pickle renamed
    assert run(capsys, "import", folder, "--domain", MAZE, "--out", tmp_path / "a")[0] == 2
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb,  # 3 GiB of nothing, in a few megabytes
        bomb.open("observation.npy", "w", force_zip64=True) as entry,
    ):
        for _ in range(3 * 2**10):
            entry.write(bytes(2**20))
    code, _, err = run(capsys, "import", folder, "--domain", MAZE, "--out", tmp_path / "b")
    assert code == 2
    assert "unpacks to 3.0 GiB" in err
    np.savez(file, **{"../../escape": np.zeros(3), **good()})
    import_npz(folder, MAZE, tmp_path / "c")  # names inside are names of arrays, never of files
    assert {path.name for path in tmp_path.iterdir()} <= {"in", "a", "b", "c"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_damage_is_a_clear_error_or_no_damage(tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    file = folder / "episode_0_3.npz"
    np.savez(file, **good())
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
    try:
        import_npz(folder, MAZE, out)
    except rf.UserError as error:
        assert "\n" not in str(error) or "npz" in str(error)  # noqa: PT017


def test_minari_reads_what_is_exported_and_it_comes_back_the_same(
    small_run: rf.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    minari = pytest.importorskip("minari")
    reward = "x ** 2"
    out = run_json(
        capsys,
        "export",
        small_run.path,
        "--format",
        "minari",
        "--out",
        tmp_path / "minari",
        "--reward",
        reward,
    )
    assert out["id"] == "rewardfree/point-mass-maze-v0"
    with monkeypatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
        theirs = minari.load_dataset(out["id"])
        assert (theirs.total_episodes, theirs.total_steps) == (3, 2500)
        episode = theirs[0]
    np.testing.assert_array_equal(episode.observations, next(small_run.each_episode())["observation"])
    np.testing.assert_allclose(episode.rewards, rf.label(small_run, reward).reward[:1000])
    assert episode.truncations[-1]
    assert not episode.terminations.any()
    source = ["--format", "minari", "--root", tmp_path / "minari", "--domain", MAZE]
    back = run_json(capsys, "import", out["id"], *source, "--out", tmp_path / "run")
    assert back["frames"] == 2500
    again = rf.Dataset.open(tmp_path / "run")
    for name in {*STATE_ARRAYS, *STEP_ARRAYS} - {"skill"}:
        np.testing.assert_array_equal(again.array(name), small_run.array(name), err_msg=name)
    assert again.array("skill").shape == (2500, 0)  # Minari has no place for it
    code, _, err = run(capsys, "import", "no/such-v0", *source, "--out", tmp_path / "none")
    assert code == 2
    assert "Minari has no data set no/such-v0" in err


def test_a_minari_data_set_of_an_environment_with_bounds_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of Pendulum, whose actions go from -2 to 2."""
    minari = pytest.importorskip("minari")
    import gymnasium
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    environment = gymnasium.make("Pendulum-v1")
    environment.action_space.seed(0)
    buffers = []
    for number in range(2):
        seen, actions = [environment.reset(seed=number)[0]], []
        for _ in range(200):
            actions.append(environment.action_space.sample())
            seen.append(environment.step(actions[-1])[0])
        ends = [False] * 199 + [True]
        buffers.append(EpisodeBuffer(number, None, None, seen, actions, [0.0] * 200, [False] * 200, ends, {}))
    spaces = {"observation_space": environment.observation_space, "action_space": environment.action_space}
    with warnings.catch_warnings(action="ignore"):  # no author, no link to code
        collected = minari.create_dataset_from_buffers("test/pendulum-v0", buffers, **spaces)
    data = import_minari("test/pendulum-v0", None, "gymnasium:Pendulum-v1", tmp_path / "run")
    assert (data.frames, data.episodes) == (400, 2)
    np.testing.assert_allclose(data.values("ctrl")[:200], collected[0].actions, atol=1e-6)
    np.testing.assert_allclose(data.values("action")[:200] * 2, collected[0].actions, atol=1e-6)
    assert rf.label(data, "obs[0]").reward.max() <= 1


@pytest.fixture(scope="module")
def plan(small_run: rf.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plans") / "plan"
    rf.plan(small_run, "x", rf.DdpgTwin(hidden=16, batch=16, normalise=True), updates=50, out=out)
    return out


@pytest.mark.parametrize("kind", ["onnx", "numpy"])
def test_a_policy_acts_the_same_without_this_package(
    kind: str, plan: Path, small_run: rf.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / ("policy.onnx" if kind == "onnx" else "policy.py")
    run_json(capsys, "export", plan, "--format", kind, "--out", file)
    observation = small_run.values("obs")[:200]
    expected = rf.Plan.load(plan).policy(observation)
    if kind == "onnx":
        runtime = pytest.importorskip("onnxruntime")
        session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        (found,) = session.run(["action"], {"observation": observation})
    else:
        np.save(tmp_path / "observation.npy", observation)
        code = (
            "import sys, numpy as np; sys.path.insert(0, sys.argv[1]); import policy;"
            "np.save('action.npy', policy.act(np.load('observation.npy')));"
            "assert 'rewardfree' not in sys.modules and 'jax' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", code, tmp_path], cwd=tmp_path, check=True)
        found = np.load(tmp_path / "action.npy")
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(found) > 0


def test_what_is_not_a_plan_is_not_exported(
    small_run: rf.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "export", small_run.path, "--format", "onnx", "--out", tmp_path / "x.onnx")
    assert code == 2
    assert "holds no plan" in err
