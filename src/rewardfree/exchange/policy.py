"""A policy that acts without this package: as ONNX, or as one Python file that needs NumPy alone."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from rewardfree.data import files
from rewardfree.data.files import Arrays
from rewardfree.errors import UserError
from rewardfree.networks import LAYER_NORM_EPSILON

_SCRIPT = '''"""A policy exported by rewardfree, which needs NumPy alone: act(observation) in [-1, 1]."""

import pathlib

import numpy as np

_FILE = pathlib.Path(__file__).with_suffix(".npz")
_P = {name: array for name, array in np.load(_FILE, allow_pickle=False).items()}


def act(observation):
    """Observations of shape (..., O) in, actions of shape (..., A) out."""
    x = (np.asarray(observation, np.float32) - _P["seen.mean"]) / _P["seen.std"]
    x = np.clip(x, -_P["seen.clip"], _P["seen.clip"])
    h = x @ _P["actor.w1"] + _P["actor.b1"]
    h = h - h.mean(axis=-1, keepdims=True)
    h = h / np.sqrt(np.square(h).mean(axis=-1, keepdims=True) + %r)
    h = np.tanh(h * _P["actor.scale"] + _P["actor.shift"])
    h = np.maximum(h @ _P["actor.w2"] + _P["actor.b2"], 0.0)
    return np.tanh(h @ _P["actor.w3"] + _P["actor.b3"])
'''


def export_numpy(arrays: Arrays, path: Path) -> None:
    """Write PATH.py and PATH.npz beside it."""
    content = io.BytesIO()
    named: dict[str, Any] = dict(arrays)
    np.savez(content, **named)
    files.write_bytes(path.with_suffix(".npz"), content.getvalue())
    files.write_bytes(path.with_suffix(".py"), (_SCRIPT % LAYER_NORM_EPSILON).encode())


def export_onnx(arrays: Arrays, path: Path) -> None:
    """Write an ONNX file: from `observation` of shape (n, O) to `action` of shape (n, A)."""
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise UserError("this needs ONNX: pip install rewardfree[onnx]") from error
    weights = {name.replace(".", "_"): np.asarray(array, np.float32) for name, array in arrays.items()}
    weights |= {"bound": weights["seen_clip"], "least": -weights["seen_clip"]}
    weights["epsilon"] = np.float32(LAYER_NORM_EPSILON) * np.ones(1, np.float32)
    weights["last"] = np.array([-1], np.int64)
    steps = (
        ("Sub", "observation", "seen_mean", "centred"),
        ("Div", "centred", "seen_std", "scaled"),
        ("Max", "scaled", "least", "low"),
        ("Min", "low", "bound", "x"),
        ("MatMul", "x", "actor_w1", "xw"),
        ("Add", "xw", "actor_b1", "h1"),
        ("ReduceMean", "h1", "last", "mean"),
        ("Sub", "h1", "mean", "h2"),
        ("Mul", "h2", "h2", "square"),
        ("ReduceMean", "square", "last", "variance"),
        ("Add", "variance", "epsilon", "safe"),
        ("Sqrt", "safe", "deviation"),
        ("Div", "h2", "deviation", "normed"),
        ("Mul", "normed", "actor_scale", "stretched"),
        ("Add", "stretched", "actor_shift", "shifted"),
        ("Tanh", "shifted", "h3"),
        ("MatMul", "h3", "actor_w2", "hw"),
        ("Add", "hw", "actor_b2", "h4"),
        ("Relu", "h4", "h5"),
        ("MatMul", "h5", "actor_w3", "hv"),
        ("Add", "hv", "actor_b3", "mu"),
        ("Tanh", "mu", "action"),
    )
    nodes = [helper.make_node(kind, inputs, [output]) for kind, *inputs, output in steps]
    used = {name for _, *inputs, _ in steps for name in inputs}
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["n", len(weights["seen_mean"])])],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, ["n", weights["actor_b3"].shape[-1]])],
        [numpy_helper.from_array(array, name) for name, array in weights.items() if name in used],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9  # so that runtimes of the last years read it
    onnx.checker.check_model(model)
    files.write_bytes(path, model.SerializeToString())
