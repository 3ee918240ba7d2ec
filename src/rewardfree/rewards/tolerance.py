"""The building block of the task rewards: 1 inside an interval, falling off smoothly outside it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from rewardfree.errors import UserError, unknown


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

    The function of the same name in dm_control, for finite x. With v = value_at_margin and d the distance
    to the interval in margins, `gaussian` is v^(d^2) and `linear` is max(0, 1 - (1 - v) d).
    Without a margin it is 0 everywhere outside.
    """
    if lower > upper or margin < 0:
        raise UserError(f"tolerance needs lower <= upper and margin >= 0, got {lower}, {upper}, {margin}")
    x = np.asarray(x, dtype=np.float64)
    distance = np.abs(x - np.clip(x, lower, upper))
    if margin == 0:
        return np.where(distance == 0, 1.0, 0.0)
    d = distance / margin
    if sigmoid == "gaussian":
        if not 0 < value_at_margin < 1:
            raise UserError(f"a gaussian tolerance needs 0 < value_at_margin < 1, got {value_at_margin}")
        return np.asarray(value_at_margin ** (d**2))
    if sigmoid == "linear":
        if not 0 <= value_at_margin < 1:
            raise UserError(f"a linear tolerance needs 0 <= value_at_margin < 1, got {value_at_margin}")
        return np.asarray(np.maximum(0.0, 1 - (1 - value_at_margin) * d))
    raise unknown("sigmoid", sigmoid, ("gaussian", "linear"))
