"""HW_STALLED: records wait above a high watermark that does not move.

Names the replica that holds it. Info while another alert has the cause: UNDER_MIN_ISR, or
BROKER_DOWN of the broker that holds it, which Kafka removes from the in-sync set. Info at first
during a reassignment, which elects leaders and shares its throttle with them.
"""

from __future__ import annotations

from typing import Final

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.core.text import counted
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import (
    is_below_minimum,
    is_in_sync,
    is_reassigned,
    shows_leader,
    uncommitted,
)
from tidemark.detect.thresholds import REMOVED_MS

ID = "HW_STALLED"
# When a silent replica has left the in-sync set, the high watermark moves within some fetch rounds.
LEFT_SECONDS: Final = 10.0


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """Both the stall and the wait must have lasted. A high watermark that moves late is lag."""
    limit_ms = context.thresholds.high_watermark_stalled_ms
    still_ms = (context.now - state.high_watermark_moved_at) * 1000.0
    if state.leader is None or still_ms < limit_ms:
        return
    window = uncommitted(state, context.now)
    if window is None or window[1] < limit_ms:
        return
    records, waited_ms = window
    members = state.in_sync_replicas or []
    holder = _holder(state)
    passes = is_reassigned(state, context.now) or _is_failover(state, holder, context)
    is_short = context.held_ms(ID, None) < REMOVED_MS
    explained = is_below_minimum(state) or (passes and is_short)
    yield Condition(
        severity=context.severity(ID, None, explained=explained),
        broker=holder if holder is not None else next(iter(state.missing), None),
        description=f"The high watermark of {context.name} has been {state.high_watermark} for "
        f"{still_ms / 1000:.1f} s with {counted(records, 'record')} above it: "
        f"{_why(state, members, holder)}.",
        evidence={
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "high_watermark": state.high_watermark,
            "leader_log_end_offset": state.leader_log_end_offset,
            "uncommitted_records": records,
            "uncommitted_ms": round(waited_ms),
            "in_sync_replicas": members,
            "held_by": holder,
        },
    )


def _is_failover(state: PartitionState, holder: int | None, context: Context) -> bool:
    """Whether an absent broker holds it, or has just left the in-sync set."""
    cluster, now = context.cluster, context.now
    if holder is not None and cluster.is_absent(holder, now):
        return True
    changed = bool(state.isr_history) and now - state.isr_history[-1].at < LEFT_SECONDS
    return changed and any(cluster.is_absent(broker, now) for broker in state.missing)


def _why(state: PartitionState, members: list[int], holder: int | None) -> str:
    if is_below_minimum(state):
        minimum = state.effective_min_in_sync_replicas
        return f"the in-sync set {members} is below min ISR {minimum}, so it cannot move"
    if holder is None:
        return "the replica that holds it is not known"
    if holder == state.leader:
        return (
            f"every in-sync follower has them; check leader {holder} and its connection to the "
            "controller"
        )
    return f"broker {holder} holds it"


def _holder(state: PartitionState) -> int | None:
    """The in-sync follower with the lowest log end offset; a silent one comes first.

    It is the leader itself when every follower has all that the leader had before they were
    sampled.
    """
    members = [
        replica
        for replica in state.replicas
        if replica.broker != state.leader and is_in_sync(state, replica.broker)
    ]
    silent = [replica for replica in members if replica.error is not None]
    if silent:
        return silent[0].broker
    ends = [(r.log_end_offset, r.broker) for r in members if r.log_end_offset is not None]
    if not ends:
        return None
    end, broker = min(ends, key=lambda item: item[0])
    # A new leader that does not know yet what is committed reports its log end offset only once.
    before = state.leader_end_before
    needed = state.leader_log_end_offset if before is None else before
    return state.leader if needed is not None and end >= needed else broker


DETECTOR = Detector(
    ID,
    "state",
    "The high watermark does not move while records wait above it.",
    severities=("warning", "info"),
    wakes_on=activity.LAG,
    state=evaluate,
    waits_ms=lambda thresholds: thresholds.high_watermark_stalled_ms,
    can_judge=shows_leader,
)
