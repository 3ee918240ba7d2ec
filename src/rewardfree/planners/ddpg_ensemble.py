"""DDPG with an ensemble of critics, each with targets of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rewardfree.planners._ddpg import DdpgFamily


@dataclass(frozen=True)
class DdpgEnsemble(DdpgFamily):
    """DDPG with ten critics, each regressed on its own target; the actor maximises their mean."""

    critics: int = 10
    share: Literal["nothing", "norm", "trunk"] = "nothing"
    bootstrap: Literal["min", "mean", "own"] = "own"
    actor_objective: Literal["min", "mean", "sum"] = "mean"
