"""Waits for Kafka: tries again with growing pauses, and says once what is waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

import structlog

from tidemark.core.errors import ClusterError
from tidemark.kafka.topics import TopicMismatchError

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 5.0
# Another reason than the last one is logged at most so often.
LOG_SECONDS: Final = 60.0

T = TypeVar("T")
log = structlog.get_logger()


class Attempts:
    """Attempts at one thing. `reason` is why it waits, from any thread; None while it does not."""

    def __init__(self, purpose: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.reason: str | None = None
        self._purpose = purpose
        self._clock = clock
        self._failures = 0
        self._logged = ("", 0.0)

    def failed(self, error: Exception) -> float:
        """Returns how many seconds to pause now."""
        self.reason, now = str(error), self._clock()
        text, at = self._logged
        if not self._failures or (text != self.reason and now - at >= LOG_SECONDS):
            self._logged = self.reason, now
            log.warning("waiting for Kafka", purpose=self._purpose, reason=self.reason)
        pause: float = FIRST_PAUSE_SECONDS * 2 ** min(self._failures, 10)
        self._failures += 1
        return min(LONGEST_PAUSE_SECONDS, pause)

    def succeeded(self) -> None:
        if self._failures:
            log.info("Kafka can be used", purpose=self._purpose, failed=self._failures)
        self.reason, self._failures = None, 0

    def run(self, action: Callable[[], T], stopped: threading.Event) -> T | None:
        """What `action` returns once it does; None where `stopped` is set before.

        A ClusterError is waited out. Raises TopicMismatchError, ConfigError and others at once:
        waiting does not mend them.
        """
        while not stopped.is_set():
            try:
                result = action()
            except TopicMismatchError:
                raise
            except ClusterError as error:
                stopped.wait(self.failed(error))
            else:
                self.succeeded()
                return result
        return None
