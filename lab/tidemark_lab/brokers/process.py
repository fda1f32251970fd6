"""Child processes that never outlive their parent: own process group, log file, guard.

The guard is one small shell. Every child writes its pid to the guard's pipe before it becomes its
program. When this process is gone, by Ctrl-C or SIGKILL, the pipe closes and the guard kills what
is left. Linux's parent-death signal does not do: it is bound to the starting *thread* and does not
reach grandchildren (a Spark driver's JVM).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.wait import comes_true

# The longest that a pause waits for all threads to stand.
PAUSE_SECONDS: Final = 5.0
_GUARD: Final = """\
pids=
while read -r operation pid; do
  case $operation in
    +) pids="$pids $pid" ;;
    -) kept=; for p in $pids; do [ "$p" = "$pid" ] || kept="$kept $p"; done; pids=$kept ;;
  esac
done
for p in $pids; do kill -s KILL -- "-$p" 2>/dev/null; done
"""
# The child announces itself to the guard (stdin), closes the guard's pipe and then signals us
# (stdout). It never runs unguarded, and a paused child never holds the pipe open.
_ANNOUNCE: Final = 'echo "+ $$" >&0; exec </dev/null; echo; exec "$@" >>"$0" 2>&1'


class _Guard:
    """The guard of this process, started with its first child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def pipe(self) -> int:
        """The write end of its pipe, held by this process alone: it is closed on exec."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    ["/bin/sh", "-c", _GUARD],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            assert self._process.stdin is not None
            return self._process.stdin.fileno()


_guard = _Guard()


def check_running(children: Iterable[ChildProcess]) -> None:
    """Raises ClusterError with the end of its log where one has ended."""
    for child in children:
        failure = child.failure()
        if failure is not None:
            raise ClusterError(failure)


class ChildProcess:
    """One running program and its descendants (its process group)."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        """Starts `command` and appends its output to `log`, which exists from then on.

        A program that does not exist exits with 127.
        """
        self.name = name
        self.log = log
        pipe = _guard.pipe()
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _ANNOUNCE, str(log.absolute()), *map(str, command)],
            stdin=pipe,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
            cwd=directory,
        )
        assert self._process.stdout is not None
        with self._process.stdout as announcement:
            announcement.read(1)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        """None while it runs. Negative: the signal that ended it."""
        return self._process.poll()

    def is_running(self) -> bool:
        return self.exit_code() is None

    def terminate(self) -> None:
        """SIGTERM to the program, without waiting for its end."""
        if self.is_running():
            self.resume()
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def stop(self, grace_seconds: float = 10.0) -> bool:
        """SIGTERM to the program, then SIGKILL to the rest of its group.

        True when the program ended in time.
        """
        in_time = True
        if self.is_running():
            self.terminate()
            try:
                self._process.wait(grace_seconds)
            except subprocess.TimeoutExpired:
                in_time = False
        self.kill()
        return in_time

    def kill(self) -> None:
        """SIGKILL to the whole group; returns when the program is gone."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(OSError):
            os.write(_guard.pipe(), f"- {self.pid}\n".encode())

    def pause(self) -> None:
        """SIGSTOP: connections stay open, nothing is answered. Returns when every thread stands.

        On a busy machine, threads run until the one that takes the signal gets its turn.
        """
        self._signal(signal.SIGSTOP)
        comes_true(lambda: not self._has_running_threads(), PAUSE_SECONDS)

    def _has_running_threads(self) -> bool:
        """False where there is no /proc, and for a program that has ended."""
        for status in Path(f"/proc/{self.pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):
                # The name, in parentheses, may hold anything.
                state = status.read_text(errors="replace").rpartition(")")[2].split()[0]
                if state not in {"T", "t", "Z", "X"}:
                    return True
        return False

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def log_tail(self, lines: int = 15) -> str:
        """The last lines of its log, at most 16 KiB."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 16_384))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])
        return ""

    def failure(self) -> str | None:
        """Its exit code and the end of its log; None while it runs."""
        code = self.exit_code()
        if code is None:
            return None
        return f"{self.name} exited with {code}; the end of {self.log}:\n{self.log_tail()}"
