"""The weights of Algorithm 1, for every oracle that can use them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array

from rewardfree.interfaces import Lazy


@dataclass(frozen=True)
class SigmaBar:
    """sigma_bar = max(gamma sqrt(D), c sqrt(min(Q, 1)), alpha): a transition counts as 1 / sigma_bar^2.

    The first term is the epistemic uncertainty, the second the aleatoric one (Lines 14 and 15, with Q >= 0
    from the target critics). The defaults make sigma_bar 1: no weighting.
    """

    sigma_epistemic: float = 0.0
    """gamma in sigma_bar = max(gamma sqrt(D), c sqrt(min(Q, 1)), alpha)."""
    sigma_aleatoric: float = 0.0
    """c in sigma_bar; above 0 the target critics are read at the data."""
    sigma_floor: float = 1.0
    """alpha in sigma_bar."""

    def sigma_bar(self, width: Lazy, value: Lazy) -> Array | float:
        """From D and Q at the same points; what does not count is not computed."""
        terms: list[Array | float] = [self.sigma_floor]
        if self.sigma_epistemic:
            terms.append(self.sigma_epistemic * jnp.sqrt(width()))
        if self.sigma_aleatoric:
            terms.append(self.sigma_aleatoric * jnp.sqrt(jnp.clip(value(), 0.0, 1.0)))
        return functools.reduce(jnp.maximum, terms)
