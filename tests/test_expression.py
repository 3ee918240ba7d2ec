"""The reward language: known answers, errors that point, and nothing that a stranger's text can do."""

from __future__ import annotations

import re
import string
from pathlib import Path

import numpy as np
import pytest
from conftest import SPEC, make_episode
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from rewardfree.data.transitions import Transitions
from rewardfree.domains._dm_control import load
from rewardfree.errors import UserError
from rewardfree.rewards.expression import FUNCTIONS, ExpressionError, Read, parse
from rewardfree.rewards.tolerance import SIGMOIDS

SPEC_NAMED = SPEC.__class__(**{**vars(SPEC), "observation_names": ("a", "b", "c")})
T = Transitions(
    SPEC_NAMED,
    {key: np.concatenate([make_episode(4, 1)[key], make_episode(3, 2)[key]]) for key in make_episode(4, 1)},
    np.array([4, 3]),
)
NAMES = [name for name in T if T.names.locate(name) is not None]
h, s, a, c = (T[name].astype(float) for name in ("height", "speed", "action", "ctrl"))
h0 = T.before("height").astype(float)


def value(text: str) -> np.ndarray:
    return np.asarray(parse(text, NAMES)(T))


def error(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        parse(text, NAMES)(T)
    return caught.value


KNOWN = {
    "1": np.ones(7),
    "height": h,
    "-height + 2 * speed": -h + 2 * s,
    "height ** 2 / 4 - speed % 3": h**2 / 4 - s % 3,
    "2 ** -1 * height": 0.5 * h,
    "height > 0": h > 0,
    "0 < height <= 1": (h > 0) & (h <= 1),
    "height > 0 and speed > 0 or not height > 0": ((h > 0) & (s > 0)) | ~(h > 0),
    "(height > 0) & (speed > 0) | ~(height > 0)": ((h > 0) & (s > 0)) | ~(h > 0),
    "(height > 0) - (speed > 0)": (h > 0).astype(float) - (s > 0),
    "height == height": np.ones(7),
    "clip(-height, 0, 1)": np.clip(-h, 0, 1),
    "where(height > 0, speed, 3)": np.where(h > 0, s, 3),
    "where(height > 1, 1, 0) - 0.1 * norm(action)": (h > 1) - 0.1 * np.linalg.norm(a, axis=1),
    "min(height, speed, 0)": np.minimum(np.minimum(h, s), 0),
    "max(action)": a.max(axis=1),
    "mean(1 - ctrl ** 2)": (1 - c**2).mean(axis=1),
    "sum(abs(action) > 0.5)": (np.abs(a) > 0.5).sum(axis=1),
    "norm(height, speed)": np.hypot(h, s),
    "exp(-abs(height)) + sqrt(height ** 2) + log(1 + speed ** 2)": np.exp(-np.abs(h))
    + np.abs(h)
    + np.log(1 + s**2),
    "action[0] + action[-1]": a[:, 0] + a[:, -1],
    "norm(height * action)": np.abs(h) * np.linalg.norm(a, axis=1),
    "before(height)": h0,
    "delta(height)": h - h0,
    "delta(height ** 2)": h**2 - h0**2,
    "before(height + qpos[2])": h0 + T.before("qpos")[:, 2],
    "obs_b - obs[1] + obs[0] - obs_a": np.zeros(7),
    "hinge_velocity": T["qvel"][:, 0],
    "sum(ball ** 2)": (T["qpos"][:, 1:5] ** 2).sum(axis=1),
    "tolerance(height, 0.2, inf, margin=0.6)": rf.tolerance(h, 0.2, np.inf, 0.6),
    "tolerance(height, 0.2, 0.3, 0.6, sigmoid='linear', value_at_margin=0)": rf.tolerance(
        h, 0.2, 0.3, 0.6, sigmoid="linear", value_at_margin=0.0
    ),
    "  height": h,
    "1e-3 * pi * height": 1e-3 * np.pi * h,
    "True * height": h,
}


@pytest.mark.parametrize("text", KNOWN)
def test_known_answers(text: str) -> None:
    np.testing.assert_allclose(value(text), KNOWN[text], rtol=1e-12, atol=1e-12)


def test_an_expression_is_a_function_of_the_same_names() -> None:
    """What a Python function sees is what an expression sees."""
    for name in NAMES:
        if T[name].ndim == 1:
            np.testing.assert_array_equal(value(name), T[name].astype(float))


def test_it_knows_what_it_reads() -> None:
    found = parse("before(height) + action[1] * obs[2] + height + height", NAMES).reads
    assert found == (Read("height", before=True), Read("action", 1), Read("obs", 2), Read("height"))
    assert parse("delta(speed)", NAMES).reads == (Read("speed"), Read("speed", before=True))


@pytest.mark.parametrize("sigmoid", SIGMOIDS)
def test_tolerance_is_dm_control_s(sigmoid: str) -> None:
    x = np.linspace(-3, 4, 200)
    for v in (0.1, 0.5) if sigmoid not in ("cosine", "linear", "quadratic") else (0.0, 0.1, 0.5):
        ours = rf.tolerance(x, -0.5, 1.0, 0.7, sigmoid=sigmoid, value_at_margin=v)
        theirs = load("utils.rewards").tolerance(x, (-0.5, 1.0), 0.7, sigmoid=sigmoid, value_at_margin=v)
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


WRONG = {
    "hight * 2": ("unknown quantity 'hight'; did you mean height or hinge?", 0),
    "2 * clp(speed, 0, 1)": ("unknown function 'clp'; did you mean clip?", 4),
    "speed +": ("this is not an expression", 7),
    "(speed": ("this is not an expression", 0),
    "speed speed": ("this is not an expression", 6),
    "": ("this is not an expression", 0),
    "action": ("a reward is one number, this is a vector of 2", 0),
    "action + obs": ("vectors of 2 and 3 do not go together", 0),
    "height + action[7]": ("action has 2 components: there is no action[7]", 9),
    "height[0]": ("height has no components", 0),
    "action[0.5]": ("must be whole", 7),
    "action[speed]": ("the number of a component must be a number, not a quantity", 7),
    "clip(speed, 0)": ("use it as clip(x, low, high)", 0),
    "clip(speed, 0, 1, high=1)": ("clip takes no named settings", 0),
    "clip": ("clip is a function: clip(...)", 0),
    "before(action)": ("action belongs to the step itself", 7),
    "before(delta(speed))": ("there is only one step", 7),
    "tolerance(speed, 2, 1)": ("tolerance needs lower <= upper", 0),
    "tolerance(speed, 0, height)": ("upper of a tolerance must be a number", 20),
    "tolerance(speed, 0, 1, margin=1, sigmoid=lin)": ("unknown sigmoid 'lin'; did you mean linear", 0),
    "tolerance(speed, 0, 1, margin=1, slope=2)": ("use it as tolerance(x, lower, upper", 0),
    "tolerance(speed)": ("use it as tolerance(x, lower, upper", 0),
    "'speed'": ("'speed' is not a number", 0),
    "speed // 2": ("this operator is not part of the language", 0),
    "speed is 2": ("compare with", 9),
    "speed in obs": ("compare with", 9),
    "speed if height else 1": ("IfExp is not part of the language", 0),
    "[speed]": ("List is not part of the language", 0),
    "speed.real": ("Attribute is not part of the language", 0),
    "(lambda: speed)()": ("unknown function", 1),
    "speed := 2": ("this is not an expression", 6),
    "1j * speed": ("1j is not a number", 0),
    "None": ("None is not a number", 0),
    "sp\u00e9ed": ("'\u00e9' does not belong in an expression", 2),
    "speed\n+ 1": ("'\\n' does not belong in an expression", 5),
    "max(*action)": ("use it as max(a, b, ...)", 0),
}


@pytest.mark.parametrize("text", WRONG)
def test_an_error_says_what_and_where(text: str) -> None:
    message, position = WRONG[text]
    found = error(text)
    assert message in str(found)
    assert found.position == position
    assert f"(at character {position + 1})" in str(found)
    assert "\n" not in str(found)


HOSTILE = (
    "__import__('os').system('touch hostile-was-here')",
    "open('hostile-was-here', 'w')",
    "exec('1')",
    "eval('1')",
    "().__class__.__bases__[0].__subclasses__()",
    "height.__class__",
    "[x for x in (1, 2)]",
    "{1: 2}[1]",
    "f'{height}'",
    "globals()",
    "where(True, __builtins__, 1)",
    "(lambda f: f(f))(lambda f: f(f))",
    "print(height)",
    "await height",
    "getattr(height, 'shape')",
    "T['height']",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_stranger_s_text_does_nothing(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error(text)
    assert not list(tmp_path.iterdir())


def test_enormous_texts_and_numbers_are_refused_or_harmless() -> None:
    assert "2000 characters" in str(error("1+" * 2000 + "1"))
    assert "too many nested" in str(error("(" * 900 + "1" + ")" * 900))
    assert "deeply" in str(error("-" * 1500 + "1"))
    assert "too long" in str(error("1" + "+1" * 600))
    assert "number" in str(error("9" * 1900 + "*height"))
    assert not np.isfinite(value("9 ** 9 ** 9 ** 9 ** height")).all()  # floats: nothing grows
    assert np.isinf(value("1e400")).all()


WORDS = ["0", "1", "2.5", "1e9", "**", "==", "!=", "and", "or", "not", "inf", "x", *"()[],+-*/%<>&|~=.:'"]
pieces = st.sampled_from([*NAMES, *FUNCTIONS, *WORDS])


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(string.printable, max_size=40), st.lists(pieces, max_size=14).map(" ".join)))
def test_any_text_is_a_reward_or_a_clear_error(text: str) -> None:
    outcome: np.ndarray | str
    try:
        outcome = parse(text, NAMES)(T)
    except UserError as problem:
        outcome = str(problem)
    if isinstance(outcome, str):
        assert re.search(r"\(at character \d+\)$", outcome)
        assert "\n" not in outcome
    else:
        assert outcome.shape == (7,)
        assert outcome.dtype == np.float64


numbers = st.floats(-3, 3).map(lambda x: f"({x!r})")
grammar = st.recursive(
    st.one_of(numbers, st.sampled_from(["height", "speed", "action[0]", "before(height)"])),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda x: f"abs({x})"),
        st.tuples(inner, inner).map(lambda t: f"max({t[0]}, {t[1]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"where({t[0]} < {t[1]}, {t[1]}, {t[2]})"),
    ),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(grammar)
def test_it_means_what_numpy_means(text: str) -> None:
    """Against Python's own evaluation, of texts that this test makes itself."""
    scope = {
        "height": h,
        "speed": s,
        "action": a.T,
        "before": lambda _: h0,
        "abs": np.abs,
        "max": np.maximum,
        "where": np.where,
    }
    np.testing.assert_allclose(value(text), np.broadcast_to(eval(text, scope), 7), rtol=1e-12)
