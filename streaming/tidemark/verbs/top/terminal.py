"""The terminal: keys without echo, from the bytes that it sends, and frames on its other screen."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Final, Self

from rich.live import Live
from rich.text import Text

_SEQUENCES: Final = {
    "[A": "up",
    "OA": "up",
    "[B": "down",
    "OB": "down",
    "[C": "right",
    "OC": "right",
    "[D": "left",
    "OD": "left",
    "[5~": "page up",
    "[6~": "page down",
    "[H": "home",
    "OH": "home",
    "[1~": "home",
    "[F": "end",
    "OF": "end",
    "[4~": "end",
}
_CONTROLS: Final = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\b": "backspace",
    "\t": "tab",
}

# After an escape, `[` or `O`, parameters and a final character; any other character by itself.
_KEY: Final = re.compile(r"\x1b([\[O][^@-~]*[@-~]?)?|(.)", re.DOTALL)

# How long the rest of a sequence may take after its escape.
_SEQUENCE_SECONDS: Final = 0.05
_READ_BYTES: Final = 1024


def decode_keys(data: bytes) -> list[str]:
    """The keys in one read: each a printable character, or a name such as `page up`.

    An unknown sequence is no key, and neither is a byte that is no UTF-8.
    """
    keys = []
    for sequence, character in _KEY.findall(data.decode("utf-8", "ignore")):
        name = _SEQUENCES.get(sequence) if sequence else "escape"
        if character:
            name = _CONTROLS.get(character, character if character.isprintable() else None)
        if name is not None:
            keys.append(name)
    return keys


class Terminal:
    """Standard input and output, both terminals. A context manager, which restores them.

    `wake` ends a wait, from any thread or signal handler.
    """

    def __init__(self) -> None:
        self._in = sys.stdin.fileno()
        self._live = Live(screen=True, auto_refresh=False)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        self._saved: list[Any] = []
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
        return self._live.console.size

    def wait_for_keys(self, seconds: float) -> list[str]:
        """The keys pressed; returns early after `wake`."""
        ready, _, _ = select.select([self._in, self._wake_read], [], [], seconds)
        if self._wake_read in ready:
            with contextlib.suppress(OSError):
                os.read(self._wake_read, _READ_BYTES)
        return decode_keys(self._read()) if self._in in ready else []

    def draw(self, lines: Sequence[Text]) -> None:
        try:
            self._live.update(Text("\n").join(lines), refresh=True)
        except OSError:
            self.is_gone = True

    def _read(self) -> bytes:
        try:
            data = os.read(self._in, 1)
            if not data:
                self.is_gone = True
            # Byte by byte: what follows the key that quits is for the shell.
            while data and len(data) < _READ_BYTES and not data.endswith(b"q"):
                in_sequence = data.endswith((b"\x1b", b"\x1b[", b"\x1bO"))
                wait = _SEQUENCE_SECONDS if in_sequence else 0.0
                if not select.select([self._in], [], [], wait)[0]:
                    break
                data += os.read(self._in, 1)
        except OSError:
            self.is_gone = True
            return b""
        return data

    def _take(self) -> None:
        # Signals of Ctrl-C and Ctrl-Z stay.
        tty.setcbreak(self._in)
        self._live.start()

    def _restore(self) -> None:
        with contextlib.suppress(OSError):
            self._live.stop()
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._saved)

    def _suspend(self, _signal: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: gives the terminal back until the process continues."""
        self._restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()
        self.wake()
