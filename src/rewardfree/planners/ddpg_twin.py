"""DDPG with two critics, of which the smaller counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from rewardfree.networks import Normed
from rewardfree.planners._ddpg import DdpgFamily


@dataclass(frozen=True)
class DdpgTwin(DdpgFamily):
    """DDPG with two critics, of which the smaller counts: the default.

    From little data critics promise too much for actions that the data does not have. Two LayerNorms bound
    what they promise, and a weak behaviour term keeps the actor near the data.
    """

    share: Literal["nothing", "norm", "trunk"] = "nothing"
    critic_norm: Normed = "both"
    learning_rate: float = 3e-4
    normalise: bool = True
    behaviour: float = 0.03
    average: float = 0.1

    @classmethod
    def presets(cls) -> Mapping[str, DdpgTwin]:
        """fast: the default. paper: two heads on one trunk, with the settings of the paper's tables."""
        paper = replace(
            cls(),
            share="trunk",
            critic_norm="first",
            learning_rate=1e-4,
            normalise=False,
            behaviour=0.0,
            average=0.0,
        )
        return {"fast": cls(), "paper": paper}
