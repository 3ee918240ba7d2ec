"""DDPG with two critic heads, of which the smaller counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rewardfree.planners._ddpg import DdpgFamily


@dataclass(frozen=True)
class DdpgTwin(DdpgFamily):
    """DDPG with two critic heads on one trunk, of which the smaller counts: the default."""

    learning_rate: float = 3e-4
    normalise: bool = True

    @classmethod
    def presets(cls) -> Mapping[str, DdpgTwin]:
        """fast: the default. paper: the settings of the paper's tables."""
        return {"fast": cls(), "paper": replace(cls(), learning_rate=1e-4, normalise=False)}
