"""Is the data what the simulator did? The proof at writing, and the check of a data set that is there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from rewardfree import registry
from rewardfree.data import files
from rewardfree.data.dataset import Dataset, Prove, open_shard, spec_from_json, versions
from rewardfree.data.derived import simulator
from rewardfree.data.transitions import STATE_ARRAYS, STEP_ARRAYS, Transitions
from rewardfree.durable import locked
from rewardfree.errors import UserError
from rewardfree.interfaces import Domain, Spec
from rewardfree.rewards.resolve import resolve

SAMPLE = 16
"""Transitions of each shard that are relabelled."""
TOLERANCE = 1e-4
"""Largest error of a reward, in its own units, that rounding explains."""
DRIFT = 1e-6
"""Largest difference of a position at which a repeated episode counts as the same."""


def prover(spec: Spec) -> Prove | None:
    """The round trip of a domain's shards; None if its states cannot be set."""
    domain = registry.load("domain", spec.domain)
    return partial(round_trip, spec) if domain.recompute is not Domain.recompute else None


def round_trip(spec: Spec, arrays: Mapping[str, np.ndarray], lengths: Int[np.ndarray, " E"]) -> float:
    """Relabel a sample from the stored simulator states; the largest difference from what was paid live.

    The live quantities were measured while stepping; here a second simulator is set to each stored state.
    Raises UserError if any task's reward does not come back.
    """
    whole = Transitions(spec, arrays, lengths)
    rows = whole.rows[np.linspace(0, len(whole) - 1, min(SAMPLE, len(whole))).astype(int)]
    steps = rows - np.searchsorted(np.cumsum(lengths + 1), rows, side="right")
    states = np.stack([rows, rows + 1], axis=1).ravel()
    taken = {name: arrays[name][states] for name in STATE_ARRAYS}
    taken |= {name: arrays[name][steps] for name in STEP_ARRAYS}
    again = simulator(spec.domain).recompute(spec.quantities, taken["qpos"], taken["qvel"])
    single = np.ones(len(rows), np.int64)
    live, relabelled = (
        Transitions(spec, {**taken, "quantities": quantities}, single)
        for quantities in (taken["quantities"], again)
    )
    worst = 0.0
    for task in registry.load("domain", spec.domain).tasks:
        reward = resolve(task, spec)
        error = float(np.abs(reward(live) - reward(relabelled)).max())
        if error > TOLERANCE:
            raise UserError(
                f"the reward {task} does not come back from the stored states: off by {error:.2g};"
                f" {spec.domain} measures something that is not a function of qpos and qvel"
            )
        worst = max(worst, error)
    return worst


def check(data: Dataset, episodes: int = 3) -> dict[str, Any]:
    """Versions, the proofs that were written, and how far sampled episodes drift when they are repeated.

    Sizes and checksums were verified when the data set was opened.
    """
    recorded, installed = dict(data.manifest.get("versions", {})), versions()
    chosen = np.unique(np.linspace(0, data.episodes - 1, min(episodes, data.episodes)).astype(int))
    repeated = [repeat(data, int(number)) for number in chosen] if _can_be_set(data.spec) else []
    proofs = [shard.get("round_trip") for shard in data.manifest["shards"]]
    known = [proof for proof in proofs if proof is not None]
    return {
        "run": str(data.path),
        "frames": data.frames,
        "episodes": data.episodes,
        "shards": len(proofs),
        "versions": {"recorded": recorded, "installed": installed},
        "changed": sorted(
            name for name in installed if recorded.get(name, installed[name]) != installed[name]
        ),
        "round_trip": {"shards": len(known), "worst": max(known, default=None)},
        "repeated": repeated,
        "drift": max((one["drift"] for one in repeated), default=None),
    }


def repair(run: Path) -> list[str]:
    """Drop what is incomplete or damaged, so that the rest can be read; returns what was dropped.

    Shards that are damaged are kept beside the data under another name, which nothing reads.
    """
    folder = run / "data"
    manifest = files.read_json(folder / "manifest.json")
    dropped: list[str] = []
    with files.parsing(folder / "manifest.json"):
        spec = spec_from_json(manifest["spec"])
        shards = [
            (entry, sum(entry["lengths"]), len(entry["lengths"]), entry["file"])
            for entry in manifest["shards"]
        ]
    with locked(run):
        files.clean(run)
        kept = []
        for entry, steps, episodes, name in shards:
            try:
                with files.parsing(folder / "manifest.json"):
                    open_shard(folder, entry, spec)
                kept.append(entry)
            except UserError as error:
                dropped.append(f"{name}, {steps} frames in {episodes} episodes: {error}")
                path = folder / Path(name).name  # never a file elsewhere, whatever the manifest says
                if path.exists():
                    path.rename(path.with_suffix(".damaged"))
        named = {entry["file"] for entry in kept}
        for path in sorted(folder.glob("shard-*.safetensors")):
            if path.name not in named:
                dropped.append(f"{path.name}, which the manifest does not name")
                path.unlink()
        if len(kept) < len(manifest["shards"]):
            files.write_json(folder / "manifest.json", {**manifest, "shards": kept})
    return dropped


def repeat(data: Dataset, episode: int) -> dict[str, Any]:
    """Step the simulator again from an episode's first state with its actions, and compare positions."""
    shard, number = _locate(data, episode)
    first = int(np.sum(shard.lengths[:number])) + number
    steps, length = first - number, int(shard.lengths[number])
    world = simulator(data.spec.domain)
    world.restore(*(shard.stored(name)[first] for name in ("qpos", "qvel", "act")))
    differences = np.empty(length)
    for t in range(length):
        state = world.step(shard.stored("action")[steps + t]).state
        differences[t] = np.abs(state.qpos - shard.stored("qpos")[first + t + 1]).max()
    off = np.flatnonzero(differences > DRIFT)
    return {
        "episode": episode,
        "steps": length,
        "drift": float(differences.max()),
        "same_until": int(off[0]) if len(off) else length,
    }


def _locate(data: Dataset, episode: int) -> tuple[Transitions, int]:
    for shard in data.shards:
        if episode < len(shard.lengths):
            return shard, episode
        episode -= len(shard.lengths)
    raise IndexError(episode)


def _can_be_set(spec: Spec) -> bool:
    return registry.load("domain", spec.domain).restore is not Domain.restore
