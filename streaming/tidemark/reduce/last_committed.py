"""What was committed before the leader fell silent, in the view of a partition."""

from __future__ import annotations

from tidemark.core.leader_epochs import NO_EPOCH
from tidemark.core.offset_history import samples
from tidemark.core.partition import PartitionState
from tidemark.core.records import LastCommittedView


def last_committed_view(state: PartitionState) -> LastCommittedView | None:
    """None while the leader answers, and where no leader ever reported a high watermark."""
    if state.leader_log_end_offset is not None or not state.committed:
        return None
    newest = state.committed[-1]
    is_over = newest.over_at is not None
    lineage = (newest.lineage or None) if is_over else state.lineage
    complete_from = newest.lineage_complete_from if is_over else state.lineage_complete_from
    read_at = newest.read_at if is_over else state.high_watermark_read_at
    return LastCommittedView(
        high_watermark=max(entry.surviving for entry in state.committed),
        log_end_offset=newest.log_end_offset,
        leader=newest.leader,
        leader_epoch=None if newest.epoch == NO_EPOCH else newest.epoch,
        read_at=read_at or newest.at,
        log_end_offsets=[
            (at_ms / 1000.0, offset)
            for at_ms, offset in reversed(
                samples(state.offset_history or state.previous_offset_history)
            )
        ],
        lineage=lineage,
        lineage_complete_from=complete_from,
    )
