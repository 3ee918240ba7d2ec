"""What the domains built on dm_control share: seeded starts, stepping, the stored state, pictures."""

from __future__ import annotations

import importlib
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from ctypes.util import find_library
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from rewardfree.errors import UserError
from rewardfree.interfaces import Axis, Domain, Reward, Spec, State, Step

EPISODE_LENGTH = 1000

_OF_A_BODY = {
    "x": ("xpos", 0),
    "y": ("xpos", 1),
    "z": ("xpos", 2),
    "zz": ("xmat", 8),  # 1 upright, -1 upside down
    "vx": ("subtree_linvel", 0),  # of the body and all that hangs on it
    "vy": ("subtree_linvel", 1),
    "vz": ("subtree_linvel", 2),
}
"""Where MuJoCo keeps what can be said of every body, in the world's frame: BODY_x and so on."""

NO_PICTURES = (
    "no OpenGL back-end for pictures: install libEGL (Debian, Ubuntu: apt install libegl1) and set "
    "MUJOCO_GL=egl, or install libosmesa6 and set MUJOCO_GL=osmesa"
)


def load(module: str) -> Any:
    """Import a module of dm_control, which settles on an OpenGL back-end when it is first imported.

    MUJOCO_GL is the user's choice. If it is not set, dm_control would look for a display first: on Linux
    without one, EGL is taken if it works, and else none. Everything but `render` does without.
    """
    wanted = os.environ.get("MUJOCO_GL")
    if not wanted and sys.platform == "linux" and not os.environ.get("DISPLAY"):
        os.environ["MUJOCO_GL"] = "egl" if find_library("EGL") else "off"
    try:
        importlib.import_module("dm_control._render")
    except (ImportError, AttributeError, RuntimeError) as error:  # no such library, or no device to draw with
        if wanted:
            raise UserError(f"MUJOCO_GL={wanted} does not work here; unset it, or set it to off") from error
        os.environ["MUJOCO_GL"] = "off"
    return importlib.import_module(f"dm_control.{module}")


