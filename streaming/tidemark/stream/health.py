"""The stream's `/-/healthy` and `/-/ready`.

Ready: the query has ended a batch, or found nothing to do, since it last started and in the last
45 s. Healthy: it did so in the last 300 s. Waiting for Kafka is healthy, with growing pauses. Each
attempt, and each step of the start, has a time after which it hangs.
"""

from __future__ import annotations

import time
from typing import Final

from tidemark.kafka.attempts import Attempts
from tidemark.web.health import Health

# Spark's client gives up on Kafka after a minute or two, and the query is started again. Without
# anything for longer, a restart helps.
STUCK_SECONDS: Final = 300.0
# A JVM that starts, with jars to fetch, and a checkpoint to open on a slow machine.
START_SECONDS: Final = 900.0
# An attempt to use the topics, and to read the batch that was cut short.
ATTEMPT_SECONDS: Final = 600.0
# Spark reports an idle query every 10 s.
LATE_SECONDS: Final = 45.0


class StreamHealth(Health):
    """`attempts`: at using Kafka, and at running the query."""

    def __init__(self, *attempts: Attempts) -> None:
        super().__init__(self._waits_for, self._silent)
        self._attempts = attempts
        # When the query last started, ended a batch or was idle (monotonic); null while none runs.
        self._moved_at: float | None = None
        # Whether it did anything since it last started.
        self.has_moved = False

    def started(self) -> None:
        self._moved_at, self.has_moved = time.monotonic(), False

    def moved(self) -> None:
        self._moved_at, self.has_moved = time.monotonic(), True

    def ended(self) -> None:
        self._moved_at, self.has_moved = None, False

    def _waits_for(self) -> list[str]:
        reasons = [f"Kafka: {each.reason}" for each in self._attempts if each.reason is not None]
        if reasons:
            return reasons
        if not self.has_moved:
            return ["the first batch"]
        seconds = self._silent_seconds()
        return [f"a batch: none ended for {seconds:.0f} s"] if seconds > LATE_SECONDS else []

    def _silent(self) -> list[str]:
        seconds = self._silent_seconds()
        return [f"no batch ended for {seconds:.0f} s"] if seconds > STUCK_SECONDS else []

    def _silent_seconds(self) -> float:
        moved_at = self._moved_at
        return 0.0 if moved_at is None else time.monotonic() - moved_at
