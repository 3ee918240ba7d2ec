"""`rewardfree exact`: what a user sees, and one line for every mistake."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import run, run_json

from rewardfree.data import files
from rewardfree.exact import GfaRfe, explore, load
from rewardfree.exact.records import reward_named


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


SMALL = ["--mdp", "riverswim-3", "--episodes", "40"]


def test_compare_prints_numbers_and_draws(capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(
        capsys, "exact", "compare", *SMALL, "--algorithms", "gfa-rfe,gfa-rfe:unweighted,uniform", "--seeds", 3
    )
    assert found["mdp"] == "riverswim-3"
    algorithms = found["algorithms"]
    assert isinstance(algorithms, dict)
    assert list(algorithms) == ["gfa-rfe", "gfa-rfe:unweighted", "uniform"]
    for row in algorithms.values():
        assert row["episodes"] == 40
        for name in (
            "max_suboptimality",
            "mean_suboptimality",
            "own_max_suboptimality",
            "coverage",
            "seconds",
        ):
            assert isinstance(row[name], float)
        assert len(row["curves"]["max_suboptimality"]) == len(row["curves"]["episodes"])
        assert len(row["curves"]["max_suboptimality"][0]) == 3
    assert isinstance(algorithms["gfa-rfe"]["certificate"], float)
    assert algorithms["uniform"]["certificate"] is None
    assert Path(str(found["plot"])).read_bytes().startswith(b"\x89PNG")


def test_compare_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys,
        "exact",
        "compare",
        *SMALL,
        "--algorithms",
        "rf-ucrl,uniform",
        "--seeds",
        2,
        "--plot",
        "a/b.png",
    )
    assert code == 0
    assert "3 states, 2 actions, 6 stages; 40 episodes, 2 seeds, 23 rewards; plot: a/b.png" in out
    assert "rf-ucrl" in out
    assert Path("a/b.png").exists()


def test_what_is_explored_is_planned_from_later(capsys: pytest.CaptureFixture[str]) -> None:
    explored = run_json(capsys, "exact", "explore", *SMALL, "--seed", 4, "--scale", 0.05, "--out", "run")
    assert explored["episodes"] == 40
    assert explored["certified"] is False
    planned = run_json(capsys, "exact", "plan", "run", "--reward", "reach-2")
    mdp = load("riverswim-3")
    learner = explore(mdp, GfaRfe(scale=0.05), 40, [4])
    reward = reward_named(mdp, "reach-2")
    plan = learner.plan(reward[None])
    assert plan.bound is not None
    assert planned["estimate"] == plan.value[0, 0]
    assert planned["bound"] == plan.bound[0, 0]
    np.testing.assert_array_equal(files.map_arrays(Path(str(planned["plan"])))["policy"], plan.policy[0, 0])
    best = mdp.problem.mean_start(mdp.optimal(reward).V[0])
    assert planned["optimal"] == pytest.approx(best)
    assert float(str(planned["value"])) + float(str(planned["suboptimality"])) == pytest.approx(best)


def test_until_stops_early_or_says_that_it_did_not(capsys: pytest.CaptureFixture[str]) -> None:
    many = ["--mdp", "riverswim-3", "--episodes", "3000", "--until", "0.2"]
    every = run_json(capsys, "exact", "explore", *many, "--out", "all")
    some = run_json(capsys, "exact", "explore", *many, "--rewards", "reach-0", "random-1", "--out", "some")
    assert every["reached"] is True
    assert int(str(some["episodes"])) <= int(str(every["episodes"])) < 3000
    code, out, _ = run(capsys, "exact", "explore", *SMALL, "--until", "0.001", "--out", "never")
    assert code == 0
    assert "above 0.001 after all 40 episodes: more are needed" in out


def test_every_algorithm_and_class_has_its_flags(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "exact", "explore", "--help")
    assert code == 0
    for flag in ("--log-cover", "--function-class", "--constants"):
        assert flag in out
    _, out, _ = run(capsys, "exact", "explore", "--algorithm", "wang", "--help")
    assert "--scale" in out
    assert "--log-cover" not in out
    found = run_json(
        capsys, "exact", "explore", *SMALL, "--function-class", "linear", "--norm", "0.5", "--out", "linear"
    )
    record = json.loads(Path(str(found["run"]), "run.json").read_text())
    assert record["algorithm"]["function_class"] == {"name": "linear", "norm": 0.5}


def test_own_rewards_and_mdps_from_files(capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("mine.npz", transitions=load("riverswim-3").transitions[0], goal=np.array([0, 0, 1.0]))
    mine = ["--mdp", "mine.npz", "--horizon", "4", "--episodes", "30", "--out", "run"]
    assert run_json(capsys, "exact", "explore", *mine)["episodes"] == 30
    assert run_json(capsys, "exact", "plan", "run", "--reward", "goal")["optimal"] > 0  # type: ignore[operator]
    np.save("reward.npy", np.array([0.1, 0, 0]))
    assert run_json(capsys, "exact", "plan", "run", "--reward", "reward.npy")["optimal"] == pytest.approx(0.4)
    np.savez("mine.npz", transitions=load("riverswim-3").transitions[0][::-1])
    code, _, err = run(capsys, "exact", "plan", "run", "--reward", "reach-0")
    assert code == 2
    assert "mine.npz is not what it was when it was explored" in err


def test_a_damaged_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    run_json(capsys, "exact", "explore", *SMALL, "--out", "run")
    path = Path("run/episodes.safetensors")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    code, _, err = run(capsys, "exact", "plan", "run", "--reward", "reach-0")
    assert code == 2
    assert "is damaged: its checksum is not the one in run.json" in err


MISTAKES = {
    "unknown command 'exact compair'; did you mean exact compare": ["compair"],
    "unknown MDP 'riverswin-8'": ["compare", "--mdp", "riverswin-8"],
    "unknown algorithm 'rf-ucl'; did you mean rf-ucrl": ["compare", "--algorithms", "rf-ucl"],
    "unknown preset 'tight'": ["compare", "--algorithms", "rf-ucrl:tight"],
    "unknown algorithm ''": ["compare", "--algorithms", ","],
    "0 episodes are nothing to explore with": ["compare", "--episodes", "0"],
    "give at least one seed": ["compare", "--seeds", "0"],
    "the horizon must be at least 1": ["compare", "--horizon", "0"],
    "ucrl-rfe needs a linear mixture MDP": ["compare", *SMALL, "--algorithms", "ucrl-rfe"],
    "give --until EPSILON": ["explore", *SMALL, "--rewards", "reach-0"],
    "epsilon must be positive": ["explore", *SMALL, "--until", "-1"],
    "has no bound": ["explore", *SMALL, "--until", "0.1", "--algorithm", "uniform"],
    "there is no state 9": ["explore", *SMALL, "--until", "0.1", "--rewards", "reach-9"],
    "unknown reward 'flip'": ["explore", *SMALL, "--until", "0.1", "--rewards", "flip"],
    "cannot read": ["plan", "nowhere", "--reward", "reach-0"],
    "needs its functions": ["explore", *SMALL, "--function-class", "finite"],
    "must be positive": ["explore", *SMALL, "--scale", "0"],
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_one_line(message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "exact", *MISTAKES[message])
    assert code == 2
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("rewardfree:")]
    assert len(lines) == 1
    assert message in lines[0]
    assert "Traceback" not in err


def test_a_run_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    run_json(capsys, "exact", "explore", *SMALL, "--out", "run")
    code, _, err = run(capsys, "exact", "explore", *SMALL, "--out", "run")
    assert code == 2
    assert "holds a run already" in err


def test_the_exact_track_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, "list")["exact"]
    assert isinstance(found, dict)
    assert {"riverswim", "four-rooms", "linear-mixture"} <= set(found["mdps"])
    assert {"gfa-rfe", "rf-ucrl", "ucrl-rfe-plus"} <= set(found["algorithms"])
    assert found["function_classes"] == ["finite", "generalised-linear", "linear", "tabular"]
    code, out, _ = run(capsys, "list")
    assert code == 0
    assert "[k1," in out  # brackets are text
    code, out, _ = run(capsys, "list", "rf-ucrl")
    assert code == 0
    assert "Source: Kaufmann" in out
