"""The test bed: MDPs by name, from a file of arrays, or from a Gymnasium transition table."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rewardfree.data import files
from rewardfree.errors import UserError, unknown
from rewardfree.exact.mdp import Mdp

_MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def double_chain(length: int = 31, horizon: int = 20, fail: float = 0.05) -> Mdp:
    """A chain, started in the middle: left or right, and the other way with chance `fail`."""
    P = np.zeros((length, 2, length))
    for s in range(length):
        for a, step in enumerate((-1, 1)):
            P[s, a, np.clip(s + step, 0, length - 1)] += 1 - fail
            P[s, a, np.clip(s - step, 0, length - 1)] += fail
    return Mdp(P, start=length // 2, horizon=horizon)


def combination_lock(horizon: int = 12, actions: int = 3, seed: int = 0) -> Mdp:
    """One action of each position leads on, all others to the last state, which nothing leaves."""
    code = np.random.default_rng(seed).integers(actions, size=horizon)
    lost = horizon
    P = np.zeros((horizon + 1, actions, horizon + 1))
    P[:, :, lost] = 1
    for position in range(horizon - 1):
        P[position, code[position], lost] = 0
        P[position, code[position], position + 1] = 1
    return Mdp(P, horizon=horizon)


def riverswim(states: int = 8, horizon: int | None = None) -> Mdp:
    """Swim right against the current: 0.35 on, 0.6 stay, 0.05 back. Left is certain. 2S stages by default."""
    P = np.zeros((states, 2, states))
    for s in range(states):
        P[s, 0, max(s - 1, 0)] = 1
        P[s, 1, min(s + 1, states - 1)] += 0.35
        P[s, 1, s] += 0.6
        P[s, 1, max(s - 1, 0)] += 0.05
    P[0, 1, :2], P[-1, 1, -2:] = (0.4, 0.6), (0.4, 0.6)
    return Mdp(P, horizon=2 * states if horizon is None else horizon)


def grid(side: int = 7, horizon: int | None = None, success: float = 0.95) -> Mdp:
    """An open square, started in its middle. A move goes astray with chance 1 - success. 2 * side stages."""
    free = np.ones((side, side), dtype=bool)
    return _rooms(free, (side // 2, side // 2), 2 * side if horizon is None else horizon, success)


def four_rooms(side: int = 9, horizon: int | None = None, success: float = 0.95) -> Mdp:
    """Four rooms with a door between neighbours, started in a corner. 2 * side stages by default."""
    free, wall, door = np.ones((side, side), dtype=bool), side // 2, side // 4
    free[wall, :] = free[:, wall] = False
    for row, column in ((wall, door), (wall, side - 1 - door), (door, wall), (side - 1 - door, wall)):
        free[row, column] = True
    return _rooms(free, (0, 0), 2 * side if horizon is None else horizon, success)


def rooms(count: int = 15, horizon: int = 30, success: float = 0.95) -> Mdp:
    """A row of rooms of 5 x 5 with a door between neighbours, started in the middle of the middle one."""
    free = np.ones((5, 6 * count - 1), dtype=bool)
    free[:, 5::6] = False
    free[2, 5::6] = True
    return _rooms(free, (2, 6 * (count // 2) + 2), horizon, success)


def random_linear(
    states: int = 50, horizon: int = 8, actions: int = 4, features: int = 6, seed: int = 0
) -> Mdp:
    """A linear MDP: phi(s, a) ~ Dirichlet(0.2), mu_i ~ Dirichlet(0.05)."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(features, 0.2), size=(states, actions))
    mu = rng.dirichlet(np.full(states, 0.05), size=features)
    return Mdp(phi @ mu, horizon=horizon, features=phi)


def linear_mixture(
    states: int = 8, horizon: int = 8, actions: int = 2, kernels: int = 4, seed: int = 0
) -> Mdp:
    """A linear mixture MDP: P = sum_i theta_i P_i, rows of P_i ~ Dirichlet(0.1), theta ~ Dirichlet(1)."""
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.full(states, 0.1), size=(kernels, states, actions))
    theta = rng.dirichlet(np.ones(kernels))
    return Mdp(np.einsum("d,dsat->sat", theta, base), horizon=horizon, kernels=base)


def uneven(states: int = 12, horizon: int = 12, actions: int = 3, seed: int = 0) -> Mdp:
    """Very uneven noise: half of the cells lead to one certain state, half anywhere, by Dirichlet(1)."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(states), size=(states, actions))
    certain = rng.random((states, actions)) < 0.5
    P[certain] = np.eye(states)[rng.integers(states, size=certain.sum())]
    return Mdp(P, horizon=horizon)


def uneven_linear(
    states: int = 50, horizon: int = 8, actions: int = 4, features: int = 6, seed: int = 0
) -> Mdp:
    """A linear MDP with very uneven noise: half of the mu_i are certain states, half lead anywhere."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(features, 0.2), size=(states, actions))
    mu = rng.dirichlet(np.full(states, 5.0), size=features)
    mu[::2] = np.eye(states)[rng.choice(states, size=len(mu[::2]), replace=False)]
    return Mdp(phi @ mu, horizon=horizon, features=phi)


MDPS: dict[str, Callable[..., Mdp]] = {
    "double-chain": double_chain,
    "combination-lock": combination_lock,
    "riverswim": riverswim,
    "grid": grid,
    "four-rooms": four_rooms,
    "rooms": rooms,
    "random-linear": random_linear,
    "linear-mixture": linear_mixture,
    "uneven": uneven,
    "uneven-linear": uneven_linear,
}
"""By name. A number after the name is the first argument: riverswim-8, combination-lock-12."""


