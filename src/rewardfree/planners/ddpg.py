"""DDPG as Algorithm 3 prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rewardfree.planners._ddpg import DdpgFamily


@dataclass(frozen=True)
class Ddpg(DdpgFamily):
    """DDPG as Algorithm 3 prints it: one critic."""

    critics: int = 1
    share: Literal["nothing", "norm", "trunk"] = "nothing"
