"""Arrays beyond a memory budget: they lie in a file, and the compiled program reads them through its map."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Array
from numpy.typing import DTypeLike

from rewardfree import machine
from rewardfree.errors import UserError

GIGABYTE = 10**9


def exceeds(size: int, memory: float | None) -> bool:
    """Whether so many bytes exceed the budget in gigabytes: by default half of this machine's memory."""
    if memory is not None and not memory >= 0:
        raise UserError(f"memory is a number of gigabytes, 0 or more, not {memory}")
    on_host = jax.default_backend() == "cpu"
    if memory is None:
        return on_host and size > machine.memory() / 2
    if size <= memory * GIGABYTE:
        return False
    if not on_host:  # its programs cannot read the host's files
        raise UserError(
            f"the replay takes {size / GIGABYTE:.2f} GB of the accelerator, more than --memory {memory:g}:"
            " allow it more, or set JAX_PLATFORMS=cpu"
        )
    return True


def mapped_zeros(folder: Path, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """An array in a file that has no name: it is gone with the process, however that ends."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not size:
        return np.zeros(shape, dtype)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a disk that fills up later would kill the process
            return np.memmap(file, dtype, "r+", shape=shape)
    except OSError as error:
        raise UserError(
            f"cannot keep {size / GIGABYTE:.2f} GB of replay in {folder}: {error.strerror};"
            " make room, or give more --memory"
        ) from error


def device_view(array: np.ndarray) -> Array:
    """The same memory as an array of JAX's, of which no program may be given the ownership."""
    view: Array = jax.device_put(array, may_alias=True)
    assert not array.size or view.unsafe_buffer_pointer() == array.ctypes.data
    return view
