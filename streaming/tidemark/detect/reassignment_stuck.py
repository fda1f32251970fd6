"""REASSIGNMENT_STUCK: a replica that a reassignment adds makes no progress, or one that it keeps is
not in sync.

Before Kafka 4.3 the controller ends a reassignment once every replica of the new assignment is in
sync: a dead one of both assignments holds it (PartitionReassignmentReplicas, KAFKA-19975).
"""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import Adding
from tidemark.core.text import counted, duration
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import describe_replicas, shows_leader_before


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """A copy that moves is throttled, not stuck. One at the leader's end waits for nothing."""
    if state.leader is not None and (state.adding or state.removing):
        for broker in state.missing:
            if broker not in state.removing and not context.in_grace(broker):
                yield _waits(state, context, broker)
    leader_end = state.leader_end_before
    if state.leader is None or leader_end is None or state.sparse is None:
        return
    for adding in state.sparse.adding:
        still_ms = (context.now - adding.advanced_at) * 1000.0
        behind = leader_end - (adding.log_end_offset or 0)
        if behind <= 0 or context.in_grace(adding.broker):
            continue
        if still_ms >= context.thresholds.reassignment_stuck_ms:
            yield _condition(state, context, adding, still_ms, behind)


def _condition(
    state: PartitionState, context: Context, adding: Adding, still_ms: float, behind: int
) -> Condition:
    replica = state.replica(adding.broker)
    error = replica.error if replica is not None else None
    where = f"has been at offset {adding.log_end_offset}"
    if adding.log_end_offset is None:
        where = "has reported no log end offset"
    check = "Check the replication throttles, the free disk space and the fetchers of that broker"
    if error is not None:
        check = f"It does not answer ({error})"
    return Condition(
        severity="warning",
        subject=adding.broker,
        broker=adding.broker,
        description=f"Broker {adding.broker}, which a reassignment adds to {context.name}, {where} "
        f"for {duration(still_ms)}, {counted(behind, 'record')} behind leader {state.leader}. "
        f"{check}.",
        evidence={
            "adding": state.adding,
            "removing": state.removing,
            "log_end_offset": adding.log_end_offset,
            "leader": state.leader,
            "leader_log_end_offset": state.leader_end_before,
            "records_behind": behind,
            "advanced_at": adding.advanced_at,
            "error": error,
        },
    )


def _waits(state: PartitionState, context: Context, broker: int) -> Condition:
    """For a replica of the old assignment that the new one keeps."""
    target = [number for number in state.assigned if number not in state.removing]
    return Condition(
        severity="warning",
        subject=broker,
        broker=broker,
        hold_ms=context.thresholds.reassignment_stuck_ms,
        description=f"The reassignment of {context.name} to {target} waits for "
        f"{describe_replicas(state, [broker])}, which it keeps and which is not in sync: it ends "
        f"when all of these are. Let broker {broker} catch up, or reassign without it.",
        evidence={
            "adding": state.adding,
            "removing": state.removing,
            "waits_for": broker,
            "in_sync_replicas": state.in_sync_replicas,
            "leader": state.leader,
        },
    )


DETECTOR = Detector(
    "REASSIGNMENT_STUCK",
    "state",
    "A reassignment makes no progress.",
    severities=("warning",),
    wakes_on=activity.SPARSE | activity.ISR,
    state=evaluate,
    can_judge=shows_leader_before,
)
