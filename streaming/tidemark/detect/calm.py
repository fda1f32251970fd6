"""Where no detector can have anything to say: most partitions, most of the time. Cheaper than asking each of them.

A property test holds every detector to it.
"""

from __future__ import annotations

from tidemark.core.offset_history import log_end_by
from tidemark.core.partition import PartitionState
from tidemark.detect.checkpoint_stale import is_odd
from tidemark.detect.context import Context


def is_calm(state: PartitionState, context: Context) -> bool:
    """No state detector can speak: everybody answers and is in sync, and nothing waits longer than any threshold."""
    members, minimum = state.in_sync_replicas, state.effective_min_in_sync_replicas
    if (
        state.lives
        or state.shrinks
        or state.leader is None
        or state.leaderless
        or state.missed_passes
        or members is None
    ):
        return False
    if (
        len(members) != len(state.assigned)
        or (minimum is not None and len(members) < minimum)
        or state.adding
    ):
        return False
    if state.rare is not None and (
        state.rare.speaks
        or (state.rare.checkpoints and is_odd(state, context.thresholds.checkpoint_stale_ms))
    ):
        return False
    lowest, epoch = state.high_watermark, state.leader_epoch
    for replica in state.replicas:
        if (
            replica.error is not None
            or replica.log_end_offset is None
            or replica.leader_epoch != epoch
        ):
            return False
        if replica.leads and replica.broker != state.leader:
            return False
        if lowest is None or replica.log_end_offset < lowest:
            lowest = replica.log_end_offset
    if lowest is None or state.high_watermark is None:
        return False
    for entry in state.committed:
        if entry.surviving > state.high_watermark:
            return False
    if not state.ring or lowest >= state.ring[1]:
        return True
    # What is missing anywhere came later than the shortest time threshold ago.
    patience_ms = min(context.thresholds.lag_ms, context.thresholds.high_watermark_stalled_ms)
    return lowest >= log_end_by(state.ring, context.now - patience_ms / 1000.0)


def is_uneventful(before: PartitionState, after: PartitionState) -> bool:
    """No event detector can speak: no election, no log end fell, no loss read."""
    rare = after.rare
    if rare is not None and (
        rare.divergences
        or rare.audit is not None
        or (rare.metadata is not None and rare.metadata.recovering)
    ):
        return False
    if (
        after.loss_read is not None
        or before.leader_epoch != after.leader_epoch
        or before.leader != after.leader
    ):
        return False
    if len(before.replicas) != len(after.replicas) or before.committed[:-1] != after.committed[:-1]:
        return False
    for old, new in zip(before.replicas, after.replicas, strict=True):
        if old.broker != new.broker or old.leader_epoch != new.leader_epoch:
            return False
        if (
            old.log_end_offset is None
            or new.log_end_offset is None
            or new.log_end_offset < old.log_end_offset
        ):
            return False
    return True
