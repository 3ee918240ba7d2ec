"""The simulators: sizes, reproducible episodes, and rewards that come back from what is stored."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pytest

from rewardfree.data.dataset import Recorder
from rewardfree.data.transitions import STATE_ARRAYS, Transitions
from rewardfree.domains._dm_control import DmControl, load
from rewardfree.domains.point_mass_maze import GOALS, PointMassMaze
from rewardfree.domains.quadruped import Quadruped
from rewardfree.domains.walker import Walker
from rewardfree.errors import UserError
from rewardfree.interfaces import Step
from rewardfree.rewards.expression import parse
from rewardfree.rewards.tolerance import tolerance

DOMAINS = (Walker, Quadruped, PointMassMaze)
each_domain = pytest.mark.parametrize("domain_class", DOMAINS)

walker, quadruped = load("suite.walker"), load("suite.quadruped")
dm_tolerance: Callable[..., Any] = load("utils.rewards").tolerance
linear = partial(dm_tolerance, sigmoid="linear")

# ---- what the simulator pays, in float64 on its live physics

Paid = Mapping[str, Callable[[Any], float]]


def flip_paid(physics: Any) -> float:
    load("mujoco.wrapper.mjbindings").mjlib.mj_subtreeVel(physics.model.ptr, physics.data.ptr)
    spin = physics.named.data.subtree_angmom["torso"][1]
    m = linear(spin, bounds=(5, np.inf), margin=5, value_at_margin=0)
    return float(walker.PlanarWalker(0).get_reward(physics) * (5 * m + 1) / 6)


def stand_paid(physics: Any) -> float:
    return float(1 + physics.torso_upright()) / 2


def jump_paid(physics: Any) -> float:
    height = physics.named.data.subtree_com["torso", "z"]
    return stand_paid(physics) * float(linear(height, bounds=(1, np.inf), margin=1, value_at_margin=0.5))


def reach_paid(physics: Any, site: str) -> float:
    to_goal = physics.named.data.site_xpos[site] - physics.named.data.geom_xpos["pointmass"]
    near = dm_tolerance(np.linalg.norm(to_goal[:2]), bounds=(0, 0.015), margin=0.015)
    control = dm_tolerance(physics.control(), margin=1, value_at_margin=0, sigmoid="quadratic").mean()
    return float(near * (control + 4) / 5)


PAID: dict[type[DmControl], Paid] = {
    Walker: {
        "stand": walker.PlanarWalker(0).get_reward,
        "walk": walker.PlanarWalker(1).get_reward,
        "run": walker.PlanarWalker(8).get_reward,
        "flip": flip_paid,
    },
    Quadruped: {
        "stand": stand_paid,
        "walk": quadruped.Move(0.5).get_reward,
        "run": quadruped.Move(5).get_reward,
        "jump": jump_paid,
    },
    PointMassMaze: {f"reach_{room}": partial(reach_paid, site=room) for room in GOALS},
}

# ---- episodes


def random_actions(size: int, hold: int, seed: int, steps: int) -> np.ndarray:
    """[steps, size], each held for a while; beyond [-1, 1] every now and then."""
    draws = np.random.default_rng(seed).uniform(-1.2, 1.2, (steps, size))
    return draws[np.arange(steps) // hold].astype(np.float32)


def tour(domain: PointMassMaze) -> Iterator[np.ndarray]:
    """Actions that steer through all four rooms, towards one point after the other."""
    points = [(-0.15, 0.15), (0, 0.24), (0.15, 0.15), (0.24, 0), (0.15, -0.15), (0, -0.24), (-0.15, -0.15)]
    for x, y in points:
        error = np.ones(2)
        while np.abs(error).max() > 0.005:
            error = np.array((x, y)) - domain._data.qpos
            yield np.clip(20 * error, -1, 1).astype(np.float32)


def launched(domain: DmControl, actions: np.ndarray) -> Iterator[np.ndarray]:
    """Upright and fast to begin with: where random actions do not get to."""
    with domain._physics.reset_context():
        _, _, forwards, _ = domain.spec.joints["rootx" if isinstance(domain, Walker) else "root"]
        domain._data.qvel[forwards] = 9.0
    yield from actions


def run(domain: DmControl, seed: int, actions: Iterator[np.ndarray] | np.ndarray) -> dict[str, np.ndarray]:
    recorder = Recorder(domain.reset(seed))
    for action in actions:
        recorder.add(action, domain.step(action))
    return recorder.arrays()


class Experience(NamedTuple):
    transitions: Transitions
    paid: dict[str, np.ndarray]


@cache
def experience(domain_class: Any) -> Experience:
    """3000 steps of varied control, with what each task paid for them at the time."""
    domain = domain_class()
    paid: dict[str, list[float]] = {task: [] for task in PAID[domain_class]}

    def watched(actions: Iterator[np.ndarray] | np.ndarray) -> Iterator[np.ndarray]:
        for action in actions:
            yield action
            for task, reward in PAID[domain_class].items():  # runs when the step has been taken
                paid[task].append(reward(domain._physics))

    size = domain.spec.action
    plans: list[Any] = [random_actions(size, hold, seed=hold, steps=1000) for hold in (1, 10, 50)]
    plans.append(tour(domain) if isinstance(domain, PointMassMaze) else launched(domain, plans[1][:100]))
    episodes = [run(domain, seed, watched(plan)) for seed, plan in enumerate(plans)]
    arrays = {key: np.concatenate([episode[key] for episode in episodes]) for key in episodes[0]}
    lengths = np.array([len(episode["action"]) for episode in episodes])
    return Experience(
        Transitions(domain.spec, arrays, lengths), {task: np.array(rewards) for task, rewards in paid.items()}
    )


# ---- tests


@pytest.mark.parametrize(
    ("domain_class", "sizes", "clock"),
    [
        (Walker, (24, 6, 9, 9, 0), (0.0025, 10)),
        (Quadruped, (78, 12, 23, 22, 12), (0.005, 4)),
        (PointMassMaze, (4, 2, 2, 2, 0), (0.02, 1)),
    ],
)
def test_sizes(domain_class: Any, sizes: tuple[int, ...], clock: tuple[float, int]) -> None:
    observation, action, nq, nv, na = sizes
    domain = domain_class()
    spec, state = domain.spec, domain.reset(0)
    assert (spec.observation, spec.action, spec.episode_length) == (observation, action, 1000)
    assert [len(part) for part in state] == [observation, nq, nv, na, len(spec.quantities)]
    assert [part.dtype for part in state] == [np.float32, np.float64, np.float64, np.float64, np.float32]
    assert (domain._physics.timestep(), domain._sub_steps) == clock
    assert spec.timestep == pytest.approx(clock[0] * clock[1])
    assert max(stop for _, stop, _, _ in spec.joints.values()) == nq
    assert max(stop for _, _, _, stop in spec.joints.values()) == nv
    assert {axis.quantity for axis in spec.coverage} <= set(spec.quantities)


@each_domain
def test_same_seed_and_actions_give_the_same_episode(domain_class: Any) -> None:
    fresh, used = domain_class(), domain_class()
    actions = random_actions(fresh.spec.action, hold=5, seed=0, steps=200)
    run(used, 8, -actions)
    with pytest.raises(UserError, match="diverged"):
        used.step(np.full(used.spec.action, np.nan))
    first, again = run(fresh, 7, actions), run(used, 7, actions)
    other = run(fresh, 8, actions)
    for name in STATE_ARRAYS:
        np.testing.assert_array_equal(first[name], again[name], err_msg=name)
    assert not np.array_equal(first["qpos"][0], other["qpos"][0])


@each_domain
def test_states_do_not_change_afterwards(domain_class: Any) -> None:
    domain = domain_class()
    state = domain.reset(0)
    before = [part.copy() for part in state]
    domain.step(np.ones(domain.spec.action))
    for part, copy in zip(state, before, strict=True):
        np.testing.assert_array_equal(part, copy)


@each_domain
def test_actions_are_clipped_and_scaled_to_the_control_range(domain_class: Any) -> None:
    domain: DmControl = domain_class()

    def after(action: np.ndarray) -> Step:
        domain.reset(0)
        return domain.step(action)

    inside = np.linspace(-1, 1, domain.spec.action)
    low, high = domain._model.actuator_ctrlrange.T
    np.testing.assert_allclose(after(inside).ctrl, low + (inside + 1) / 2 * (high - low), atol=1e-12)
    np.testing.assert_allclose(after(np.full_like(inside, 9.0)).ctrl, high, atol=1e-12)
    clipped, beyond = after(np.sign(inside)), after(7 * np.sign(inside))
    for name in STATE_ARRAYS:
        np.testing.assert_array_equal(getattr(clipped.state, name), getattr(beyond.state, name))


@pytest.mark.parametrize(("domain_class", "module"), [(Walker, walker), (Quadruped, quadruped)])
def test_starts_and_observations_are_the_suite_s(domain_class: Any, module: Any) -> None:
    domain = domain_class()
    environment = module.walk(random=np.random.RandomState(3))
    ours, theirs = domain.reset(3), environment.reset()
    middle, half_range = domain._centre, domain._half_range
    for action in random_actions(domain.spec.action, hold=10, seed=3, steps=100).clip(-1, 1):
        flat = np.concatenate([np.ravel(part) for part in theirs.observation.values()])
        np.testing.assert_array_equal(ours.observation, flat.astype(np.float32))
        theirs = environment.step(middle + half_range * np.asarray(action, np.float64))
        ours = domain.step(action).state


def walker_stand(t: Transitions) -> np.ndarray:
    return (3 * tolerance(t["torso_height"], 1.2, np.inf, margin=0.6) + (1 + t["upright"]) / 2) / 4


def reaching(x: np.ndarray, target: float, margin: float, value: float) -> np.ndarray:
    return tolerance(x, target, np.inf, margin=margin, sigmoid="linear", value_at_margin=value)


def maze_reach(t: Transitions, x: float, y: float) -> np.ndarray:
    near: np.ndarray = tolerance(np.hypot(t["x"] - x, t["y"] - y), 0.0, 0.015, margin=0.015)
    return near * (np.mean(1 - t["ctrl"] ** 2, axis=1) + 4) / 5


FUNCTIONS: dict[Any, dict[str, Callable[[Transitions], np.ndarray]]] = {
    Walker: {
        "stand": walker_stand,
        "walk": lambda t: walker_stand(t) * (5 * reaching(t["vx"], 1, 0.5, 0.5) + 1) / 6,
        "run": lambda t: walker_stand(t) * (5 * reaching(t["vx"], 8, 4, 0.5) + 1) / 6,
        "flip": lambda t: walker_stand(t) * (5 * reaching(t["angular_momentum"], 5, 5, 0) + 1) / 6,
    },
    Quadruped: {
        "stand": lambda t: (1 + t["upright"]) / 2,
        "walk": lambda t: (1 + t["upright"]) / 2 * reaching(t["vx"], 0.5, 0.5, 0.5),
        "run": lambda t: (1 + t["upright"]) / 2 * reaching(t["vx"], 5, 5, 0.5),
        "jump": lambda t: (1 + t["upright"]) / 2 * reaching(t["com_height"], 1, 1, 0.5),
    },
    PointMassMaze: {
        "reach_top_left": partial(maze_reach, x=-0.15, y=0.15),
        "reach_top_right": partial(maze_reach, x=0.15, y=0.15),
        "reach_bottom_left": partial(maze_reach, x=-0.15, y=-0.15),
        "reach_bottom_right": partial(maze_reach, x=0.15, y=-0.15),
    },
}


@pytest.mark.parametrize(
    ("domain_class", "task"), [(domain, task) for domain in DOMAINS for task in PAID[domain]]
)
def test_a_task_is_the_same_as_expression_as_function_and_in_the_simulator(
    domain_class: Any, task: str
) -> None:
    transitions, paid = experience(domain_class)
    assert set(domain_class.tasks) == set(paid) == set(FUNCTIONS[domain_class])
    assert len(transitions) >= 3000
    expression = parse(domain_class.tasks[task], transitions.names)(transitions)
    np.testing.assert_allclose(expression, paid[task], rtol=0, atol=1e-5)
    np.testing.assert_allclose(FUNCTIONS[domain_class][task](transitions), paid[task], rtol=0, atol=1e-5)
    assert np.ptp(paid[task]) > 0.4, "the episodes say nothing about this task"


@each_domain
def test_recomputed_quantities_are_the_simulator_s(domain_class: Any) -> None:
    """Set to a stored state, the simulator gives the stored quantities, and what MuJoCo says of a body."""
    transitions, _ = experience(domain_class)
    domain = domain_class()
    rows = np.arange(0, len(transitions.stored("qpos")), 97)
    qpos, qvel = (transitions.stored(name)[rows] for name in ("qpos", "qvel"))
    found = domain.recompute(domain.spec.quantities, qpos, qvel)
    np.testing.assert_allclose(found, transitions.stored("quantities")[rows], atol=1e-5)
    body = domain._model.body(domain._model.nbody - 1)
    recomputed = domain.recompute(
        [f"{body.name}_{what}" for what in ("x", "y", "z", "zz", "vx", "vz")], qpos, qvel
    )
    for row, position, velocity in zip(recomputed, qpos, qvel, strict=True):
        domain._data.qpos[:], domain._data.qvel[:] = position, velocity
        mujoco.mj_forward(domain._model, domain._data)
        mujoco.mj_subtreeVel(domain._model, domain._data)
        data = domain._data
        speed = data.subtree_linvel[body.id]
        expected = [*data.xpos[body.id], data.xmat[body.id][8], speed[0], speed[2]]
        np.testing.assert_allclose(row, expected, atol=1e-5)


@each_domain
def test_every_entry_of_an_observation_has_its_name(domain_class: Any) -> None:
    transitions, _ = experience(domain_class)
    names = transitions.spec.observation_names
    assert len(set(names)) == len(names) == transitions.spec.observation
    for known, quantity in {"height": "torso_height", "upright": "upright", "vx": "vx", "y": "y"}.items():
        if known in names and quantity in transitions.spec.quantities:
            np.testing.assert_array_equal(transitions[f"obs_{known}"], transitions[quantity])
    for joint in transitions.spec.joints:
        if f"{joint}_velocity" in names:
            np.testing.assert_allclose(
                transitions[f"obs_{joint}_velocity"], transitions[f"{joint}_velocity"], atol=1e-6
            )


@pytest.mark.parametrize("domain_class", [Walker, Quadruped])
def test_what_is_called_unseen_leaves_the_observation_as_it_is(domain_class: Any) -> None:
    domain = domain_class()
    domain.reset(0)
    before = domain._observe()
    joint = next(name for name in domain.unseen if name in domain.spec.joints)
    start, *_ = domain.spec.joints[joint]
    domain._data.qpos[start] += 7.0  # somewhere else in the world
    mujoco.mj_forward(domain._model, domain._data)
    np.testing.assert_allclose(domain._observe(), before, atol=1e-6)


@each_domain
def test_quantities_come_back_from_stored_states(domain_class: Any) -> None:
    transitions, _ = experience(domain_class)
    domain = domain_class()
    arrays = {name: transitions[name] for name in ("qpos", "qvel", "act", "ctrl", *domain.spec.quantities)}
    for i in range(0, len(transitions), 37):
        for name in ("qpos", "qvel", "act", "ctrl"):
            getattr(domain._data, name)[:] = arrays[name][i]
        domain._physics.forward()
        stored = [arrays[name][i] for name in domain.spec.quantities]
        np.testing.assert_allclose(domain._measure(), stored, rtol=1e-4, atol=1e-4)


def test_the_maze_keeps_to_its_walls() -> None:
    domain = PointMassMaze()
    held = [run(domain, seed, random_actions(2, 100, seed, steps=1000))["qpos"] for seed in range(10)]
    x, y = np.abs(np.concatenate([*held, experience(PointMassMaze).transitions["qpos"]])).T
    outside = [np.hypot((x - a).clip(0), (y - b).clip(0)) for a, b in ((0.18, 0.02), (0.02, 0.18))]
    assert np.min(outside) > 0.0075  # the mass has a radius of 0.01 and contacts are slightly soft
    assert max(x.max(), y.max()) < 0.295
    pressed = run(domain, 0, np.tile((1, -1), (1000, 1)))["qpos"][-1]
    np.testing.assert_allclose(pressed, (-0.03, 0.03), atol=1e-3)


def test_the_maze_starts_all_over_the_top_left_room() -> None:
    domain = PointMassMaze()
    starts = np.array([domain.reset(seed).qpos for seed in range(300)])
    np.testing.assert_allclose(starts.min(0), (-0.29, 0.15), atol=5e-3)
    np.testing.assert_allclose(starts.max(0), (-0.15, 0.29), atol=5e-3)


@each_domain
def test_pictures(domain_class: Any) -> None:
    domain = domain_class()
    domain.reset(0)
    try:
        picture = domain.render(120, 160)
    except UserError as error:
        pytest.skip(str(error))
    assert (picture.shape, picture.dtype) == ((120, 160, 3), np.uint8)
    assert picture.std() > 10
    with pytest.raises(UserError, match="at most"):
        domain.render(120, 10_000)


@pytest.mark.parametrize("library", ["found", "missing"])
def test_all_but_pictures_works_without_a_back_end(library: str) -> None:
    program = f"""
