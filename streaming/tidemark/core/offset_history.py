"""When did the leader's log end pass an offset? A few (time, log end offset) samples at growing ages answer it.

An offset's age at the leader turns a follower's distance in records into seconds without reading a record. The newest
sample is kept each pass; older ones thin out geometrically, so 16 samples span more than an hour.
"""

from __future__ import annotations

from typing import Final

SIZE: Final = 16

# Newest first and flat, as it is stored: Unix milliseconds and log end offset of the newest sample, then for each older
# one by how many milliseconds and records it lies below the one before it. Neither ever grows with age.
Ring = list[int]


def push(ring: Ring, time: float, log_end_offset: int) -> Ring:
    """The ring with a sample added, `time` in Unix seconds. A log end that fell cuts off the samples above it."""
    now_ms = round(time * 1000.0)
    while ring and ring[1] > log_end_offset:
        # They speak of records now gone.
        ring = [ring[0] - ring[2], ring[1] - ring[3], *ring[4:]] if len(ring) > 2 else []
    if not ring:
        return [now_ms, log_end_offset]
    later_ms, more = now_ms - ring[0], log_end_offset - ring[1]
    if later_ms <= 0:
        return ring
    # Of a run of equal offsets only its first and last sample say anything.
    if more == 0 and len(ring) > 2 and ring[3] == 0:
        return [now_ms, log_end_offset, later_ms + ring[2], 0, *ring[4:]]
    longer = [now_ms, log_end_offset, later_ms, more, *ring[2:]]
    if len(longer) > 2 * SIZE:
        _thin(longer)
    return longer


def _thin(ring: Ring) -> None:
    """Takes out the sample whose loss widens a gap least, measured against its age; neither the newest nor the oldest."""
    best, lowest = 2, float("inf")
    # One second lets the youngest samples be no better kept than a pass apart.
    age_ms = 1000
    step = ring[2]
    for index in range(2, len(ring) - 2, 2):
        age_ms += step
        following = ring[index + 2]
        cost = (step + following) / age_ms
        if cost <= lowest:
            best, lowest = index, cost
        step = following
    ring[best + 2] += ring[best]
    ring[best + 3] += ring[best + 1]
    del ring[best : best + 2]


def samples(ring: Ring) -> list[tuple[int, int]]:
    """(Unix milliseconds, log end offset), newest first."""
    result = []
    now_ms = offset = 0
    sign = 1
    for index in range(0, len(ring), 2):
        now_ms += sign * ring[index]
        offset += sign * ring[index + 1]
        result.append((now_ms, offset))
        sign = -1
    return result


def passed_at(ring: Ring, offset: int) -> tuple[float | None, float | None]:
    """Bounds (not before, not after), in Unix seconds, of the time at which the log end passed `offset`.

    None on the left: before the first sample. None on the right: it has not been seen to pass, i.e. record `offset` was
    not there yet.
    """
    not_after = None
    for time_ms, log_end_offset in samples(ring):
        if log_end_offset <= offset:
            return time_ms / 1000.0, not_after
        not_after = time_ms / 1000.0
    return None, not_after


def age_ms(ring: Ring, offset: int, now: float) -> float | None:
    """Milliseconds for which record `offset` has surely been at the leader: a lower bound. None when it was not seen."""
    if not ring or ring[1] <= offset:
        return None
    not_after = passed_at(ring, offset)[1]
    return None if not_after is None else max(0.0, (now - not_after) * 1000.0)


def log_end_by(ring: Ring, time: float) -> int:
    """The newest log end offset sampled at or before `time`; the oldest of all when none was, 0 without any."""
    told = samples(ring)
    known = next(
        (sample for sample in told if sample[0] <= time * 1000.0), told[-1] if told else (0, 0)
    )
    return known[1]


def from_oldest(packed: list[int]) -> Ring:
    """A ring out of its first stored form: differences from the oldest sample on."""
    steps = [(packed[index], packed[index + 1]) for index in range(0, len(packed), 2)]
    if not steps:
        return []
    newest = (sum(step[0] for step in steps), sum(step[1] for step in steps))
    return [*newest, *(number for step in reversed(steps[1:]) for number in step)]
