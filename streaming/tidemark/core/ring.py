"""When did the leader's log end pass an offset? A few (time, log end offset) samples at growing ages answer it.

An offset's age at the leader turns a follower's distance in records into seconds without reading a record. The newest
sample is kept each pass; older ones thin out geometrically, so 16 samples span more than an hour.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

SIZE: Final = 16

# (Unix seconds, in whole milliseconds; log end offset), oldest first; both never decrease.
Ring = list[tuple[float, int]]


def push(ring: Ring, time: float, log_end_offset: int) -> None:
    """Adds a sample in place. A log end that fell cuts the samples above it off: they speak of records now gone."""
    time = round(time * 1000.0) / 1000.0
    while ring and ring[-1][1] > log_end_offset:
        ring.pop()
    if ring and time <= ring[-1][0]:
        return
    # Of a run of equal offsets only its first and last sample say anything.
    if len(ring) >= 2 and ring[-1][1] == log_end_offset and ring[-2][1] == log_end_offset:
        ring.pop()
    ring.append((time, log_end_offset))
    if len(ring) > SIZE:
        del ring[_least_missed(ring)]


def _least_missed(ring: Ring) -> int:
    """Index of the sample whose loss widens a gap least, measured against its age."""
    newest = ring[-1][0]
    best, lowest = 1, float("inf")
    before, at = ring[0][0], ring[1][0]
    for index in range(1, len(ring) - 1):
        after = ring[index + 1][0]
        cost = (after - before) / (newest - at + 1.0)
        if cost < lowest:
            best, lowest = index, cost
        before, at = at, after
    return best


def passed_at(ring: Ring, offset: int) -> tuple[float | None, float | None]:
    """Bounds (not before, not after) of the time at which the log end passed `offset`, i.e. record `offset` was there.

    None on the left: before the first sample. None on the right: it has not been seen to pass.
    """
    index = bisect_right(ring, offset, key=lambda sample: sample[1])
    not_before = ring[index - 1][0] if index > 0 else None
    not_after = ring[index][0] if index < len(ring) else None
    return not_before, not_after


def age_ms(ring: Ring, offset: int, now: float) -> float | None:
    """Milliseconds for which record `offset` has surely been at the leader: a lower bound. None when it was not seen."""
    _, not_after = passed_at(ring, offset)
    return None if not_after is None else max(0.0, (now - not_after) * 1000.0)


def pack(ring: Ring) -> list[int]:
    """Differences instead of values, as stored: milliseconds and records, the oldest sample first."""
    packed: list[int] = []
    last_ms = last_offset = 0
    for time, offset in ring:
        now_ms = round(time * 1000.0)
        packed += (now_ms - last_ms, offset - last_offset)
        last_ms, last_offset = now_ms, offset
    return packed


def unpack(packed: list[int]) -> Ring:
    """The inverse of `pack`."""
    ring: Ring = []
    now_ms = offset = 0
    for index in range(0, len(packed), 2):
        now_ms += packed[index]
        offset += packed[index + 1]
        ring.append((now_ms / 1000.0, offset))
    return ring
