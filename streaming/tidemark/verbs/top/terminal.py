"""The terminal: keys without echo, and frames of which only the changed lines are written."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Final, Self

from rich.console import Console
from rich.text import Text

from tidemark.verbs.top.keys import decode_keys

# The other screen, without a cursor; and back.
_ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[2J"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
# How long the rest of a sequence may take after its escape.
_SEQUENCE_SECONDS: Final = 0.05
_READ_BYTES: Final = 1024


class Terminal:
    """Standard input and output, both terminals. A context manager, which restores them.

    `wake` ends a wait, from any thread or signal handler.
    """

    def __init__(self) -> None:
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()
        self._console = Console(highlight=False, markup=False, soft_wrap=True)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        self._saved: list[Any] = []
        self._shown: list[str] = []
        self._size = (0, 0)
        self.is_gone = False

    def __enter__(self) -> Self:
        self._saved = termios.tcgetattr(self._in)
        self._take()
        signal.signal(signal.SIGWINCH, lambda *_: self.wake())
        signal.signal(signal.SIGTSTP, self._suspend)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        self._restore()

    def wake(self) -> None:
        # A full pipe wakes as well.
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"!")

    def size(self) -> tuple[int, int]:
        """(columns, lines)."""
        try:
            return tuple(os.get_terminal_size(self._out))  # type: ignore[return-value]
        except OSError:
            return (80, 24)

    def wait_for_keys(self, seconds: float) -> list[str]:
        """The keys pressed; returns early after `wake`."""
        ready, _, _ = select.select([self._in, self._wake_read], [], [], seconds)
        if self._wake_read in ready:
            with contextlib.suppress(OSError):
                os.read(self._wake_read, _READ_BYTES)
        return decode_keys(self._read()) if self._in in ready else []

    def draw(self, lines: Sequence[Text]) -> None:
        """Writes the lines that differ from those on the screen."""
        size = self.size()
        if size != self._size:
            self._size, self._shown = size, []
        rendered = self._render(lines)
        out = "" if self._shown else "\x1b[2J"
        before = [*self._shown, *[None] * (len(rendered) - len(self._shown))]
        for number, (old, new) in enumerate(zip(before, rendered, strict=False), 1):
            if old != new:
                out += f"\x1b[{number};1H{new}\x1b[K"
        self._shown = rendered
        self._write(out)

    def _render(self, lines: Sequence[Text]) -> list[str]:
        with self._console.capture() as capture:
            for line in lines:
                self._console.print(line, no_wrap=True, crop=False, overflow="ignore")
        return capture.get().split("\n")[: len(lines)]

    def _read(self) -> bytes:
        try:
            data = os.read(self._in, _READ_BYTES)
            if not data:
                self.is_gone = True
            while data.endswith((b"\x1b", b"\x1b[", b"\x1bO")):
                if not select.select([self._in], [], [], _SEQUENCE_SECONDS)[0]:
                    break
                data += os.read(self._in, _READ_BYTES)
        except OSError:
            self.is_gone = True
            return b""
        return data

    def _write(self, text: str) -> None:
        try:
            if text:
                sys.stdout.write(text)
                sys.stdout.flush()
        except OSError:
            self.is_gone = True

    def _take(self) -> None:
        # Signals of Ctrl-C and Ctrl-Z stay.
        tty.setcbreak(self._in)
        self._shown = []
        self._write(_ENTER)

    def _restore(self) -> None:
        self._write(_LEAVE)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._saved)

    def _suspend(self, _signal: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: gives the terminal back until the process continues."""
        self._restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()
        self.wake()
