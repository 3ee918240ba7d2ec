"""How explorers with skills get them: drawn on a schedule, from the episode's key and the step alone."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rewardfree.explorers._explorer import SKILL, ActorCriticExplorer


@dataclass(frozen=True)
class SkillExplorer(ActorCriticExplorer):
    """An explorer whose actor and critics also see a skill. A subclass says how one is drawn."""

    skills: int = 16
    """Length of the skill vector."""
    skill_every: int = 0
    """Steps after which a new skill is drawn; 0: one for the whole episode."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, " K"]:
        """A skill at random."""

    def skill(self, key: np.ndarray, step: int) -> Float[np.ndarray, " K"]:
        number = step // self.skill_every if self.skill_every else 0
        return self.draw(np.random.default_rng([*key, SKILL, number])).astype(np.float32)

    def one_hot(self, rng: np.random.Generator) -> Float[np.ndarray, " K"]:
        return np.eye(self.skills)[rng.integers(self.skills)]
