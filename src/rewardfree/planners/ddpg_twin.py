"""DDPG with two critic heads, of which the smaller counts."""

from __future__ import annotations

from dataclasses import dataclass

from rewardfree.planners._ddpg import DdpgFamily


@dataclass(frozen=True)
class DdpgTwin(DdpgFamily):
    """DDPG with two critic heads on one trunk, of which the smaller counts: the default."""

    learning_rate: float = 3e-4
    normalise: bool = True
