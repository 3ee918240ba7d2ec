"""DDPG with two critic heads, of which the smaller counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rewardfree.planners._ddpg import DdpgFamily


@dataclass(frozen=True)
class DdpgTwin(DdpgFamily):
    """DDPG with two critic heads on one trunk, of which the smaller counts: the default."""

    nstep: int = 5
    learning_rate: float = 1e-3
    normalise: bool = True
    behaviour: float = 0.1
    average: float = 0.1

    @classmethod
    def presets(cls) -> Mapping[str, DdpgTwin]:
        """fast: the default. paper: the settings of the paper's tables."""
        paper = replace(cls(), nstep=3, learning_rate=1e-4, normalise=False, behaviour=0.0, average=0.0)
        return {"fast": cls(), "paper": paper}
