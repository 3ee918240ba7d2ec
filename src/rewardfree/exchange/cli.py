"""`rewardfree export` and `rewardfree import`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from rewardfree import pipeline
from rewardfree.command import read, show
from rewardfree.data.dataset import Dataset
from rewardfree.exchange.minari import export_minari, import_minari
from rewardfree.exchange.npz import export_npz, import_npz
from rewardfree.exchange.policy import export_numpy, export_onnx
from rewardfree.policy import ActorPolicy


@dataclass(frozen=True)
class ExportArgs:
    """Flags of `export`."""

    source: tyro.conf.Positional[Path]
    """Folder of a run, or of a plan."""
    out: Path
    """Where to write: an empty folder for a run, a file for a plan."""
    format: Literal["npz", "minari", "onnx", "numpy"] = "npz"
    """Of a run: `npz`, a file per episode as ExORL and URLB have it, or `minari`. Of a plan: `onnx`, or
    `numpy`, a Python file that needs NumPy alone."""
    reward: str | None = None
    """A reward to lay over a run's data; without one the files say 0."""
    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class ImportArgs:
    """Flags of `import`."""

    source: tyro.conf.Positional[str]
    """A folder with a .npz file per episode, as ExORL and URLB write them; or the id of a Minari data set."""
    domain: str
    """The domain that they are of."""
    out: Path
    """Folder of the run to make."""
    format: Literal["npz", "minari"] = "npz"
    """What the source is."""
    root: Path | None = None
    """Folder below which Minari looks for its data sets; its own by default."""
    json: bool = False
    """Print one JSON object."""


def export(argv: Sequence[str]) -> None:
    """Write a run's episodes, or a plan's policy, for other tools."""
    args = read(ExportArgs, argv, "export", export.__doc__)
    if args.format in ("onnx", "numpy"):
        policy = ActorPolicy.load(pipeline.Plan.checked(args.source) / "policy.safetensors")
        (export_onnx if args.format == "onnx" else export_numpy)(policy.arrays, args.out)
        show({"out": str(args.out)}, args.json, f"policy: {args.out}")
        return
    data = Dataset.open(args.source)
    reward = None if args.reward is None else pipeline.label(data, args.reward).reward
    value: dict[str, Any] = {"out": str(args.out), "episodes": data.episodes}
    if args.format == "minari":
        value["id"] = export_minari(data, args.out, reward)
    else:
        export_npz(data, args.out, reward)
    text = f"{data.episodes} episodes: {args.out}"
    show(value, args.json, text + (f", Minari's id is {value['id']}" if "id" in value else ""))


def import_(argv: Sequence[str]) -> None:
    """Make a run from episodes that other tools have collected, to plan on data you already have."""
    args = read(ImportArgs, argv, "import", import_.__doc__)
    if args.format == "minari":
        data = import_minari(args.source, args.root, args.domain, args.out)
    else:
        data = import_npz(Path(args.source), args.domain, args.out)
    value = {"run": str(args.out), "frames": data.frames, "episodes": data.episodes}
    show(value, args.json, f"{data.frames} frames in {data.episodes} episodes: {args.out}")