from rewardfree.domains import _dm_control as base, walker
from rewardfree.errors import UserError
if {library == "missing"}:
    base.find_library = lambda name: None
domain = walker.Walker()
domain.step(domain.reset(0).observation[:6])
try:
    domain.render(120, 160)
except UserError as error:
    print(error)
"""
    unset = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "DISPLAY")}
    environment = unset if library == "missing" else unset | {"MUJOCO_GL": "off"}
    if sys.platform != "linux" and library == "missing":
        pytest.skip("only Linux chooses a back-end by looking for libEGL")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("no OpenGL back-end"), done.stderr


@pytest.mark.parametrize("sigmoid", ["gaussian", "linear"])
@pytest.mark.parametrize("margin", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("bounds", [(0.0, 0.0), (-1.0, 0.5), (1.2, np.inf), (-np.inf, -0.5)])
def test_tolerance_is_dm_control_s(sigmoid: str, margin: float, bounds: tuple[float, float]) -> None:
    edges = np.array(bounds)[np.isfinite(bounds)]
    x = np.append(np.random.default_rng(0).normal(scale=2, size=1000), edges)
    for value in (0.1, 0.5, 0.99):
        options: dict[str, Any] = {"margin": margin, "sigmoid": sigmoid, "value_at_margin": value}
        expected = dm_tolerance(x, bounds=bounds, **options)
        np.testing.assert_allclose(tolerance(x, *bounds, **options), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("lower", "upper", "options"),
    [
        (1.0, 0.0, {}),
        (0.0, 1.0, {"margin": -1.0}),
        (0.0, 1.0, {"margin": 1.0, "value_at_margin": 0.0}),
        (0.0, 1.0, {"margin": 1.0, "value_at_margin": 1.0, "sigmoid": "linear"}),
        (0.0, 1.0, {"margin": 1.0, "sigmoid": "gausian"}),
    ],
)
def test_tolerance_refuses_nonsense(lower: float, upper: float, options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        tolerance(np.zeros(3), lower, upper, **options)
