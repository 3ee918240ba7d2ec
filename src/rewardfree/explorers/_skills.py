"""How explorers with skills get them: drawn on a schedule, from the episode's key and the step alone."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rewardfree.explorers._explorer import SKILL, ActorCriticExplorer
from rewardfree.interfaces import Spec


@dataclass(frozen=True)
class ScheduledExplorer(ActorCriticExplorer):
    """An explorer whose actor and critics also see a skill. A subclass says how long it is and draws it."""

    skill_every: int = 0
    """Steps after which a new skill is drawn; 0: one for the whole episode."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, " K"]:
        """A skill at random."""

    def skill(self, spec: Spec, key: np.ndarray, step: int) -> Float[np.ndarray, " K"]:
        number = step // self.skill_every if self.skill_every else 0
        rng = np.random.default_rng([*key, SKILL, number])
        return self.draw(rng, self.skill_size(spec)).astype(np.float32)


@dataclass(frozen=True)
class SkillExplorer(ScheduledExplorer):
    """Skills of one length on every domain."""

    skills: int = 16
    """Length of the skill vector."""

    def skill_size(self, spec: Spec) -> int:
        return self.skills


def direction(rng: np.random.Generator, size: int) -> Float[np.ndarray, " K"]:
    """A unit vector, uniform over all."""
    z = rng.standard_normal(size)
    unit: np.ndarray = z / np.linalg.norm(z)
    return unit


def one_hot(rng: np.random.Generator, size: int) -> Float[np.ndarray, " K"]:
    """One of so many skills."""
    return np.eye(size)[rng.integers(size)]
