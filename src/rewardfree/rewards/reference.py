"""What uniformly random actions see of a domain: collected once, kept in the user's cache."""

from __future__ import annotations

import contextlib
import os
from importlib import metadata
from pathlib import Path

import numpy as np

from rewardfree.data import files
from rewardfree.data.dataset import Recorder
from rewardfree.data.derived import simulator
from rewardfree.data.files import Arrays
from rewardfree.errors import UserError

FRAMES = 10_000


def random_reference(domain: str) -> Arrays:
    """`observation` and `quantities` of FRAMES steps of uniformly random actions."""
    name = domain.replace("/", "_")
    path = _folder() / f"random-{name}-{FRAMES}-mujoco-{metadata.version('mujoco')}.safetensors"
    with contextlib.suppress(UserError):
        kept = files.map_arrays(path)
        if {"observation", "quantities"} <= kept.keys():
            return kept
    found = _collect(domain)
    with contextlib.suppress(UserError):  # a cache that cannot be written costs time, not the answer
        files.write_arrays(path, found)
    return found


def _collect(domain: str) -> Arrays:
    world = simulator(domain)
    rng, parts, frames, episode = np.random.default_rng(0), [], 0, 0
    while frames < FRAMES:
        recorder = Recorder(world.reset(episode))
        for _ in range(min(world.spec.episode_length, FRAMES - frames)):
            action = rng.uniform(-1, 1, world.spec.action).astype(np.float32)
            step = world.step(action)
            recorder.add(action, step)
            frames += 1
            if step.terminated or step.truncated:
                break
        parts.append(recorder.arrays())
        episode += 1
    return {
        name: np.concatenate([part[name][1:] for part in parts]) for name in ("observation", "quantities")
    }


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rewardfree"
