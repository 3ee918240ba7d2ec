"""TD3: twin critics, a delayed actor, smoothed targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rewardfree.planners._ddpg import DdpgFamily


@dataclass(frozen=True)
class Td3(DdpgFamily):
    """TD3: the smaller of two critics at a smoothed action of a slow actor; the actor waits for the critics.

    Fujimoto, van Hoof and Meger, "Addressing function approximation error in actor-critic methods" (2018).
    The actor maximises the first critic there and the smaller of the two here, as the family does.
    """

    share: Literal["nothing", "norm", "trunk"] = "nothing"
    noise_clip: float = 0.5
    actor_noise: bool = False
    actor_every: int = 2
    target_actor: bool = True
