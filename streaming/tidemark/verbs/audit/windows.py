"""Which windows of a partition are read, and at what pace. Chance and clock are arguments."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

# The newest offsets of a partition, which a sample always includes.
NEWEST_OFFSETS: Final = 500
WINDOW_BYTES: Final = 1024 * 1024
SAMPLE_BYTES: Final = 256 * 1024
# As many answers as one window may take: an answer ends with a segment.
NEWEST_ANSWERS: Final = 16


class Window(NamedTuple):
    """Offsets from `start` on, up to `end`, in at most `answers` answers of `size` bytes."""

    start: int
    end: int
    size: int
    # None: until `end`.
    answers: int | None


def whole(start: int, end: int) -> list[Window]:
    return [Window(start, end, WINDOW_BYTES, None)] if start < end else []


def sample(start: int, end: int, count: int, chance: random.Random) -> list[Window]:
    """`count` windows at random offsets and the newest one, ascending."""
    if start >= end:
        return []
    newest = max(start, end - NEWEST_OFFSETS)
    offsets = sorted({chance.randrange(start, end) for _ in range(count)})
    return [
        *(Window(offset, end, SAMPLE_BYTES, 1) for offset in offsets if offset < newest),
        Window(newest, end, SAMPLE_BYTES, NEWEST_ANSWERS),
    ]


class Pace:
    """At most so many bytes a second over all replicas; 0: no limit.

    `clock` and `sleep` are those of `time`.
    """

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
