"""Data that can be trusted: proven when written, checked later, and looked at before planning."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import run, run_json

import rewardfree as rf
from rewardfree.data import files
from rewardfree.data.dataset import LabelledDataset
from rewardfree.rewards.resolve import resolve
from rewardfree.rewards.support import best_window, effective_dimension, support, unseen


@pytest.fixture
def data(small_run: rf.Dataset, tmp_path: Path) -> rf.Dataset:
    shutil.copytree(small_run.path, tmp_path / "run")
    return rf.Dataset.open(tmp_path / "run")


def change(data: rf.Dataset, name: str, change_: Any) -> None:
    """Change an array of the first shard, and the manifest with it: a forgery that checksums do not see."""
    manifest = files.read_json(data.path / "data" / "manifest.json")
    path = data.path / "data" / manifest["shards"][0]["file"]
    arrays = {key: np.array(value) for key, value in files.map_arrays(path).items()}
    change_(arrays[name])
    size, digest = files.write_arrays(path, arrays)
    manifest["shards"][0] |= {"bytes": size, "sha256": digest}
    files.write_json(data.path / "data" / "manifest.json", manifest)


def test_a_sound_run_repeats_bit_for_bit(data: rf.Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, "check", data.path)
    assert found["drift"] == 0
    assert found["changed"] == []
    repeated = found["repeated"]
    assert isinstance(repeated, list)
    assert [one["steps"] for one in repeated] == [1000, 1000, 500]
    proof = found["round_trip"]
    assert isinstance(proof, dict)
    assert proof["shards"] == found["shards"]
    assert proof["worst"] < 1e-5


def test_other_actions_are_noticed(data: rf.Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    change(data, "action", lambda action: action[:].__imul__(-1))
    code, out, _ = run(capsys, "check", data.path)
    assert code == 0
    assert re.search(r"episode 0 drifts after \d+ steps", out)


def test_a_newer_simulator_is_noticed(data: rf.Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    path = data.path / "data" / "manifest.json"
    manifest = files.read_json(path)
    manifest["versions"]["mujoco"] = "2.3.7"
    files.write_json(path, manifest)
    code, out, _ = run(capsys, "check", data.path)
    assert code == 0
    assert "mujoco 2.3.7 -> " in out


def test_a_flipped_byte_is_noticed(data: rf.Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    path = next((data.path / "data").glob("shard-*"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    code, _, err = run(capsys, "check", data.path)
    assert code == 2
    assert "is damaged" in err


def test_repair_drops_what_is_damaged_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_ = tmp_path / "run"
    rf.explore("point_mass_maze", rf.Random(), frames=15_000, seed=0, out=run_)
    whole = rf.Dataset.open(run_).array("qpos")
    path = run_ / "data" / "shard-00001.safetensors"
    path.write_bytes(path.read_bytes()[:-7])  # cut short
    (run_ / "data" / "shard-00007.safetensors").write_bytes(b"never named")
    (run_ / "data" / ".writing-abc").write_bytes(b"left by a process that was killed")
    code, _, err = run(capsys, "check", run_)
    assert code == 2
    assert "check --repair drops it" in err
    found = run_json(capsys, "check", run_, "--repair")
    dropped = found["dropped"]
    assert isinstance(dropped, list)
    assert [one.split(",")[0] for one in dropped] == ["shard-00001.safetensors", "shard-00007.safetensors"]
    left = rf.Dataset.open(run_)
    assert left.frames == 10_000
    np.testing.assert_array_equal(left.array("qpos"), np.concatenate([whole[:5005], whole[10_010:]]))
    assert not (run_ / "data" / ".writing-abc").exists()
    code, out, _ = run(capsys, "check", run_, "--repair")
    assert code == 0
    assert "nothing to drop" in out
    (tmp_path / "precious.safetensors").write_bytes(b"somebody's")
    manifest = files.read_json(run_ / "data" / "manifest.json")
    manifest["shards"][0]["file"] = "../../precious.safetensors"  # a manifest that points elsewhere
    files.write_json(run_ / "data" / "manifest.json", manifest)
    run_json(capsys, "check", run_, "--repair")
    assert (tmp_path / "precious.safetensors").read_bytes() == b"somebody's"


FORGETFUL = '''
from rewardfree.domains.point_mass_maze import PointMassMaze

class Forgetful(PointMassMaze):
    """Measures the time, which is not in the stored state."""
    name = "forgetful"
    quantities = ("x", "count")
    coverage = PointMassMaze.coverage[:1]
    tasks = {"late": "count"}
    count = 0

    def _measure(self):
        self.count += 1
        return self._position[0], self.count
'''


def test_a_reward_that_does_not_come_back_is_refused_at_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "domains").mkdir()
    (tmp_path / "domains" / "forgetful.py").write_text(FORGETFUL)
    monkeypatch.setenv("REWARDFREE_PLUGINS", str(tmp_path))
    with pytest.raises(rf.UserError, match="the reward late does not come back from the stored states"):
        rf.explore("forgetful", rf.Random(), frames=1000, seed=0, out=tmp_path / "run")


def labelled(data: rf.Dataset, reward: np.ndarray) -> LabelledDataset:
    return LabelledDataset(data, "mine", reward.astype(np.float32))


def test_support_by_hand(data: rf.Dataset) -> None:
    reward = np.zeros(2500)
    reward[100:110] = 1.0  # ten steps of the first episode
    reward[1500] = 0.6  # one of the second
    found = support(labelled(data, reward))
    assert found["mean"] == pytest.approx(10.6 / 2500)
    assert found["max"] == 1
    assert found["above"] == pytest.approx({"0.25": 11 / 2500, "0.5": 11 / 2500, "0.75": 10 / 2500})
    assert (found["successes"], found["episodes"]) == (2, 3)
    assert found["returns"] == pytest.approx({"best": 10, "mean": 10.6 / 3})
    assert found["windows"] == pytest.approx({"10": 1.0, "100": 0.1, "1000": 0.01})
    assert support(labelled(data, np.ones(2500)))["successes"] == 0  # nothing stands out


def test_the_verdict_is_its_rule(data: rf.Dataset) -> None:
    def word(reward: np.ndarray) -> str:
        found: str = support(labelled(data, reward))["verdict"]
        return found

    stretch = np.zeros(2500)
    stretch[300:400] = 1.0  # 100 steps in a row
    for share, expected in {
        1.0: "likely",
        0.6: "likely",
        0.59: "doubtful",
        0.1: "doubtful",
        0.05: "no support",
    }.items():
        assert word(share * stretch) == expected
    scattered = np.zeros(2500)
    scattered[::25] = 1.0  # as much reward, but never in a row
    assert word(scattered) == "no support"
    assert word(np.full(2500, 0.7)) == "no support"  # constant: nothing to learn
    across = np.zeros(2500)
    across[950:1050] = 1.0  # half of it in one episode, half in the next
    assert word(across) == "doubtful"
    assert word(5 * stretch - 1) == "likely"  # not within [0, 1]: against the largest value seen
    lucky = np.zeros(2500)
    lucky[:1000] = 1.0  # an episode that began so, and none that got there
    assert word(lucky) == "no support"
    kept = np.full(2500, 0.9)
    kept[500:] = 0.8  # all of them begin so: it is about keeping it up
    assert word(kept) == "likely"


def test_a_window_is_as_long_as_its_episode_at_most() -> None:
    assert best_window([np.array([0, 1, 1, 0.0]), np.ones(2)], 2) == 1
    assert best_window([np.array([0, 1, 1, 0.0])], 100) == 0.5


def test_effective_dimension_of_known_shapes() -> None:
    rng = np.random.default_rng(0)
    assert effective_dimension(rng.normal(size=(20000, 5))) == pytest.approx(5, rel=0.02)
    assert effective_dimension(np.outer(rng.normal(size=1000), np.ones(5))) == pytest.approx(1)
    assert effective_dimension(np.ones((100, 3))) == 0


def test_what_a_policy_cannot_see_is_named() -> None:
    cases: dict[str, dict[str, list[str]]] = {
        "walker": {
            "rootx > 3": ["rootx"],
            "qpos[1] + vx": ["qpos[1]"],
            "vx + upright": [],
            "sum(qpos)": ["qpos"],
        },
        "quadruped": {"jump": ["com_height"], "walk": [], "root[0]": ["root[0]"], "torso_z > 1": ["torso_z"]},
        "point_mass_maze": {"reach_top_left": [], "sum(qpos)": []},
    }
    for domain, hidden in cases.items():
        spec = rf.pipeline.make_domain(domain).spec
        for reward, expected in hidden.items():
            assert unseen(resolve(reward, spec), spec) == expected, reward


def test_inspect_is_one_page(data: rf.Dataset, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    asked = ["reach_top_left", "x < -0.1 and y > 0.1"]
    found = run_json(capsys, "inspect", data.path, "--reward", *asked, "--html", page)
    rewards, cover = found["rewards"], found["coverage"]
    assert isinstance(rewards, dict)
    assert isinstance(cover, dict)
    assert list(rewards) == asked
    assert cover["reference"]["frames"] == 2500
    assert 0 < cover["reference"]["cells"] == cover["cells"]  # all of its frames were taken
    text = page.read_text()
    assert "x &lt; -0.1 and y &gt; 0.1" in text
    assert text.count("data:image/png;base64,") == 3
    assert not re.search(r"(src|href)='http", text)
    code, out, _ = run(capsys, "inspect", data.path, "--reward", *asked)
    assert code == 0
    assert "uniformly random actions" in out
    for row in rewards.values():
        assert row["verdict"] in ("likely", "doubtful", "no support")
        assert row["verdict"] in out


def test_a_plan_is_looked_at_beside_its_data(data: rf.Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    tiny = ["--hidden", "8", "--batch", "16", "--updates", "20"]
    assert run(capsys, "plan", data.path, "--reward", "reach_top_left", *tiny)[0] == 0
    assert run(capsys, "plan", data.path, "--reward", "x > 0", "--planner", "ddpg", *tiny)[0] == 0
    rewards = rf.inspect(data.path, ["reach_top_left", "x > 0", "y > 0"])["rewards"]
    plan = rewards["reach_top_left"]["plan"]
    assert 0 <= plan["outside"] <= 1
    assert plan["disagreement"]["data"] > 0
    assert rewards["x > 0"]["plan"]["outside"] is None  # ddpg has one critic
    assert rewards["y > 0"]["plan"] is None


def test_the_policy_knows_where_its_critics_disagree(data: rf.Dataset, tmp_path: Path) -> None:
    plan = rf.plan(data, "x", rf.DdpgTwin(hidden=8, batch=16), updates=5, out=tmp_path / "plan")
    loaded = rf.Plan.load(tmp_path / "plan")
    observation, action = data.values("obs")[:50], data.values("action")[:50]
    ours, theirs = (p.policy.disagreement(observation, action) for p in (plan, loaded))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(ours, theirs)
    assert ours.shape == (50,)
    assert (ours > 0).any()
    (tmp_path / "plan" / "critics.safetensors").unlink()  # a policy acts without them
    assert rf.Plan.load(tmp_path / "plan").policy.disagreement(observation, action) is None  # type: ignore[attr-defined]
    assert json.loads((tmp_path / "plan" / "plan.json").read_text())["reward"]["kind"] == "expression"