class DmControl(Domain):
    """A domain over a dm_control physics. Subclasses say how it starts, and what is seen and named."""

    name: ClassVar[str]
    camera: ClassVar[str]
    quantities: ClassVar[tuple[str, ...]]
    coverage: ClassVar[tuple[Axis, ...]]
    tasks: ClassVar[Mapping[str, str | Reward]]
    observation_names: ClassVar[tuple[str, ...]] = ()
    unseen: ClassVar[tuple[str, ...]] = ()
    unseen_of_bodies: ClassVar[tuple[str, ...]] = ()
    """What is not a function of the observation, of any body: x, y and so on."""

    def __init__(self, physics: Any, control_timestep: float) -> None:
        self._physics = physics
        self._diverged: type[Exception] = load("rl.control").PhysicsError
        # The bindings' own structs: dm_control's wrappers and its indexing by name are slow for every step.
        # MuJoCo never moves these arrays, so views of them stay valid.
        self._model, self._data = physics.model.ptr, physics.data.ptr
        self._sub_steps = round(control_timestep / physics.timestep())
        low, high = self._model.actuator_ctrlrange.T
        self._centre, self._half_range = (high + low) / 2, (high - low) / 2
        self._prepare()
        self.physics = int(self._model.nq), int(self._model.nv), int(self._model.na)
        self._bodies = {self._model.body(i).name: i for i in range(1, self._model.nbody)}
        self.derived = tuple(f"{body}_{what}" for body in self._bodies for what in _OF_A_BODY)
        hidden = tuple(f"{body}_{what}" for body in self._bodies for what in self.unseen_of_bodies)
        self.spec = Spec(
            domain=self.name,
            observation=len(self._observe()),
            action=int(self._model.nu),
            episode_length=EPISODE_LENGTH,
            timestep=control_timestep,
            quantities=self.quantities,
            joints=self._joints(),
            coverage=self.coverage,
            observation_names=self.observation_names,
            unseen=self.unseen + hidden,
        )

    def reset(self, seed: int) -> State:
        """Start an episode; the start depends on the seed alone."""
        with self._physics.reset_context():  # clears all simulator data, the solver's warm start included
            self._start(np.random.RandomState(seed))
        return self._state()

    def step(self, action: Float[np.ndarray, " A"]) -> Step:
        """Apply an action in [-1, 1]^A for one time step. A simulation that diverges is a UserError."""
        ctrl = self.control(action)
        self._data.ctrl[:] = ctrl
        try:
            self._physics.step(self._sub_steps)
        except self._diverged as error:
            raise UserError(f"the simulation of {self.name} diverged: {error}; use another seed") from error
        return Step(self._state(), ctrl, terminated=False)

    def control(self, action: Float[np.ndarray, "*n A"]) -> Float[np.ndarray, "*n nu"]:
        """The control that an action in [-1, 1]^A stands for."""
        return self._centre + self._half_range * np.clip(np.asarray(action, np.float64), -1.0, 1.0)

    def render(self, height: int, width: int) -> np.ndarray:
        """A picture of the present state, uint8 [height, width, 3]."""
        limits = self._model.vis.global_
        if height > limits.offheight or width > limits.offwidth:
            raise UserError(f"a picture can be at most {limits.offheight} high and {limits.offwidth} wide")
        try:
            self._physics.contexts  # noqa: B018 (a property that opens the back-end when first read)
        except (RuntimeError, importlib.import_module("mujoco").FatalError) as error:
            raise UserError(NO_PICTURES) from error
        return np.asarray(self._physics.render(height, width, camera_id=self.camera))

    def restore(
        self, qpos: Float[np.ndarray, " nq"], qvel: Float[np.ndarray, " nv"], act: Float[np.ndarray, " na"]
    ) -> None:
        """Set the simulator to the first state of a stored episode, as `reset` left it."""
        with self._physics.reset_context():
            self._data.qpos[:], self._data.qvel[:], self._data.act[:] = qpos, qvel, act

    def recompute(
        self, names: Sequence[str], qpos: Float[np.ndarray, "n nq"], qvel: Float[np.ndarray, "n nv"]
    ) -> Float[np.ndarray, "n k"]:
        """Positions and velocities need no contacts and no forces, so only those stages of MuJoCo are run."""
        model, data = self._model, self._data
        if qpos.shape[1] != model.nq or qvel.shape[1] != model.nv:
            raise UserError(
                f"the stored states do not fit the {self.name} of this version: nothing to recompute"
            )
        stages = self._stages(names)
        columns = [self._column(name) for name in names]
        position, velocity = data.qpos, data.qvel  # attributes of the bindings: looked up once
        found = np.empty((len(qpos), len(names)), np.float32)
        for i in range(len(qpos)):
            position[:] = qpos[i]
            velocity[:] = qvel[i]
            for stage in stages:
                stage(model, data)
            for k, column in enumerate(columns):
                found[i, k] = column()
        return found

    def _stages(self, names: Sequence[str]) -> list[Callable[[Any, Any], None]]:
        """The parts of MuJoCo's forward pass that these names need, in order."""
        mujoco = importlib.import_module("mujoco")
        of_body = {name.rpartition("_")[2] for name in names if name not in self.quantities}
        stages = [mujoco.mj_kinematics]
        if len(of_body & {"vx", "vy", "vz"}) or any(name in self.quantities for name in names):
            stages += [mujoco.mj_comPos, mujoco.mj_comVel, mujoco.mj_subtreeVel]
        if any(name in self.quantities for name in names):
            stages += [mujoco.mj_sensorPos, mujoco.mj_sensorVel]
        return stages

    def _column(self, name: str) -> Callable[[], float]:
        """How to read a name once the simulator is set."""
        if name in self.quantities:
            where = self.quantities.index(name)
            return lambda: self._measure()[where]
        body, _, what = name.rpartition("_")
        array, column = _OF_A_BODY[what]
        entry = getattr(self._data, array)[self._bodies[body]][column : column + 1]
        return entry.item

    @abstractmethod
    def _prepare(self) -> None:
        """Look up what `_observe` and `_measure` read, once."""

    @abstractmethod
    def _start(self, random: np.random.RandomState) -> None:
        """Draw a start and put it into the freshly reset simulator."""

    @abstractmethod
    def _observe(self) -> Float[np.ndarray, " O"]:
        """The observation, in float64."""

    @abstractmethod
    def _measure(self) -> tuple[float, ...]:
        """The values of `quantities`: functions of qpos and qvel, so that stored states give them back."""

    def _state(self) -> State:
        data = self._data
        return State(
            observation=self._observe().astype(np.float32),
            qpos=data.qpos.copy(),
            qvel=data.qvel.copy(),
            act=data.act.copy(),
            quantities=np.array(self._measure(), dtype=np.float32),
        )

    def _joints(self) -> dict[str, tuple[int, int, int, int]]:
        """Joints lie one after the other in qpos and in qvel: each stops where the next one starts."""
        model = self._model
        positions = [*model.jnt_qposadr.tolist(), int(model.nq)]
        velocities = [*model.jnt_dofadr.tolist(), int(model.nv)]
        slices = zip(positions, positions[1:], velocities, velocities[1:], strict=False)
        named = ((model.joint(j).name, where) for j, where in enumerate(slices))
        return {name: where for name, where in named if name}
