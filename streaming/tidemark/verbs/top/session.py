"""A terminal session: keys change the state, passes and seconds redraw the screen.

Log lines of the collector show on the screen meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Final

import structlog

from tidemark.verbs.top.frame import frame_lines, viewport
from tidemark.verbs.top.live import LiveCluster
from tidemark.verbs.top.recorded import RecordedCluster
from tidemark.verbs.top.terminal import Terminal
from tidemark.verbs.top.ui_state import UiState, press

MAX_MESSAGES: Final = 100
# How long a message replaces the line of keys.
SHOWN_SECONDS: Final = 10.0


class Messages:
    """In place of standard error, for structlog."""

    def __init__(self) -> None:
        self._newest: deque[tuple[float, str]] = deque(maxlen=MAX_MESSAGES)

    def write(self, text: str) -> int:
        for line in text.splitlines():
            if line.strip():
                self._newest.append((time.monotonic(), line.strip()))
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def current(self) -> str:
        """The newest message while it is new; else nothing."""
        if not self._newest:
            return ""
        at, line = self._newest[-1]
        return line if time.monotonic() - at <= SHOWN_SECONDS else ""

    def take_over_logs(self) -> None:
        """Configures structlog for the whole process."""
        stream: Any = self
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.KeyValueRenderer(key_order=["level", "event"]),
            ],
            logger_factory=structlog.PrintLoggerFactory(stream),
        )


# The clock of the header moves at least this often.
REDRAW_SECONDS: Final = 1.0
# In a recording, passes on (or back) by key.
STEPS: Final = {",": -1, ".": 1, "<": -10, ">": 10}
# What is watched.
Source = LiveCluster | RecordedCluster


def run_session(
    terminal: Terminal, source: Source, messages: Messages, stop: threading.Event
) -> None:
    """Returns when the user quits, at `stop`, or when the source or the terminal is gone."""
    state = UiState()
    while not (state.has_quit or stop.is_set() or terminal.is_gone):
        shown = state.paused or source.snapshot
        width, height = terminal.size()
        message = messages.current() or ("" if shown else source.waiting)
        terminal.draw(frame_lines(shown, state, time.time(), width, height, message))
        if not source.is_running:
            return
        for key in terminal.wait_for_keys(REDRAW_SECONDS):
            if isinstance(source, RecordedCluster) and key in STEPS and state.typed is None:
                source.step(STEPS[key])
                continue
            shown = state.paused or source.snapshot
            state = press(state, key, shown, viewport(shown, state, width, height))
