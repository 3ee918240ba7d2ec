"""A point mass in a maze of four rooms: the quick domain, whose coverage can be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from rewardfree.domains._dm_control import DmControl, load
from rewardfree.interfaces import Axis, Reward

CONTROL_TIMESTEP = 0.02  # s
HALF_ARENA = 0.3  # m
WALL_HALF_LENGTH, WALL_HALF_THICKNESS = 0.18, 0.02  # m
START = ((-0.29, 0.15), (-0.15, 0.29))  # (x, y) drawn between these corners of the top-left room
GOAL_RADIUS = 0.015
GOALS = {
    "top_left": (-0.15, 0.15),
    "top_right": (0.15, 0.15),
    "bottom_left": (-0.15, -0.15),
    "bottom_right": (0.15, -0.15),
}

# Two walls cross in the centre and leave a gap at each end, so the rooms are joined at the outer edges.
# Nothing but the walls touches the mass, and without friction: it slides along them.
MODEL = f"""
<mujoco model="point mass maze">
  <include file="./common/skybox.xml"/>
  <include file="./common/visual.xml"/>
  <include file="./common/materials.xml"/>
  <option timestep="{CONTROL_TIMESTEP}"/>
  <default>
    <joint type="slide" limited="true" range="-.29 .29" damping="1"/>
    <geom condim="1"/>
    <motor gear=".1" ctrlrange="-1 1" ctrllimited="true"/>
    <default class="border">
      <geom type="plane" material="decoration" contype="0" conaffinity="0"/>
    </default>
    <default class="wall">
      <geom type="box" pos="0 0 .02" material="decoration"/>
    </default>
    <site type="cylinder" size="{GOAL_RADIUS} .002" material="target"/>
  </default>
  <worldbody>
    <light name="light" pos="0 0 1"/>
    <camera name="above" pos="0 0 .75" quat="1 0 0 0"/>
    <geom name="ground" type="plane" size=".3 .3 .1" material="grid" contype="0" conaffinity="0"/>
    <geom name="border_left" class="border" pos="-.3 0 .02" zaxis="1 0 0" size=".02 .3 .02"/>
    <geom name="border_bottom" class="border" pos="0 -.3 .02" zaxis="0 1 0" size=".3 .02 .02"/>
    <geom name="border_right" class="border" pos=".3 0 .02" zaxis="-1 0 0" size=".02 .3 .02"/>
    <geom name="border_top" class="border" pos="0 .3 .02" zaxis="0 -1 0" size=".3 .02 .02"/>
    <geom name="wall_x" class="wall" size="{WALL_HALF_LENGTH} {WALL_HALF_THICKNESS} .02"/>
    <geom name="wall_y" class="wall" size="{WALL_HALF_THICKNESS} {WALL_HALF_LENGTH} .02"/>
    {"".join(f'<site name="{name}" pos="{x} {y} .002"/>' for name, (x, y) in GOALS.items())}
    <body name="pointmass" pos="0 0 .01">
      <joint name="root_x" axis="1 0 0"/>
      <joint name="root_y" axis="0 1 0"/>
      <geom name="pointmass" type="sphere" size=".01" material="self" mass=".3"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="root_x" joint="root_x"/>
    <motor name="root_y" joint="root_y"/>
  </actuator>
</mujoco>
"""


def reach(x: float, y: float) -> str:
    """At the goal, times (mean_j(1 - u_j^2) + 4) / 5: a fifth of it is for a small control u."""
    near = f"tolerance(norm(x - {x}, y - {y}), 0, {GOAL_RADIUS}, margin={GOAL_RADIUS})"
    return f"{near} * (mean(1 - ctrl ** 2) + 4) / 5"


class PointMassMaze(DmControl):
    """A point mass in four rooms, starting in the top-left one."""

    name = "point_mass_maze"
    camera = "above"
    quantities = ("x", "y", "vx", "vy")
    coverage = (Axis("x", -HALF_ARENA, HALF_ARENA, 30), Axis("y", -HALF_ARENA, HALF_ARENA, 30))
    observation_names = quantities
    tasks: ClassVar[Mapping[str, str | Reward]] = {
        f"reach_{room}": reach(x, y) for room, (x, y) in GOALS.items()
    }

    def __init__(self) -> None:
        assets = load("suite.common").ASSETS
        super().__init__(load("mujoco").Physics.from_xml_string(MODEL, assets), CONTROL_TIMESTEP)

    def _prepare(self) -> None:
        self._position, self._velocity = self._data.qpos, self._data.qvel

    def _start(self, random: np.random.RandomState) -> None:
        self._position[:] = random.uniform(*START)

    def _observe(self) -> Float[np.ndarray, " 4"]:
        return np.concatenate((self._position, self._velocity))

    def _measure(self) -> tuple[float, ...]:
        return *self._position, *self._velocity
