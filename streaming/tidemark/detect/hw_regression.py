"""HW_REGRESSION: a leader reports a high watermark below what was committed. This alone is no loss.

A new leader's high watermark lags until the followers fetch from it, and may not move below min
ISR (since 3.7). The committed records are in its log, and consumers wait for the high watermark.
Only what the leader reports under its own epoch counts; a follower's high watermark has no order
(UnifiedLog.updateHighWatermark). Within one leadership it never goes back.
"""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.leader_epochs import NO_EPOCH, Committed, committed_under
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import Regression
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import answered, is_below_minimum, shows_leader
from tidemark.evolve.loss_proof import keeps_committed

ID = "HW_REGRESSION"


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """No condition while a loss is being read or is claimed: the loss covers it."""
    leader = state.replica(state.leader)
    if leader is None or not answered(state, leader) or state.loss_candidate is not None:
        return
    if state.sparse is not None and state.sparse.regression is not None:
        yield _within_leadership(state, leader, state.sparse.regression, context)
        return
    shown, highest = _shown(state, leader), _highest_before(state)
    if shown is None or highest is None or shown >= highest.surviving:
        return
    held = is_below_minimum(state)
    yield Condition(
        severity=context.escalated(ID, context.thresholds.high_watermark_regressed_ms),
        broker=next(iter(state.missing), leader.broker) if held else leader.broker,
        description=f"Leader {leader.broker} reports high watermark {shown} of {context.name}; "
        f"{highest.surviving} was committed before ({_under(highest)}). "
        f"{_why(state, leader, highest, held=held)}. Consumers wait at {shown}.",
        evidence={
            "leader": leader.broker,
            "leader_epoch": state.leader_epoch,
            "high_watermark": shown,
            "committed_before": highest.surviving,
            "committed_under_epoch": None if highest.epoch == NO_EPOCH else highest.epoch,
            "committed_seen_at": highest.at,
            "log_end_offset": leader.log_end_offset,
            "lineage": state.lineage,
            "in_sync_replicas": state.in_sync_replicas,
            "effective_min_in_sync_replicas": state.effective_min_in_sync_replicas,
            "protocol_violation": False,
        },
    )


def _shown(state: PartitionState, leader: ReplicaState) -> int | None:
    """The highest high watermark that the leader reported in this leadership."""
    if leader.leader_epoch != state.leader_epoch:
        return None
    fenced = committed_under(state.committed, state.leader_epoch)
    reported = leader.high_watermark if leader.leads else None
    known = (state.high_watermark, reported, None if fenced is None else fenced.high_watermark)
    return max((value for value in known if value is not None), default=None)


def _highest_before(state: PartitionState) -> Committed | None:
    """What was committed highest under earlier epochs; without epochs, under any earlier leader."""
    epoch = state.leader_epoch
    earlier = [
        entry
        for entry in state.committed
        if (entry.epoch == NO_EPOCH if epoch is None else entry.epoch < epoch)
    ]
    return max(earlier, key=lambda entry: entry.surviving, default=None)


def _under(entry: Committed) -> str:
    if entry.epoch == NO_EPOCH:
        return "under another leader"
    return f"under epoch {entry.epoch}, leader {entry.leader}"


def _why(state: PartitionState, leader: ReplicaState, highest: Committed, *, held: bool) -> str:
    end, log_start = leader.log_end_offset, leader.log_start_offset or 0
    if (leader.high_watermark or 0) < log_start:
        return f"It is below the log start {log_start} of that broker, so it is broken"
    if end is None or end < highest.surviving:
        return f"Its log ends at {end}; it is not proven yet whether the records above are lost"
    kept = keeps_committed(state)
    safe = (
        f"No record below {highest.surviving} is missing in its log"
        if kept
        else f"Its log reaches {end}"
    )
    if not held:
        return f"{safe}; the high watermark rises while the followers fetch"
    return (
        f"{safe}; the in-sync set {state.in_sync_replicas} is below min ISR "
        f"{state.effective_min_in_sync_replicas}, so the high watermark cannot move"
    )


def _within_leadership(
    state: PartitionState, leader: ReplicaState, seen: Regression, context: Context
) -> Condition:
    node = context.cluster.nodes.get(leader.broker)
    restarted_at = node.restarted_at if node is not None else None
    restarted = restarted_at is not None and restarted_at >= state.high_watermark_moved_at
    why = (
        "Within one leadership it never goes back: either the protocol is violated, or the "
        "broker restarted unseen"
    )
    if state.topic_id is None:
        why = (
            "A leader never lowers it: the topic was created again, the broker restarted unseen, "
            "or the protocol is violated"
        )
    if restarted:
        why = "The broker restarted in between and read it from its checkpoint"
    return Condition(
        severity="info" if restarted else "warning",
        broker=leader.broker,
        description=f"Leader {leader.broker} of epoch {state.leader_epoch} reports high watermark "
        f"{seen.shown} of {context.name}, and reported {seen.highest} before in the same epoch. "
        f"{why}.",
        evidence={
            "leader": leader.broker,
            "leader_epoch": state.leader_epoch,
            "high_watermark": seen.shown,
            "committed_before": seen.highest,
            "since": seen.since,
            "log_end_offset": leader.log_end_offset,
            "broker_restarted": restarted,
            "protocol_violation": not restarted and state.topic_id is not None,
        },
    )


# The first fetch rounds from a new leader take less than two passes. A third pass would hide most
# of what consumers notice.
DETECTOR = Detector(
    ID,
    "state",
    "A leader's high watermark is below what was committed before.",
    severities=("warning", "info"),
    wakes_on=activity.COMMITTED | activity.SPARSE,
    state=evaluate,
    fire_passes=2,
    can_judge=shows_leader,
)
