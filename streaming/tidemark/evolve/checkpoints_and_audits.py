"""The state of a partition after what came beside the passes: checkpoint files, audits, escrow."""

from __future__ import annotations

import copy

from tidemark.core.events import MAX_LINEAGE, MAX_REPLICAS, Audit, Checkpoint, Escrow
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import EMPTY, AuditFinding, CheckpointSeen, Escrowed, copy_of


def evolve_checkpoint(state: PartitionState, event: Checkpoint) -> PartitionState:
    """Notes a broker's checkpoint files; an older reading changes nothing."""
    sparse = copy_of(state.sparse)
    known = next((item for item in sparse.checkpoints if item.broker == event.broker), None)
    late = known is not None and known.observed_at >= event.observed_at
    if late or not _is_certainly_of(state, event.topic_id):
        return state
    others = [item for item in sparse.checkpoints if item.broker != event.broker]
    seen = CheckpointSeen(
        event.broker,
        event.high_watermark,
        event.modified_at,
        event.observed_at,
        event.recovery_point,
        event.log_start_offset,
        event.first_dirty_offset,
        event.lineage_starts[-MAX_LINEAGE:] if event.lineage_starts is not None else None,
    )
    sparse.checkpoints = [*others, seen][-MAX_REPLICAS:]
    after = copy.copy(state)
    after.sparse = sparse
    return after


def evolve_audit(state: PartitionState, event: Audit) -> PartitionState:
    """Notes the newest finding of an audit."""
    known = state.sparse.audit if state.sparse is not None else None
    late = known is not None and known.at >= event.observed_at
    if late or len(set(event.crcs)) < 2 or not _is_certainly_of(state, event.topic_id):
        return state
    after = copy.copy(state)
    after.sparse = copy_of(state.sparse)
    after.sparse.audit = AuditFinding(
        event.offset,
        event.leader_epoch,
        event.brokers,
        event.crcs,
        event.observed_at,
        event.leader_epochs,
        event.high_watermark,
    )
    return after


def evolve_escrow(state: PartitionState, event: Escrow) -> PartitionState:
    """Notes what the escrow holds; nothing of a range that is none."""
    known = state.sparse.escrow if state.sparse is not None else None
    late = known is not None and known.at >= event.observed_at
    if late or not _is_certainly_of(state, event.topic_id):
        return state
    ranges = [each for each in event.ranges if each[0] < each[1]]
    sparse, until = copy_of(state.sparse), event.kept_until
    sparse.escrow = Escrowed(ranges, event.observed_at, until) if ranges and until else None
    after = copy.copy(state)
    after.sparse = None if sparse == EMPTY else sparse
    return after


def _is_certainly_of(state: PartitionState, topic_id: str | None) -> bool:
    """Whether a finding is of this very topic.

    Findings have no order among the passes. Without the topic id one may be late, and of a topic
    that was deleted since.
    """
    return state.topic_id is None or topic_id == state.topic_id
