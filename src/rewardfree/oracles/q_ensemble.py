"""Disagreement of the target critics: the oracle of the paper's experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.data.replay import ReplayBuffer
from rewardfree.interfaces import Oracle, Spec


@dataclass(frozen=True)
class QEnsemble(Oracle):
    """D(s, a) = the unbiased standard deviation over the N target critics' values."""

    from_critics: ClassVar[bool] = True

    def init(self, spec: Spec, key: PRNGKeyArray) -> tuple[()]:
        return ()

    def absorb(self, state: tuple[()], replay: ReplayBuffer) -> tuple[()]:
        return state

    def width(
        self,
        state: tuple[()],
        observation: Float[Array, "B O"],
        action: Float[Array, "B A"],
        values: Float[Array, "N B"],
    ) -> Float[Array, " B"]:
        return jnp.std(values, axis=0, ddof=1)
