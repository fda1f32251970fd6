"""What failed in the exporter and was left out, so that the rest goes on.

Counted each time and logged once: a view that cannot be rendered fails at each refresh.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, get_args

import structlog
from prometheus_client import Counter

# The series of a view; a refresh or a part of it; what time alone does for a receiver; an alert
# that a receiver is to take; a post; a commit of what was posted.
Part = Literal["view", "refresh", "tick", "alert", "post", "commit"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
# Once so many were logged, further ones are only counted.
MAX_NAMED: Final = 1_000

log = structlog.get_logger()


class Failures:
    """From any thread. Without a counter nothing is left out: the error is raised."""

    def __init__(self, counter: Counter | None = None) -> None:
        self._counter = counter
        self._named: set[tuple[Part, str]] = set()
        self._lock = threading.Lock()
        for part in PARTS:
            if counter is not None:
                counter.labels(part=part)

    @contextmanager
    def guard(self, part: Part, name: str) -> Iterator[None]:
        """Goes on behind the block that failed."""
        try:
            yield
        except Exception as error:
            self.add(part, name, error)

    def add(self, part: Part, name: str, error: Exception) -> None:
        """`name`: the key of a view, the name of a receiver."""
        if self._counter is None:
            raise error
        self._counter.labels(part=part).inc()
        with self._lock:
            if (part, name) in self._named or len(self._named) >= MAX_NAMED:
                return
            self._named.add((part, name))
        log.error(
            "an error was left out, and the rest goes on",
            part=part,
            name=name,
            reason=repr(error)[:200],
            cure="report it as a defect of Tidemark",
        )
