"""A program in a terminal of its own: a pty whose output pyte turns into a screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import pyte

# For a screen to appear, on a busy machine.
SECONDS = 60.0


class TerminalProgram:
    """`tidemark ARGUMENTS` on a terminal. A context manager: kills it at exit if it still runs."""

    def __init__(
        self,
        *arguments: str,
        width: int = 80,
        height: int = 24,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.screen = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self.screen)
        command = [sys.executable, "-m", "tidemark.cli", *arguments]
        inherited = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "COLUMNS"}}
        variables = {
            **inherited,
            "TERM": "xterm-256color",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            **(environment or {}),
        }
        self.started_at = time.monotonic()
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            os.execve(sys.executable, command, variables)  # noqa: S606
        self.resize(width, height)
        self.status: int | None = None

    def resize(self, width: int, height: int) -> None:
        self.screen.resize(height, width)
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    def colours(self) -> set[str]:
        """The colours of the characters on the screen."""
        rows: Any = self.screen.buffer.values()
        return {char.fg for row in rows for char in row.values()}

    def press(self, data: str) -> None:
        os.write(self._file, data.encode())

    def wait_for(self, condition: Callable[[list[str]], bool], seconds: float = SECONDS) -> float:
        """Reads until the screen meets the condition. Returns the seconds since the start."""
        deadline = time.monotonic() + seconds
        while not condition(self.lines):
            assert time.monotonic() < deadline, "\n".join(["not shown in time:", *self.lines])
            assert self._feed(0.1), "\n".join(["it ended:", *self.lines])
        return time.monotonic() - self.started_at

    def read(self, seconds: float) -> None:
        """Takes what the program writes in this time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and self._feed(left):
            pass

    def wait_for_end(self, seconds: float = SECONDS) -> int:
        """The exit status."""
        deadline = time.monotonic() + seconds
        while self._feed(0.1):
            assert time.monotonic() < deadline, "it still runs"
        _, self.status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(self.status)

    def _feed(self, seconds: float) -> bool:
        """Reads what there is. False once the program has closed its terminal."""
        if not select.select([self._file], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._file, 65536)
        except OSError:
            return False
        self._stream.feed(data)
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._file)
