"""When did the leader's log end offset pass an offset? A few (time, offset) samples answer it.

The age of an offset at the leader turns a follower's lag in records into seconds without reading
a record. Every pass keeps its sample as the newest; older samples thin out geometrically, so 16
samples span more than an hour.
"""

from __future__ import annotations

from typing import Final

SIZE: Final = 16

# Flat, newest sample first, as it is stored: Unix milliseconds and log end offset of the newest
# sample; then, for each older sample, the differences in milliseconds and records to the one
# before it. Neither difference is negative.
OffsetHistory = list[int]
NEWEST_MS: Final = 0
NEWEST_OFFSET: Final = 1
_SECOND_MS: Final = 2
_SECOND_OFFSET: Final = 3
_SECOND: Final = 2
_THIRD: Final = 4


def add_sample(history: OffsetHistory, time: float, log_end_offset: int) -> OffsetHistory:
    """The history with a sample added, `time` in Unix seconds.

    A log end offset that fell drops the samples above it: their records are gone.
    """
    now_ms = round(time * 1000.0)
    while history and history[NEWEST_OFFSET] > log_end_offset:
        history = _without_newest(history)
    if not history:
        return [now_ms, log_end_offset]
    later_ms = now_ms - history[NEWEST_MS]
    more = log_end_offset - history[NEWEST_OFFSET]
    if later_ms <= 0:
        return history
    if more == 0 and len(history) > _SECOND and history[_SECOND_OFFSET] == 0:
        # A run of equal offsets keeps its first and its last sample.
        return [now_ms, log_end_offset, later_ms + history[_SECOND_MS], 0, *history[_THIRD:]]
    longer = [now_ms, log_end_offset, later_ms, more, *history[_SECOND:]]
    if len(longer) > 2 * SIZE:
        _thin(longer)
    return longer


def _without_newest(history: OffsetHistory) -> OffsetHistory:
    if len(history) <= _SECOND:
        return []
    newest_ms, newest_offset, earlier_ms, fewer, *older = history
    return [newest_ms - earlier_ms, newest_offset - fewer, *older]


def _thin(history: OffsetHistory) -> None:
    """Drops the sample that leaves the smallest gap for its age; never the first or the last."""
    best, lowest = _SECOND, float("inf")
    # Starting at one second keeps the youngest samples at least a pass apart.
    age_ms = 1000
    step = history[_SECOND_MS]
    for index in range(_SECOND, len(history) - 2, 2):
        age_ms += step
        following = history[index + 2]
        cost = (step + following) / age_ms
        if cost <= lowest:
            best, lowest = index, cost
        step = following
    history[best + 2] += history[best]
    history[best + 3] += history[best + 1]
    del history[best : best + 2]


def samples(history: OffsetHistory) -> list[tuple[int, int]]:
    """(Unix milliseconds, log end offset), newest first."""
    result = []
    now_ms = offset = 0
    sign = 1
    for index in range(0, len(history), 2):
        now_ms += sign * history[index]
        offset += sign * history[index + 1]
        result.append((now_ms, offset))
        sign = -1
    return result


def passed_at(history: OffsetHistory, offset: int) -> tuple[float | None, float | None]:
    """(not before, not after), in Unix seconds: when the log end offset passed `offset`.

    The left bound is None when that was before the first sample, the right one when record
    `offset` was not there at the newest sample.
    """
    not_after = None
    for time_ms, log_end_offset in samples(history):
        if log_end_offset <= offset:
            return time_ms / 1000.0, not_after
        not_after = time_ms / 1000.0
    return None, not_after


def age_ms(history: OffsetHistory, offset: int, now: float) -> float | None:
    """How long record `offset` has been at the leader: a lower bound; None when it was not seen."""
    if not history or history[NEWEST_OFFSET] <= offset:
        return None
    at_ms, log_end = history[NEWEST_MS], history[NEWEST_OFFSET]
    for index in range(_SECOND, len(history), 2):
        log_end -= history[index + 1]
        if log_end <= offset:
            break
        at_ms -= history[index]
    return max(0.0, (now - at_ms / 1000.0) * 1000.0)
