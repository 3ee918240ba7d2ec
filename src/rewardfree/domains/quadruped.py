"""The quadruped of the DeepMind Control Suite, with the four tasks of the URL benchmark."""

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

WALK_SPEED = 0.5  # m/s
RUN_SPEED = 5.0  # m/s
JUMP_HEIGHT = 1.0  # m

ZZ = 8  # column of a rotation matrix stored as a row of nine


def stand(t: Transitions) -> Float[np.ndarray, " n"]:
    """U = (1 + upright) / 2."""
    return tolerance(t["upright"], 1.0, np.inf, margin=2.0, sigmoid="linear", value_at_margin=0.0)


def walk(t: Transitions) -> Float[np.ndarray, " n"]:
    """U m, with m = 1 from 0.5 m/s on."""
    return _upright_and(t, "vx", WALK_SPEED)


def run(t: Transitions) -> Float[np.ndarray, " n"]:
    """U m, with m = 1 from 5 m/s on."""
    return _upright_and(t, "vx", RUN_SPEED)


def jump(t: Transitions) -> Float[np.ndarray, " n"]:
    """U m, with m = 1 from a centre of mass at 1 m on."""
    return _upright_and(t, "com_height", JUMP_HEIGHT)


def _upright_and(t: Transitions, quantity: str, target: float) -> Float[np.ndarray, " n"]:
    """U m, with m = 1 from the target on and 0.5 at zero."""
    m = tolerance(t[quantity], target, np.inf, margin=target, sigmoid="linear", value_at_margin=0.5)
    reward: np.ndarray = stand(t) * m
    return reward


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
    tasks: ClassVar[Mapping[str, Reward]] = {"stand": stand, "walk": walk, "run": run, "jump": jump}

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
