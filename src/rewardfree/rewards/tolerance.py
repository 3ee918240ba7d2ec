"""The building block of the task rewards: 1 inside an interval, falling off smoothly outside it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from rewardfree.errors import UserError, unknown

_Sigmoid = Callable[[np.ndarray, float], np.ndarray]

# d is the distance to the interval in margins, v the value at the margin: f(0) = 1 and f(1) = v.
SIGMOIDS: dict[str, _Sigmoid] = {
    "gaussian": lambda d, v: np.asarray(v ** (d**2)),
    "hyperbolic": lambda d, v: 1 / np.cosh(d * np.arccosh(1 / v)),
    "long_tail": lambda d, v: 1 / (1 + (1 / v - 1) * d**2),
    "reciprocal": lambda d, v: 1 / (1 + (1 / v - 1) * d),
    "cosine": lambda d, v: _inside(d * np.arccos(2 * v - 1) / np.pi, lambda x: (1 + np.cos(np.pi * x)) / 2),
    "linear": lambda d, v: np.maximum(0.0, 1 - (1 - v) * d),
    "quadratic": lambda d, v: np.maximum(0.0, 1 - (1 - v) * d**2),
    "tanh_squared": lambda d, v: 1 - np.tanh(d * np.arctanh(np.sqrt(1 - v))) ** 2,
}
_REACH_ZERO = ("cosine", "linear", "quadratic")
"""These may be 0 at the margin; the others only tend to 0."""


def tolerance(
    x: npt.ArrayLike,
    lower: float,
    upper: float,
    margin: float = 0.0,
    *,
    sigmoid: str = "gaussian",
    value_at_margin: float = 0.1,
) -> Float[np.ndarray, "*n"]:
    """1 where lower <= x <= upper, `value_at_margin` at a distance of `margin` from there.

    The function of the same name in dm_control, with its sigmoids, for finite x. Without a margin it is 0
    everywhere outside.
    """
    if not lower <= upper or not margin >= 0:
        raise UserError(f"tolerance needs lower <= upper and margin >= 0, got {lower}, {upper}, {margin}")
    if sigmoid not in SIGMOIDS:
        raise unknown("sigmoid", sigmoid, SIGMOIDS)
    x = np.asarray(x, dtype=np.float64)
    distance = np.abs(x - np.clip(x, lower, upper))
    if margin == 0:
        return np.where(distance == 0, 1.0, 0.0)
    zero = sigmoid in _REACH_ZERO
    if not (0 <= value_at_margin < 1 if zero else 0 < value_at_margin < 1):
        least = "<=" if zero else "<"
        raise UserError(f"a {sigmoid} tolerance needs 0 {least} value_at_margin < 1, got {value_at_margin}")
    return SIGMOIDS[sigmoid](distance / margin, value_at_margin)


def _inside(x: np.ndarray, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """f where |x| < 1, and 0 elsewhere."""
    return np.where(np.abs(x) < 1, f(x), 0.0)
