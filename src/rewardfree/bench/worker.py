"""A process that computes one cell: python -m rewardfree.bench.worker ROOT, with the job on its input."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from pathlib import Path

from rewardfree.bench.jobs import from_record
from rewardfree.durable import StoppedError
from rewardfree.errors import UserError


def main() -> int:
    """0 when the cell is there; otherwise the last line of the error output says why not."""
    job = from_record(json.loads(sys.stdin.buffer.readline()))
    threading.Thread(target=_end_with_the_grid, daemon=True).start()
    try:
        job.run(Path(sys.argv[1]))
    except StoppedError as stopped:
        print(stopped, file=sys.stderr)
        return 130
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        traceback.print_exc()
        print(" ".join(f"{type(error).__name__}: {error}".split()), file=sys.stderr)
        return 1
    return 0


def _end_with_the_grid() -> None:
    """The pipe closes when the grid's process ends, however that happens; a cell can be killed anywhere."""
    while os.read(0, 4096):  # not through sys.stdin, whose lock would be held when the interpreter ends
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
