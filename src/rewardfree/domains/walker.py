"""The planar walker of the DeepMind Control Suite, with the four tasks of the URL benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float

from rewardfree.domains._dm_control import DmControl, load
from rewardfree.interfaces import Axis, Reward
from rewardfree.rewards.tolerance import tolerance

if TYPE_CHECKING:
    from rewardfree.data.transitions import Transitions

STAND_HEIGHT = 1.2  # m
WALK_SPEED = 1.0  # m/s
RUN_SPEED = 8.0  # m/s
SPIN = 5.0  # kg m^2/s

XX, XZ, ZZ = 0, 2, 8  # columns of a rotation matrix stored as a row of nine


def stand(t: Transitions) -> Float[np.ndarray, " n"]:
    """S = (3 standing + upright) / 4."""
    standing = tolerance(t["torso_height"], STAND_HEIGHT, np.inf, margin=STAND_HEIGHT / 2)
    upright = (1 + t["upright"]) / 2
    return (3 * standing + upright) / 4


def walk(t: Transitions) -> Float[np.ndarray, " n"]:
    """S (5 m + 1) / 6, with m = 1 from 1 m/s on."""
    return _moving(t, _speed(t, WALK_SPEED))


def run(t: Transitions) -> Float[np.ndarray, " n"]:
    """S (5 m + 1) / 6, with m = 1 from 8 m/s on."""
    return _moving(t, _speed(t, RUN_SPEED))


def flip(t: Transitions) -> Float[np.ndarray, " n"]:
    """S (5 m + 1) / 6, with m = 1 from an angular momentum of 5 on, and 0 without one."""
    m = tolerance(t["angular_momentum"], SPIN, np.inf, margin=SPIN, sigmoid="linear", value_at_margin=0.0)
    return _moving(t, m)


def _speed(t: Transitions, target: float) -> Float[np.ndarray, " n"]:
    return tolerance(t["vx"], target, np.inf, margin=target / 2, sigmoid="linear", value_at_margin=0.5)


def _moving(t: Transitions, m: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    reward: np.ndarray = stand(t) * (5 * m + 1) / 6
    return reward


class Walker(DmControl):
    """A two-legged walker in the plane."""

    name = "walker"
    camera = "side"
    quantities = ("torso_height", "upright", "vx", "vz", "angular_momentum")
    coverage = (
        Axis("torso_height", 0.0, 1.6, 16),
        Axis("upright", -1.0, 1.0, 10),
        Axis("vx", -4.0, 4.0, 16),
    )
    tasks: ClassVar[Mapping[str, Reward]] = {"stand": stand, "walk": walk, "run": run, "flip": flip}

    def __init__(self) -> None:
        self._suite = load("suite.walker")
        environment = self._suite.stand()
        super().__init__(environment.physics, environment.control_timestep())

    def _prepare(self) -> None:
        torso, data = self._model.body("torso").id, self._data
        self._rotations = data.xmat[1:]  # [7, 9]: without the world
        self._torso_rotation, self._torso_position = data.xmat[torso], data.xpos[torso]
        # The centre of mass's velocity and the angular momentum about it, of the torso and all that hangs
        # on it: the whole walker. The model's subtreelinvel sensor has MuJoCo compute both at every step.
        self._velocity, self._momentum = data.subtree_linvel[torso], data.subtree_angmom[torso]

    def _start(self, random: np.random.RandomState) -> None:
        self._suite.PlanarWalker(move_speed=0, random=random).initialize_episode(self._physics)

    def _observe(self) -> Float[np.ndarray, " 24"]:
        orientations = self._rotations[:, (XX, XZ)].ravel()
        return np.concatenate((orientations, self._torso_position[2:], self._data.qvel))

    def _measure(self) -> tuple[float, ...]:
        vx, _, vz = self._velocity
        return self._torso_position[2], self._torso_rotation[ZZ], vx, vz, self._momentum[1]
