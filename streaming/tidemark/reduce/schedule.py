"""When a partition is judged: at each pass while it is active, otherwise when its view is due."""

from __future__ import annotations

from math import floor
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


def refresh_at(key: str, published_at: float) -> float:
    """When a view is due: at its own moment within every ten seconds, so that views spread.

    A pass can arrive up to five seconds after that moment. If the next moment is less than half an
    interval away, the one after it is used.
    """
    phase = crc32(key.encode()) % 10_000 / 1000.0
    moment = phase + REFRESH_SECONDS * (floor((published_at - phase) / REFRESH_SECONDS) + 1)
    near = moment - published_at < REFRESH_SECONDS / 2
    return moment + REFRESH_SECONDS if near else moment


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
