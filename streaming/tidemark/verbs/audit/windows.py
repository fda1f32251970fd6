"""Which windows of a partition are read. Pure: the random numbers are an argument."""

from __future__ import annotations

import random
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
