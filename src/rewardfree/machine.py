"""What there is to compute with."""

from __future__ import annotations

import os
import platform
from typing import Any


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> int:
    """Bytes of physical memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def described() -> dict[str, Any]:
    """For the record of a result."""
    return {"system": f"{platform.system()} {platform.machine()}", "cores": cores()}
