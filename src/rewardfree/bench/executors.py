"""Where cells are computed: in processes of this machine, or as tasks of a Ray cluster."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Protocol, Self

from rewardfree.bench.jobs import Job, from_record
from rewardfree.durable import InUseError
from rewardfree.errors import UserError

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "PJRT_NPROC": "1",  # XLA's own pool of threads, which the flag leaves as large as the machine
}
"""Several runs side by side are fastest with one thread each, and have the same bits under any executor."""
SHARED_GPU = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""The first cell on a GPU would take most of its memory, whatever it needs."""
PATIENCE = 120.0
"""Seconds to wait for workers that are about to end."""
RETRIES = 3
"""Times that a cell is begun again when its worker dies; it goes on from its last checkpoint."""


class Executor(Protocol):
    """Computes cells, several at once."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    @property
    def free(self) -> bool:
        """Whether another cell may be started."""

    def start(self, job: Job) -> None:
        """Begin a cell."""

    def finished(self) -> list[tuple[Job, str | None]]:
        """Cells that have ended since it was last asked, each with its error. Waits a little for one."""

    def stop(self) -> None:
        """Have every cell stop where it can be resumed, and wait for that."""


def one_thread() -> dict[str, str]:
    """The surroundings of a process that shares this machine with others."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {ONE_THREAD['XLA_FLAGS']}".strip()
    return {**os.environ, **ONE_THREAD, "XLA_FLAGS": flags}


class Local:
    """One process for each cell, with one thread, and as many as there are cores."""

    def __init__(self, root: Path, workers: int) -> None:
        self._root, self._workers = root, workers
        self._running: list[tuple[Job, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for _, process in self._running:
            process.kill()
            process.wait()
        self.finished()

    @property
    def free(self) -> bool:
        return len(self._running) < self._workers

    def start(self, job: Job) -> None:
        log = self._root / "logs" / f"{job.key}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "rewardfree.bench.worker", str(self._root)],
                stdin=subprocess.PIPE,
                stderr=errors,
                env=one_thread(),
                start_new_session=True,  # Ctrl-C is passed on by `stop`, once
            )
        assert process.stdin is not None
        process.stdin.write(json.dumps(job.record).encode() + b"\n")
        process.stdin.flush()  # and left open: a worker whose pipe closes has lost its grid, and ends
        self._running.append((job, process))

    def finished(self) -> list[tuple[Job, str | None]]:
        if self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._running[0][1].wait(timeout=0.5)
        ended = [(job, process) for job, process in self._running if process.poll() is not None]
        self._running = [pair for pair in self._running if pair not in ended]
        for _, process in ended:
            assert process.stdin is not None
            process.stdin.close()
        return [(job, self._error(job, process.returncode)) for job, process in ended]

    def stop(self) -> None:
        for _, process in self._running:
            process.send_signal(signal.SIGINT)
        for _, process in self._running:
            process.wait()
        self.finished()

    def _error(self, job: Job, code: int) -> str | None:
        if code == 0:
            return None
        if code < 0:
            return f"its process was killed by signal {-code}"
        lines = (self._root / "logs" / f"{job.key}.txt").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"its process ended with {code}"


class Ray:
    """The same cells as Ray tasks: a core each, or a share of a GPU. The folder must be shared storage."""

    def __init__(self, root: Path, address: str, gpus: float) -> None:
        try:
            import ray
        except ImportError as error:
            raise UserError("ray is not installed: pip install 'rewardfree[ray]'") from error
        self._ray, self._root, self._address = ray, root.absolute(), address
        self._gpus = gpus
        self._running: dict[Any, Job] = {}

    def __enter__(self) -> Self:
        surroundings = SHARED_GPU if self._gpus else ONE_THREAD
        self._open = contextlib.ExitStack()
        try:
            _refuse_silence(self._address)
            # Ray tells of nodes that died on the standard output, which is for results
            self._open.enter_context(contextlib.redirect_stdout(sys.stderr))
            self._ray.init(
                address=self._address,
                log_to_driver=False,
                logging_level=logging.WARNING,
                runtime_env={"env_vars": surroundings},
            )
        except (OSError, ValueError) as error:
            self._open.close()
            raise UserError(
                f"there is no Ray cluster at '{self._address}': start one with `ray start --head`"
            ) from error
        self._task = self._ray.remote(num_cpus=1, num_gpus=self._gpus, max_retries=RETRIES)(compute)
        return self

    def __exit__(self, *error: object) -> None:
        for task in self._running:
            self._ray.cancel(task, force=True)
        self._ray.shutdown()
        self._open.close()

    @property
    def free(self) -> bool:
        return True  # Ray holds back what there is no room for

    def start(self, job: Job) -> None:
        self._running[self._task.remote(str(self._root), job.record)] = job

    def finished(self) -> list[tuple[Job, str | None]]:
        ended, _ = self._ray.wait(list(self._running), timeout=0.5) if self._running else ([], [])
        found: list[tuple[Job, str | None]] = []
        for task in ended:
            try:
                error = self._ray.get(task)
            except self._ray.exceptions.RayError as lost:
                error = str(lost).strip().splitlines()[-1]
            found.append((self._running.pop(task), error))
        return found

    def stop(self) -> None:
        for task in self._running:
            self._ray.cancel(task)  # as Ctrl-C in it, once
        self._ray.wait(list(self._running), num_returns=len(self._running), timeout=PATIENCE)


def _refuse_silence(address: str) -> None:
    """Raises OSError if nobody listens at HOST:PORT: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:
        socket.create_connection((host, int(port)), timeout=10).close()


def compute(root: str, what: dict[str, Any]) -> str | None:
    """One cell, in a worker; returns what went wrong, as one line."""
    job, deadline = from_record(what), time.monotonic() + PATIENCE
    while True:
        try:
            job.run(Path(root))
            return None
        except InUseError as error:  # by a worker whose node is being given up: it will not be for long
            if time.monotonic() > deadline:
                return str(error)
            time.sleep(1)
        except UserError as error:
            return str(error)
        except Exception as error:  # a cell that fails must not stop the others
            return " ".join(f"{type(error).__name__}: {error}".split())
