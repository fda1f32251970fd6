"""Child processes that never outlive their parent: each leads its own process group, logs to a file, and is guarded.

The guard is one small shell. Every child writes its pid to the guard's pipe before it becomes its program; when this
process is gone, however it went (Ctrl-C, SIGKILL), the pipe closes and the guard kills what is left. Linux' parent-death
signal would not do: it is bound to the starting *thread* and does not reach grandchildren (a Spark driver's JVM).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tidemark.core.errors import TidemarkError

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
# The child announces itself to the guard (stdin), lets go of the guard's pipe and then tells us (stdout): no moment exists
# in which it runs unguarded, and none in which a paused child holds the pipe open.
_ANNOUNCE: Final = 'echo "+ $$" >&0; exec </dev/null; echo; exec "$@" >>"$0" 2>&1'


class _Guard:
    """The guard of this process, started with its first child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def pipe(self) -> int:
        """The write end of its pipe. It does not survive a fork's exec, so only this process holds the guard back."""
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


class Child:
    """One running program and its descendants (its process group)."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        """Starts `command`; its output is appended to `log`. A program that does not exist ends with 127."""
        self.name = name
        self.log = log
        pipe = _guard.pipe()
        log.parent.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _ANNOUNCE, str(log.absolute()), *map(str, command)],
            stdin=pipe, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, env=environment, cwd=directory,
        )  # fmt: skip
        assert self._process.stdout is not None
        with self._process.stdout as announced:
            announced.read(1)

    @property
    def pid(self) -> int:
        return self._process.pid

    def returncode(self) -> int | None:
        """Null while it runs; negative: the signal that ended it."""
        return self._process.poll()

    def running(self) -> bool:
        return self.returncode() is None

    def stop(self, grace_seconds: float = 10.0) -> bool:
        """SIGTERM to the program, then SIGKILL to all that is left of its group. True when it ended by itself in time."""
        in_time = True
        if self.running():
            self.resume()
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
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
        """SIGSTOP: it holds its connections open and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def log_tail(self, lines: int = 15) -> str:
        """The last lines of its log (at most 16 KiB)."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 16_384))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])
        return ""

    def wait_port(self, port: int, seconds: float, host: str = "127.0.0.1") -> None:
        """Returns when the port accepts connections. Raises TidemarkError with the end of the log when it never does."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self.running():
                raise TidemarkError(
                    f"{self.name} ended with {self.returncode()} at its start; the end of {self.log}:\n{self.log_tail()}"
                )
            if port_open(port, host):
                return
            time.sleep(0.05)
        raise TidemarkError(
            f"{self.name} did not open port {port} within {seconds:.0f} s; the end of {self.log}:\n{self.log_tail()}"
        )


def port_open(port: int, host: str = "127.0.0.1") -> bool:
    try:
        socket.create_connection((host, port), timeout=0.5).close()
    except OSError:
        return False
    return True
