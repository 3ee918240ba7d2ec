"""Files from anywhere: whatever a reader is given, it answers with what is in it or with one clear line."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rewardfree as rf
from rewardfree.data import files
from rewardfree.durable import Checkpoint, Checkpoints

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["../../etc/passwd", "shard-00000.safetensors", "/", "walker", "gymnasium:os:system"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def places(value: Any) -> list[tuple[str | int, ...]]:
    """The path of everything in a JSON document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(), *((key, *rest) for key, part in inner for rest in places(part))]


def changed(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """The document with something else in one place."""
    if not path:
        return value
    result = copy.deepcopy(document)
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return result


@pytest.fixture(scope="module")
def plan(small_run: rf.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plan") / "plan"
    rf.plan(small_run, "reach_top_left", rf.DdpgTwin(hidden=8, batch=16), updates=10, out=out)
    return out


@pytest.fixture
def mine(small_run: rf.Dataset, plan: Path, tmp_path: Path) -> Path:
    """A run and a plan to be hostile with."""
    shutil.copytree(small_run.path, tmp_path / "run")
    shutil.copytree(plan, tmp_path / "plan")
    return tmp_path


def read_run(folder: Path) -> None:
    rf.Dataset.open(folder / "run").values("vx")


def read_plan(folder: Path) -> None:
    rf.Plan.load(folder / "plan").policy(np.zeros(4, np.float32))


@pytest.mark.parametrize(
    ("name", "read"),
    [("run/data/manifest.json", read_run), ("plan/plan.json", read_plan)],
)
@FUZZ
@given(data=st.data())
def test_a_record_with_anything_in_it(
    mine: Path, name: str, read: Callable[[Path], None], data: st.DataObject
) -> None:
    path = mine / name
    original = path.read_bytes()
    document = json.loads(original)
    place = data.draw(st.sampled_from(places(document)))
    path.write_text(json.dumps(changed(document, place, data.draw(ANYTHING))))
    complaint = ""
    try:
        read(mine)
    except rf.UserError as error:
        complaint = str(error)
    finally:
        path.write_bytes(original)
    assert "\n" not in complaint


ENTRY = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "F64", "I32", "U8", "BOOL", "F8_E4M3", "O", ""]) | ANYTHING,
        "shape": st.lists(st.integers(-3, 2**66), max_size=3) | ANYTHING,
        "data_offsets": st.lists(st.integers(-3, 2**66), max_size=3) | ANYTHING,
    }
)


@FUZZ
@given(
    header=st.dictionaries(st.text(max_size=8), ENTRY | ANYTHING, max_size=3) | ANYTHING,
    length=st.none() | st.integers(0, 2**64 - 1),
    body=st.binary(max_size=64),
)
def test_headers_that_lie(tmp_path: Path, header: Any, length: int | None, body: bytes) -> None:
    text = json.dumps(header).encode()
    stated = len(text) if length is None else length
    (tmp_path / "x.safetensors").write_bytes(stated.to_bytes(8, "little") + text + body)
    try:
        arrays = files.map_arrays(tmp_path / "x.safetensors")
    except rf.UserError:
        return
    for array in arrays.values():
        assert array.nbytes <= len(body)


@FUZZ
@given(data=st.data())
def test_a_policy_of_any_arrays(mine: Path, data: st.DataObject) -> None:
    path = mine / "plan" / "policy.safetensors"
    original = path.read_bytes()
    arrays = {name: np.array(array) for name, array in files.map_arrays(path).items()}
    name = data.draw(st.sampled_from(sorted(arrays)))
    kind = data.draw(st.sampled_from(["gone", "other shape", "other type", "more", "empty"]))
    if kind == "gone":
        del arrays[name]
    elif kind == "other shape":
        arrays[name] = np.zeros(data.draw(st.lists(st.integers(0, 5), max_size=4)), np.float32)
    elif kind == "other type":
        arrays[name] = arrays[name].astype(np.uint8)
    elif kind == "empty":
        arrays = {}
    else:
        arrays["__reduce__"] = np.zeros(3)
    files.write_arrays(path, arrays)
    try:
        read_plan(mine)
    except rf.UserError:
        pass
    finally:
        path.write_bytes(original)


@FUZZ
@given(record=ANYTHING, content=st.binary(max_size=64), plain=st.booleans())
def test_a_checkpoint_whose_checksum_is_right(
    tmp_path: Path, record: Any, content: bytes, plain: bool
) -> None:
    folder = tmp_path / "checkpoints"
    shutil.rmtree(folder, ignore_errors=True)
    checkpoints = Checkpoints(folder, every=100)
    checkpoints.write(Checkpoint(1, {"x": np.arange(3)}, {"note": "whole"}))
    inside = content if plain else json.dumps(record).encode()
    hostile = content if plain else files.array_bytes({"record": np.frombuffer(inside, np.uint8)})
    name = f"{2:010d}-{hashlib.sha256(hostile).hexdigest()[:16]}.safetensors"
    (folder / name).write_bytes(hostile)
    last = checkpoints.last()
    assert last is not None
    assert last.done == (1 if plain or not isinstance(record, dict) else 2)


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def test_a_pickle_under_another_name_is_not_run(mine: Path) -> None:
    trap = pickle.dumps(Trap(mine / "mark"))
    for name in ("run/data/shard-00000.safetensors", "plan/policy.safetensors", "run/data/manifest.json"):
        original = (mine / name).read_bytes()
        (mine / name).write_bytes(trap)
        with pytest.raises(rf.UserError):
            (read_plan if name.startswith("plan") else read_run)(mine)
        (mine / name).write_bytes(original)
    assert not (mine / "mark").exists()
