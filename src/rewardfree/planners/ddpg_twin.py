"""DDPG with two critics: the planner of every comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from rewardfree.networks import Normed
from rewardfree.planners._ddpg import DdpgFamily


@dataclass(frozen=True)
class DdpgTwin(DdpgFamily):
    """DDPG with two critics: the default.

    From little data critics promise too much for actions that the data does not have. `paper` takes the
    smaller of two heads on one trunk; `fast` the mean of two separate critics with two LayerNorms each, and
    looks half as far ahead: the less data there is, the shorter the horizon to plan with (Jiang, Kulesza,
    Singh and Lewis, "The dependence of effective planning horizon on model accuracy", 2015).
    """

    share: Literal["nothing", "norm", "trunk"] = "nothing"
    critic_norm: Normed = "both"
    bootstrap: Literal["min", "mean", "own"] = "mean"
    actor_objective: Literal["min", "mean", "sum"] = "mean"
    gamma: float = 0.98
    """Discount. A reward that is more than 100 steps away wants 0.99."""
    learning_rate: float = 3e-4
    normalise: bool = True
    average: float = 0.1

    @classmethod
    def presets(cls) -> Mapping[str, DdpgTwin]:
        """fast: the default. paper: two heads, of which the smaller counts, as in the paper's tables."""
        paper = replace(
            cls(),
            share="trunk",
            critic_norm="first",
            bootstrap="min",
            actor_objective="min",
            gamma=0.99,
            learning_rate=1e-4,
            normalise=False,
            average=0.0,
        )
        return {"fast": cls(), "paper": paper}
