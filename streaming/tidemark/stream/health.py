"""The stream's `/-/healthy` and `/-/ready`.

Ready: the query has ended a batch, or found nothing to do, since it last started. Healthy: it did
so lately. A query that waits for Kafka is healthy, as is one that has not started.
"""

from __future__ import annotations

import time
from typing import Final

from tidemark.kafka.attempts import Attempts
from tidemark.web.health import Health

# Spark's client gives up on Kafka after a minute or two, and the query is started again. Without
# anything for longer, a restart helps.
STUCK_SECONDS: Final = 300.0


class StreamHealth(Health):
    """`attempts`: at using Kafka, and at running the query."""

    def __init__(self, *attempts: Attempts) -> None:
        super().__init__(self._waits_for, self._stuck)
        self._attempts = attempts
        # When the query last started, ended a batch or was idle (monotonic); null while none runs.
        self._moved_at: float | None = None
        self._moved = False

    def started(self) -> None:
        self._moved_at, self._moved = time.monotonic(), False

    def moved(self) -> None:
        self._moved_at, self._moved = time.monotonic(), True

    def ended(self) -> None:
        self._moved_at, self._moved = None, False

    def has_moved(self) -> bool:
        """Whether it did anything since it last started."""
        return self._moved

    def _waits_for(self) -> list[str]:
        reasons = [f"Kafka: {each.reason}" for each in self._attempts if each.reason is not None]
        return reasons or ([] if self._moved else ["the first batch"])

    def _stuck(self) -> list[str]:
        moved_at = self._moved_at
        seconds = 0.0 if moved_at is None else time.monotonic() - moved_at
        return [f"no batch for {seconds:.0f} s"] if seconds > STUCK_SECONDS else []
