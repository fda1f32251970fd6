"""Computes the flags of `core.activity`: once per fold, from the state and the state before it."""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.activity import Activity
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import CheckpointSeen, SparseState
from tidemark.evolve.elections import newly_decided
from tidemark.evolve.sampled_leadership import is_led_anew


def activity_of(state: PartitionState) -> Activity:
    """The flags that describe a state."""
    flags = _of_replicas(state)
    members, minimum = state.in_sync_replicas, state.effective_min_in_sync_replicas
    if state.leader is None or state.leaderless:
        flags |= activity.NO_LEADER
    if (
        members is None
        or (members != state.assigned and set(members) != set(state.assigned))
        or state.adding
        or (minimum is not None and len(members) < minimum)
    ):
        flags |= activity.ISR
    if state.loss_candidate is not None:
        flags |= activity.LOSS
    if state.missed_passes:
        flags |= activity.MISSED
    if state.shrinks:
        flags |= activity.SHRINKS
    if state.sparse is not None:
        flags |= _of_sparse(state.sparse)
        if state.sparse.checkpoints and _is_checkpoint_above(state, state.sparse.checkpoints):
            flags |= activity.CHECKPOINT
    return flags | alerts_activity(state) if state.alerts else flags


def alerts_activity(state: PartitionState) -> Activity:
    """ALERTS while an alert of the class "state" is pending or firing."""
    return activity.ALERTS if any(not a.is_event for a in state.alerts) else 0


def _of_replicas(state: PartitionState) -> Activity:
    flags, high_watermark, epoch = 0, state.high_watermark, state.leader_epoch
    leader_end = state.leader_log_end_offset
    if high_watermark is None or (leader_end is not None and leader_end != high_watermark):
        flags |= activity.LAG
    for replica in state.replicas:
        if replica.error is not None:
            flags |= activity.UNANSWERED
        if replica.log_end_offset != high_watermark:
            flags |= activity.LAG
        if replica.leader_epoch != epoch or (replica.leads and replica.broker != state.leader):
            flags |= activity.EPOCH
    if high_watermark is None:
        return flags | activity.COMMITTED
    for entry in state.committed:
        if entry.surviving > high_watermark:
            flags |= activity.COMMITTED
    return flags


def _of_sparse(sparse: SparseState) -> Activity:
    """Epochs that began are history and set no flag."""
    flags = 0
    former = sparse.former_topic
    below = sparse.regression or sparse.behind_committed or sparse.suspicion
    odd = sparse.anomalies or (former is not None and (former.restored or former.returned))
    if sparse.adding or sparse.last_stable or odd or below:
        flags |= activity.SPARSE
    if sparse.metadata is not None and sparse.metadata.recovering:
        flags |= activity.RECOVERING
    if sparse.divergences or sparse.audit is not None:
        flags |= activity.DIVERGENCE
    return flags


def _is_checkpoint_above(state: PartitionState, checkpoints: list[CheckpointSeen]) -> bool:
    """Whether a file has a higher high watermark than the newest sample of its broker."""
    for seen in checkpoints:
        replica = state.replica(seen.broker)
        live = None if replica is None else replica.high_watermark
        if live is not None and seen.high_watermark is not None and seen.high_watermark > live:
            return True
    return False


def changes(before: PartitionState, after: PartitionState) -> Activity:
    """The flags that describe a fold."""
    flags = 0
    if before.leader_epoch != after.leader_epoch or before.leader != after.leader:
        flags |= activity.ELECTION
    if newly_decided(before, after) is not None or is_led_anew(before, after):
        flags |= activity.ELECTION
    if before.committed[:-1] != after.committed[:-1]:
        flags |= activity.HISTORY
    if len(before.replicas) != len(after.replicas):
        return flags | activity.LOG_FELL | activity.ELECTION
    for old, new in zip(before.replicas, after.replicas, strict=True):
        flags |= _replica_changes(old, new)
    return flags


def _replica_changes(old: ReplicaState, new: ReplicaState) -> Activity:
    flags = 0
    if old.broker != new.broker or old.leader_epoch != new.leader_epoch:
        flags |= activity.ELECTION
    if old.broker != new.broker or old.log_end_offset is None or new.log_end_offset is None:
        return flags | activity.LOG_FELL
    return flags | activity.LOG_FELL if new.log_end_offset < old.log_end_offset else flags
