"""Rewards of one's own: rewardfree plan runs/walker --reward examples/rewards.py:moonwalk."""

from __future__ import annotations

import numpy as np

from rewardfree import Transitions, tolerance


def moonwalk(t: Transitions) -> np.ndarray:
    """For the walker: upright, and backwards at up to 1 m/s."""
    reward: np.ndarray = np.clip(t["upright"], 0, 1) * np.clip(-t["vx"], 0, 1)
    return reward


def crouch(t: Transitions) -> np.ndarray:
    """For the walker: the torso at half its height, with little effort."""
    low = tolerance(t["torso_height"], 0.5, 0.7, margin=0.3)
    effort: np.ndarray = np.square(t["ctrl"]).mean(axis=1)
    return low * (1 - 0.5 * effort)


def doorway(t: Transitions) -> np.ndarray:
    """For the maze: close to the gap on the left, where two rooms meet."""
    return tolerance(np.hypot(t["x"] + 0.24, t["y"]), 0.0, 0.03, margin=0.1)
