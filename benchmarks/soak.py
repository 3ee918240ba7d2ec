"""Memory and checkpoints over a long exploration: python -m benchmarks.soak [--out results/soak.json].

Resident memory must not grow with frames beyond the data, and checkpoints must cost next to nothing. The
kernel's own count is read: anonymous pages are what the process holds, file pages are the system's cache
of mapped shards, which it takes back when it needs them.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import rewardfree as rf
from rewardfree.data.dataset import DatasetWriter
from rewardfree.durable import Checkpoints
from rewardfree.sizes import resize


def resident() -> dict[str, float]:
    """MB of anonymous and of file pages."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    kilobytes = dict(re.findall(r"^(RssAnon|RssFile):\s+(\d+)", status, re.MULTILINE))
    return {name: round(int(size) / 1024, 1) for name, size in kilobytes.items()}


class Watch:
    """Calls through to a method and adds up its time."""

    def __init__(self, owner: type, method: str, after: Callable[[Any], None] = lambda self: None) -> None:
        self.seconds, self.calls = 0.0, 0
        original = getattr(owner, method)

        def watched(instance: Any, *args: Any) -> Any:
            started = time.perf_counter()
            result = original(instance, *args)
            self.seconds += time.perf_counter() - started
            self.calls += 1
            after(instance)
            return result

        setattr(owner, method, watched)


def main() -> None:
    """Explore, looking at the process after every shard."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--domain", default="walker")
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--memory", type=float, default=None)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    seen: list[dict[str, float]] = []

    def look(writer: DatasetWriter) -> None:
        done = sum(writer.lengths)
        if not seen or done > seen[-1]["frames"]:
            seen.append({"frames": done, **resident()})
            print(json.dumps(seen[-1]), flush=True)

    shards, checkpoints = Watch(DatasetWriter, "flush", look), Watch(Checkpoints, "write")
    budget = {} if args.memory is None else {"memory": args.memory}
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        explorer = resize(rf.GfaRfe(), "compact")
        data = rf.explore(args.domain, explorer, frames=args.frames, out=Path(folder) / "run", **budget)
        seconds = time.perf_counter() - started
        frames, size = data.frames, sum(shard["bytes"] for shard in data.manifest["shards"])
    found = {
        "command": "python -m benchmarks.soak",
        "date": date.today().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "domain": args.domain,
        "frames": frames,
        "memory": args.memory,
        "seconds": round(seconds, 1),
        "checkpoints": {"count": checkpoints.calls, "share": round(checkpoints.seconds / seconds, 5)},
        "shards": {"count": shards.calls, "share": round(shards.seconds / seconds, 5)},
        "data_megabytes": round(size / 2**20, 1),
        "resident": seen,
    }
    print(json.dumps({name: value for name, value in found.items() if name != "resident"}, indent=2))
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
