"""When a partition is judged: at each pass while it is active, otherwise when its view is due."""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from zlib import crc32

from tidemark.core import activity
from tidemark.core.activity import Activity
from tidemark.core.events import Pass
from tidemark.core.partition import PartitionState
from tidemark.reduce.views import REFRESH_SECONDS

# Values of `GroupState.due` besides a time: judge at every pass; the same, and the meaning of the
# view has changed.
EACH_PASS: Final = 0.0
CHANGED: Final = -1.0


# Views of a cluster's healthy partitions, refreshed in a second on average: above 2,500 of them
# each is refreshed less often. A change of its meaning is published at the next pass.
REFRESHED_PER_SECOND: Final = 250
MAX_REFRESH_SECONDS: Final = 300.0
# The same, of a healthy partition in which no offset moved: only the time of its sample is new.
QUIET_SECONDS: Final = 300.0


# A view of a moving partition is due at most so many intervals after the one before it
# (`refresh_at`).
LATEST: Final = 1.5
SOONEST_SECONDS: Final = LATEST * REFRESH_SECONDS


@lru_cache(maxsize=64)
def moving_seconds(partitions: int | None) -> float:
    """The time between two views of a healthy partition, in a cluster of so many."""
    needed = (partitions or 0) / REFRESHED_PER_SECOND
    return min(MAX_REFRESH_SECONDS, max(REFRESH_SECONDS, needed))


def refresh_seconds(state: PartitionState, flags: Activity, partitions: int | None) -> float:
    """The time between two views whose meaning is the same.

    LAG alone is healthy: a sample taken while records are on their way to the followers.
    """
    if flags & ~activity.LAG or state.alerts:
        return REFRESH_SECONDS
    seconds = moving_seconds(partitions)
    if flags or state.high_watermark_moved_at > state.published_at:
        return seconds
    is_read = state.sparse is not None and any(
        seen.observed_at > state.published_at for seen in state.sparse.checkpoints
    )
    return seconds if is_read else max(QUIET_SECONDS, seconds)


def refresh_at(key: str, published_at: float, seconds: float = REFRESH_SECONDS) -> float:
    """When a view is due: at its own moment within every interval, so that views spread.

    A pass can arrive up to half an interval after that moment. If the next moment is less than half
    an interval away, the one after it is used.
    """
    phase = crc32(key.encode()) % 10_000 / 10_000 * seconds
    moment = phase + seconds * ((published_at - phase) // seconds + 1)
    near = moment - published_at < seconds / 2
    return moment + seconds if near else moment


def is_unseen(state: PartitionState, flags: Activity, event: Pass) -> bool:
    """Whether an observation was lost: the pass should have brought one, and did not.

    The collector may not know yet what a later record of the metadata log reports.
    """
    if state.pass_number >= event.number:
        return False
    record = state.metadata_position
    if record is not None and record.at > state.observed_at:
        return False
    return bool(flags & activity.OBSERVED_EACH_PASS)
