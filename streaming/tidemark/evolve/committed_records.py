"""What was committed, after an observation: readings under a fence, deletions, former leaders.

These functions change the table of the state that they are given.
"""

from __future__ import annotations

from tidemark.core.leader_epochs import (
    Committed,
    LineageEntries,
    record_committed,
)
from tidemark.core.partition import PartitionState


def apply_dated(after: PartitionState, reading: Committed, lineage: LineageEntries) -> None:
    """Dates a reading by the leader's lineage, where metadata has no leader epochs.

    The records below the end of the newest epoch are of that epoch or older. The lineage may have
    been read before the high watermark, which then covers records of a newer one.
    """
    epoch, end = lineage[-1]
    high_watermark = min(reading.high_watermark, end)
    dated = Committed(epoch, high_watermark, reading.at, high_watermark, reading.leader)
    entry, complete_from = record_committed(after.committed, dated), after.lineage_complete_from
    if entry.leader != reading.leader or complete_from is None:
        return
    entry.dated, entry.read_at = True, reading.at
    known_from = entry.lineage_complete_from
    if known_from is None or complete_from <= known_from:
        entry.lineage, entry.lineage_complete_from = lineage, complete_from


def apply_log_start(after: PartitionState) -> None:
    """Notes what a log no longer has because it was deleted.

    Replicas take over the leader's log start, and one that is not in sync any more may still show
    what was deleted before its leader lost the leadership.
    """
    for replica in after.replicas:
        start = replica.log_start_offset
        if start and replica.error is None and replica.sampled_at == after.observed_at:
            for entry in after.committed:
                entry.log_start_offset = max(entry.log_start_offset, start)


def apply_returned_leaders(after: PartitionState) -> None:
    """A former leader that returns with more than its successor shows what its own epoch had."""
    if after.leader_end_after is None:
        return
    for entry in after.committed:
        former = None if entry.leader == after.leader else after.replica(entry.leader)
        if former is None or former.log_end_offset is None:
            continue
        if (
            former.sampled_at == after.observed_at
            and former.log_end_offset > after.leader_end_after
        ):
            entry.log_end_offset = max(entry.log_end_offset, former.log_end_offset)
