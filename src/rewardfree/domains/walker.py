"""The planar walker of the DeepMind Control Suite, with the four tasks of the URL benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from rewardfree.domains._dm_control import DmControl, load
from rewardfree.interfaces import Axis, Reward

STAND_HEIGHT = 1.2  # m
WALK_SPEED = 1.0  # m/s
RUN_SPEED = 8.0  # m/s
SPIN = 5.0  # kg m^2/s

BODIES = ("torso", "right_thigh", "right_leg", "right_foot", "left_thigh", "left_leg", "left_foot")
JOINTS = (
    *("rootz", "rootx", "rooty"),
    *(f"{side}_{joint}" for side in ("right", "left") for joint in ("hip", "knee", "ankle")),
)

XX, XZ, ZZ = 0, 2, 8  # columns of a rotation matrix stored as a row of nine


# S = (3 standing + upright) / 4, and S (5 m + 1) / 6 where m is 1 once it moves as wanted
STAND = (
    f"(3 * tolerance(torso_height, {STAND_HEIGHT}, inf, margin={STAND_HEIGHT / 2}) + (1 + upright) / 2) / 4"
)


def moving(quantity: str, target: float, margin: float, value_at_margin: float) -> str:
    """Standing, and five sixths of it for a quantity that reaches its target."""
    settings = f"margin={margin}, sigmoid=linear, value_at_margin={value_at_margin}"
    return f"{STAND} * (5 * tolerance({quantity}, {target}, inf, {settings}) + 1) / 6"


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
    observation_names = (
        *(f"{body}_{axis}" for body in BODIES for axis in ("xx", "xz")),
        "height",
        *(f"{joint}_velocity" for joint in JOINTS),
    )
    unseen = ("rootx",)  # how far it has come
    unseen_of_bodies = ("x",)
    tasks: ClassVar[Mapping[str, str | Reward]] = {
        "stand": STAND,
        "walk": moving("vx", WALK_SPEED, WALK_SPEED / 2, 0.5),
        "run": moving("vx", RUN_SPEED, RUN_SPEED / 2, 0.5),
        "flip": moving("angular_momentum", SPIN, SPIN, 0.0),
    }

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
