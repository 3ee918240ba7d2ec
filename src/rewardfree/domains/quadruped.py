"""The quadruped of the DeepMind Control Suite, with the four tasks of the URL benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from rewardfree.domains._dm_control import DmControl, load
from rewardfree.interfaces import Axis, Reward

WALK_SPEED = 0.5  # m/s
RUN_SPEED = 5.0  # m/s
JUMP_HEIGHT = 1.0  # m

LEGS = ("front_left", "front_right", "back_right", "back_left")
HINGES = tuple(f"{joint}_{leg}" for leg in LEGS for joint in ("yaw", "pitch", "knee", "ankle"))
ACTUATORS = tuple(f"{what}_{leg}" for leg in LEGS for what in ("yaw", "lift", "extend"))

ZZ = 8  # column of a rotation matrix stored as a row of nine


UPRIGHT = "(1 + upright) / 2"


def upright_and(quantity: str, target: float) -> str:
    """U m, with m = 1 from the target on and 0.5 at zero."""
    m = f"tolerance({quantity}, {target}, inf, margin={target}, sigmoid=linear, value_at_margin=0.5)"
    return f"{UPRIGHT} * {m}"


class Quadruped(DmControl):
    """A four-legged robot on a plane, dropped in a random orientation."""

    name = "quadruped"
    camera = "y"  # follows the body, from close enough to see the legs
    quantities = ("upright", "vx", "vy", "vz", "com_height", "yaw_rate")
    coverage = (
        Axis("upright", -1.0, 1.0, 10),
        Axis("com_height", 0.0, 1.5, 15),
        Axis("vx", -3.0, 3.0, 12),
    )
    observation_names = (
        *(f"{joint}_{what}" for what in ("angle", "velocity") for joint in HINGES),
        *(f"{actuator}_state" for actuator in ACTUATORS),
        *("vx", "vy", "vz", "upright"),
        *(f"{sensor}_{axis}" for sensor in ("accelerometer", "gyro") for axis in "xyz"),
        *(f"{what}_{leg}_{axis}" for what in ("force", "torque") for leg in LEGS for axis in "xyz"),
    )
    unseen = ("com_height", "root", "root_velocity")  # where it is in the world, and which way it faces
    unseen_of_bodies = ("x", "y", "z", "vx", "vy", "vz")
    tasks: ClassVar[Mapping[str, str | Reward]] = {
        "stand": UPRIGHT,
        "walk": upright_and("vx", WALK_SPEED),
        "run": upright_and("vx", RUN_SPEED),
        "jump": upright_and("com_height", JUMP_HEIGHT),
    }

    def __init__(self) -> None:
        self._suite = load("suite.quadruped")
        environment = self._suite.run()  # the floor is the largest here
        super().__init__(environment.physics, environment.control_timestep())

    def _prepare(self) -> None:
        model, enums = self._model, load("mujoco.wrapper.mjbindings").enums
        hinges = model.jnt_type == enums.mjtJoint.mjJNT_HINGE
        self._hinge_qpos, self._hinge_qvel = model.jnt_qposadr[hinges], model.jnt_dofadr[hinges]
        self._imu = self._readings(enums.mjtSensor.mjSENS_ACCELEROMETER, enums.mjtSensor.mjSENS_GYRO)
        self._force_torque = self._readings(enums.mjtSensor.mjSENS_FORCE, enums.mjtSensor.mjSENS_TORQUE)
        self._upright = self._data.xmat[model.body("torso").id, ZZ:]
        self._velocity = self._sensor("velocimeter")  # in the torso's frame, like the gyro
        self._gyro = self._sensor("imu_gyro")
        self._centre_of_mass = self._sensor("center_of_mass")

    def _start(self, random: np.random.RandomState) -> None:
        self._suite.Move(desired_speed=0, random=random).initialize_episode(self._physics)

    def _observe(self) -> Float[np.ndarray, " 78"]:
        data = self._data
        return np.concatenate(
            (
                data.qpos[self._hinge_qpos],
                data.qvel[self._hinge_qvel],
                data.act,
                self._velocity,
                self._upright,
                data.sensordata[self._imu],
                np.arcsinh(data.sensordata[self._force_torque]),
            )
        )

    def _measure(self) -> tuple[float, ...]:
        return self._upright[0], *self._velocity, self._centre_of_mass[2], self._gyro[2]

    def _sensor(self, name: str) -> np.ndarray:
        """A view of one sensor's readings."""
        sensor = self._model.sensor(name)
        view: np.ndarray = self._data.sensordata[sensor.adr[0] :][: sensor.dim[0]]
        return view

    def _readings(self, *types: int) -> np.ndarray:
        """Where the readings of all sensors of these types lie, in the model's order."""
        model = self._model
        sensors = np.flatnonzero(np.isin(model.sensor_type, types))
        return np.concatenate([model.sensor_adr[i] + np.arange(model.sensor_dim[i]) for i in sensors])
