"""What there is to compute with."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterable
from typing import Any


def cores() -> int:
    """Cores that this process may use."""
    return len(_cores())


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def least_used(taken: Iterable[int]) -> int:
    """A core that the fewest hold already."""
    counts = Counter(taken)
    return min(_cores(), key=lambda core: counts[core])


def keep_to(core: int) -> None:
    """Run on this core only, where the system can: XLA's threads of two processes get in each other's way."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def memory() -> int:
    """Bytes of physical memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def described() -> dict[str, Any]:
    """For the record of a result."""
    return {"system": f"{platform.system()} {platform.machine()}", "cores": cores()}
