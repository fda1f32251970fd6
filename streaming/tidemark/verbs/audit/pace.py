"""The pace of an audit: at most so many bytes a second over all replicas."""

from __future__ import annotations

from collections.abc import Callable


class Pace:
    """`clock` and `sleep` are those of `time`. A limit of 0 is none."""

    def __init__(
        self,
        bytes_per_second: int,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self.bytes = 0
        self._limit, self._clock, self._sleep = bytes_per_second, clock, sleep
        self._free_at = clock()

    def count(self, size: int) -> None:
        """Counts bytes that were read, and waits until the next may be."""
        self.bytes += size
        if self._limit:
            now = self._clock()
            self._free_at = max(self._free_at, now) + size / self._limit
            self._sleep(self._free_at - now)

    def pause(self, seconds: float) -> None:
        self._sleep(seconds)
