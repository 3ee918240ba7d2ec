"""Disagreement of the target critics: the oracle of the paper's experiments."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardfree.interfaces import Oracle, Spec
from rewardfree.oracles._sigma import SigmaBar


@dataclass(frozen=True)
class QEnsemble(SigmaBar, Oracle):
    """D(s, a) = the unbiased standard deviation over the N target critics' values.

    Its data is weighted where the critics are trained: see `weight_by` of gfa-rfe.
    """

    @property
    def reads_critics(self) -> bool:
        return True

    def init(self, spec: Spec, key: PRNGKeyArray) -> tuple[()]:
        return ()

    def width(
        self,
        state: tuple[()],
        observation: Float[Array, "B O"],
        action: Float[Array, "B A"],
        values: Float[Array, "N B"],
    ) -> Float[Array, " B"]:
        return jnp.std(values, axis=0, ddof=1)
