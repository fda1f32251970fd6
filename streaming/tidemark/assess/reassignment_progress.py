"""How much a replica that a reassignment adds still has to copy, and when it may be done.

The estimate is a range, from the fastest and the slowest stretch of the last two minutes: a copy
shares its throttle with others, and the leader's log grows meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

# Two samples are at least this far apart; a shorter stretch says little about the pace.
SAMPLE_SECONDS: Final = 10.0
MAX_SAMPLES: Final = 12
# No estimate from a shorter time.
MIN_SECONDS: Final = 2 * SAMPLE_SECONDS


class Estimate(NamedTuple):
    """Milliseconds until the copy is complete; None: no end in sight at that pace, or unknown."""

    earliest_ms: float | None
    latest_ms: float | None


UNKNOWN: Final = Estimate(None, None)


def remaining_records(
    leader_end: int | None, log_start: int | None, log_end: int | None
) -> int | None:
    """Offsets up to the leader's log end that the replica has not copied.

    A copy begins at the leader's log start, whatever its own log end was before.
    """
    if leader_end is None or (log_start is None and log_end is None):
        return None
    return max(0, leader_end - max(log_start or 0, log_end or 0))


def estimate(samples: Sequence[tuple[float, int]], now: float, remaining: int) -> Estimate:
    """The time left for `remaining` records, from (time, remaining records) before, oldest first.

    Both ends are unknown where the copy has not come nearer over the whole time.
    """
    if remaining == 0:
        return Estimate(0.0, 0.0)
    known = [*samples]
    if not known or now - known[-1][0] >= SAMPLE_SECONDS:
        known.append((now, remaining))
    (began, first), (ended, last) = known[0], known[-1]
    if ended - began < MIN_SECONDS or last >= first:
        return UNKNOWN
    paces = [
        (before - after) / (until - since)
        for (since, before), (until, after) in pairwise(known)
        if until > since
    ]
    fastest, slowest = max(paces), min(paces)
    return Estimate(
        1000.0 * remaining / fastest, 1000.0 * remaining / slowest if slowest > 0 else None
    )
