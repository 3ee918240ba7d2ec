"""Files that are either complete or absent: atomic writes, and arrays read through memory maps."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy

from rewardfree.errors import UserError

Arrays = Mapping[str, np.ndarray]
T = TypeVar("T")

_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U32": "<u4", "U8": "|u1", "BOOL": "|b1"}
_WRITING = ".writing-"
_MAX_HEADER = 16 * 2**20
_MOST_UNPACKED = 2**30


@contextlib.contextmanager
def parsing(path: Path) -> Iterator[None]:
    """What goes wrong in here is the fault of a file: it does not hold what it should."""
    try:
        yield
    except UserError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise UserError(f"{path} is damaged: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def write_bytes(path: Path, content: bytes) -> None:
    """Write to a temporary name, fsync, rename: a reader sees the old file or the new one, whole."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_WRITING)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise UserError(
            f"cannot write {path}: {error.strerror}; what was written before is intact,"
            " make room or choose another folder"
        ) from error
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself
    finally:
        os.close(folder)


def clean(folder: Path) -> None:
    """Remove what writers that were killed have left behind."""
    for path in folder.rglob(f"{_WRITING}*"):
        path.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(path: Path, value: Any) -> None:
    """Write JSON, atomically."""
    write_bytes(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object. Raises UserError if the file is missing or damaged."""
    try:
        with parsing(path):
            found = json.loads(path.read_bytes())
            if not isinstance(found, dict):
                raise TypeError("not a JSON object")
            return found
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error


def array_bytes(arrays: Arrays) -> bytes:
    """The content of a safetensors file."""
    return safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in arrays.items()})


def write_arrays(path: Path, arrays: Arrays) -> tuple[int, str]:
    """Write a safetensors file; returns its size and SHA-256."""
    content = array_bytes(arrays)
    write_bytes(path, content)
    return len(content), hashlib.sha256(content).hexdigest()


def sha256(path: Path) -> str:
    """The checksum that manifests hold."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def map_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file as read-only views of its memory map: nothing is copied.

    The package's own loader copies every array, so the header (length, JSON, data) is read here, and
    each of its claims is checked against the file before it is believed.
    """
    try:
        content = np.memmap(path, dtype=np.uint8, mode="r")
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    length = int.from_bytes(content[:8].tobytes(), "little") if len(content) >= 8 else -1
    if not 2 <= length <= min(_MAX_HEADER, len(content) - 8):
        raise UserError(f"{path} is damaged: it has no safetensors header")
    with parsing(path):
        header = json.loads(content[8 : 8 + length].tobytes())
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        return {name: _view(content[8 + length :], entry) for name, entry in entries.items()}


def _view(data: np.ndarray, entry: Mapping[str, Any]) -> np.ndarray:
    dtype = np.dtype(_DTYPES[entry["dtype"]])
    shape = tuple(int(size) for size in entry["shape"])
    begin, end = (int(offset) for offset in entry["data_offsets"])
    if min((0, *shape)) < 0 or not 0 <= begin <= end <= len(data):
        raise ValueError("an array lies outside the file")
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError("an array's size does not fit its shape")
    return data[begin:end].view(dtype).reshape(shape)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file that may come from anywhere: nothing is unpickled, nothing unpacks without end."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > _MOST_UNPACKED:
            raise UserError(f"{path} unpacks to {size / 2**30:.1f} GiB: it is not read")
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    # zipfile raises NotImplementedError for a compression that it does not know
    except (ValueError, zipfile.BadZipFile, KeyError, EOFError, NotImplementedError) as error:
        raise UserError(f"{path} is not a .npz file of plain arrays: {error}") from error


def refuse_full(folder: Path) -> None:
    """Nothing that is there is written over."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not an empty folder: choose another --out")


def tree_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The array leaves of a pytree by their path."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in leaves}


def fill_tree(like: T, arrays: Arrays) -> T:
    """A pytree like the given one, with the leaves that `tree_arrays` took from it.

    Raises UserError if the arrays are not those of such a tree.
    """
    expected = tree_arrays(like)
    for name in expected.keys() | arrays.keys():
        ours, theirs = expected.get(name), arrays.get(name)
        if ours is None or theirs is None or (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            raise UserError(f"the arrays were written with other settings: they differ at '{name}'")
    leaves = [jnp.asarray(arrays[name]) for name in expected]
    filled: T = jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(like), leaves)
    return filled
