"""Processes that are started again whenever they end, and their ids, for tests that end them."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.processes import descendants, kill

# How often tests of kills end each kind of process, and what chooses the moments.
KILLS = int(os.environ.get("KILLS", "5"))
SEED = int(os.environ.get("KILL_SEED") or random.randrange(10_000))
DAEMON = "tidemark.stream.daemon"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class Supervised:
    """Starts a process again whenever it ends, as systemd does."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._start, self._stopped = start, threading.Event()
        self.process, self.starts = start(), 1
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(0.1):
            if self.process.poll() is not None:
                self.process = self._start()
                self.starts += 1

    def end(self) -> None:
        self._stopped.set()
        self._thread.join()
        below = descendants(self.process.pid)
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        kill([self.process.pid, *below])


@contextmanager
def supervised(*starts: Callable[[], subprocess.Popen[bytes]]) -> Iterator[list[Supervised]]:
    running: list[Supervised] = []
    try:
        running.extend(Supervised(start) for start in starts)
        yield running
    finally:
        for each in running:
            each.end()


def kill_one(pids: Sequence[int], choice: random.Random) -> int | None:
    """SIGKILL to one of them; its id, None where there is none."""
    if not pids:
        return None
    pid = choice.choice(pids)
    kill([pid])
    return pid


def command(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    return []


def jvms(pid: int) -> list[int]:
    """The Java processes below one."""
    return [each for each in descendants(pid) if "".join(command(each)[:1]).endswith("java")]


def python_workers(pid: int) -> list[int]:
    """The daemon of Python workers below a process, and the workers."""
    return [each for each in descendants(pid) if DAEMON in command(each)]


def executors(pid: int) -> list[int]:
    return [each for each in descendants(pid) if EXECUTOR in command(each)]