def load(name: str, horizon: int | None = None) -> Mdp:
    """An MDP by its name, `gymnasium:ID`, or the path of a .npz file.

    A file holds `transitions` of shape (S, A, S) or (H, S, A, S), and if wanted `start` (S,) and `features`
    (S, A, d); any other array in it is a reward by that name. Nothing in it is executed.
    """
    if name.startswith("gymnasium:"):
        return from_gymnasium(name.removeprefix("gymnasium:"), horizon)
    if name.endswith(".npz"):
        return from_file(Path(name), horizon)
    match = re.fullmatch(r"(.*?)(?:-(\d{1,4}))?", name)
    assert match is not None
    if match[1] not in MDPS:
        raise unknown("MDP", name, MDPS, "; or gymnasium:ID, or a .npz file")
    size = {} if match[2] is None else {_first_argument(MDPS[match[1]]): int(match[2])}
    stages = {} if horizon is None else {"horizon": horizon}
    if any(number < 2 and argument != "horizon" for argument, number in size.items()):
        raise UserError(f"{name}: the size must be at least 2")
    if any(number < 1 for number in (size | stages).values()):
        raise UserError(f"{name}: the horizon must be at least 1")
    mdp = MDPS[match[1]](**(size | stages))
    mdp.name = name
    return mdp


def from_file(path: Path, horizon: int | None = None) -> Mdp:
    """An MDP from a .npz file of arrays."""
    arrays: dict[str, Any] = files.read_npz(path)
    if "transitions" not in arrays:
        raise UserError(f"{path} holds no array called transitions, of shape (S, A, S) or (H, S, A, S)")
    P, start, phi = arrays.pop("transitions"), arrays.pop("start", 0), arrays.pop("features", None)
    return Mdp(P, start, horizon=horizon, features=phi, rewards=arrays, name=path.stem)


def from_gymnasium(environment: Any, horizon: int | None = None) -> Mdp:
    """An MDP from an environment, or the id of one, that has Discrete spaces and a transition table P.

    A state in which an episode terminates is kept for the stages that are left, and pays nothing there. The
    environment's own reward is called `environment`, normalised. The horizon is the environment's step limit,
    100 at most, unless one is given.
    """
    import gymnasium

    if isinstance(environment, str):
        try:
            environment = gymnasium.make(environment)
        except (gymnasium.error.Error, ImportError) as error:
            raise UserError(f"Gymnasium cannot make {environment}: {error}") from error
    spec, inner = environment.spec, environment.unwrapped
    discrete = gymnasium.spaces.Discrete
    spaces = inner.observation_space, inner.action_space
    if not all(isinstance(space, discrete) and space.start == 0 for space in spaces):
        raise UserError(f"Discrete spaces that start at 0 are needed; this environment has {spaces}")
    table = getattr(inner, "P", None)
    if table is None:
        raise UserError(
            "the environment has no transition table P, as FrozenLake-v1, Taxi-v4 and CliffWalking-v1 have;"
            " give the transitions as a .npz file"
        )
    S, A = int(spaces[0].n), int(spaces[1].n)
    start = np.asarray(getattr(inner, "initial_state_distrib", np.eye(S)[0]), dtype=np.float64)
    ends, P, reward = _ends(table, start, A), np.zeros((S, A, S)), np.zeros((S, A))
    for s, a in np.ndindex(S, A):
        if s in ends:
            P[s, a, s] = 1
            continue
        for chance, after, paid, _ in table[s][a]:
            P[s, a, after] += chance
            reward[s, a] += chance * paid
    limit = getattr(spec, "max_episode_steps", None) or 100
    return Mdp(
        P,
        start,
        horizon=min(limit, 100) if horizon is None else horizon,
        rewards={"environment": reward},
        name=spec.id if spec is not None else type(inner).__name__,
    )


def _ends(table: Any, start: np.ndarray, actions: int) -> set[int]:
    """The states in which an episode ends, among those that can be reached: tables have others too."""
    ahead = {int(s) for s in np.flatnonzero(start)}
    ends, passed = set[int](), set(ahead)
    while ahead:
        s = ahead.pop()
        for _, after, _, done in (move for a in range(actions) for move in table[s][a] if move[0] > 0):
            if done:
                ends.add(after)
            elif after not in passed:
                passed.add(after)
                ahead.add(after)
    if both := ends & passed:
        raise UserError(f"state {min(both)} ends an episode or not, depending on how it is reached")
    return ends


def _first_argument(function: Callable[..., Mdp]) -> str:
    return function.__code__.co_varnames[0]


def _rooms(free: np.ndarray, start: tuple[int, int], horizon: int, success: float) -> Mdp:
    """Four moves among the free cells; a blocked one stays; one that goes astray is one of the others."""
    cells = [(int(row), int(column)) for row, column in np.argwhere(free)]
    index = {cell: s for s, cell in enumerate(cells)}
    moves = np.array(
        [
            [index.get((row + down, column + right), s) for down, right in _MOVES]
            for s, (row, column) in enumerate(cells)
        ]
    )
    P = np.zeros((len(cells), len(_MOVES), len(cells)))
    for s, a in np.ndindex(P.shape[:2]):
        for b in range(len(_MOVES)):
            P[s, a, moves[s, b]] += success if a == b else (1 - success) / (len(_MOVES) - 1)
    return Mdp(P, start=index[start], horizon=horizon)
