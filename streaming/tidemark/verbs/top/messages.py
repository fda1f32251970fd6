"""Log lines of the collector while the terminal shows screens: the newest ones, on the screen."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Final

import structlog

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
