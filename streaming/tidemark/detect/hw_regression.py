"""HW_REGRESSION: a leader shows a high watermark below what was committed before it. Never loss by itself.

A new leader's high watermark lags until the followers fetch from it, and may not move below min ISR (since 3.7): what
was committed is in its log and consumers wait for it. Only what the leader says of itself under its own epoch counts: a
follower's high watermark has no order (UnifiedLog.updateHighWatermark). Within one leadership it never goes back.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.leader_epochs import NO_EPOCH, Committed, committed_under
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.detect.context import Context, answered, lasted_ms, shows_leader
from tidemark.detect.detector import Condition, Detector
from tidemark.evolve.losses import keeps_committed

ID = "HW_REGRESSION"


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Silent while a loss is being read or was claimed: that says it all, and what is lost is not awaited any more."""
    leader = state.replica(state.leader)
    if leader is None or not answered(state, leader) or state.loss_read is not None:
        return
    if state.rare is not None and state.rare.regression is not None:
        yield _within_leadership(state, leader, context)
        return
    shown, highest = _shown(state, leader), _highest_before(state)
    if shown is None or highest is None or shown >= highest.surviving:
        return
    long = lasted_ms(state, ID, None, context.now) >= context.thresholds.high_watermark_regressed_ms
    held = _is_held(state)
    yield Condition(
        severity="warning" if long else "info",
        broker=next(iter(state.missing), leader.broker) if held else leader.broker,
        description=f"Leader {leader.broker} shows high watermark {shown} for {context.topic}-{context.partition}; {highest.surviving} was "
        f"committed before ({_under(highest)}). {_why(state, leader, highest, held=held)}. Consumers wait at {shown}.",
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
    """The highest high watermark that the leader gave under the fence of its present epoch, or as a broker sure to lead."""
    if leader.leader_epoch != state.leader_epoch:
        return None
    fenced = committed_under(state.committed, state.leader_epoch)
    shown = (
        None if fenced is None else fenced.high_watermark,
        leader.high_watermark if leader.leads else None,
    )
    return max((value for value in shown if value is not None), default=None)


def _highest_before(state: PartitionState) -> Committed | None:
    """What was committed highest under earlier epochs; where brokers know none, under any leader before."""
    epoch = state.leader_epoch
    earlier = [
        entry
        for entry in state.committed
        if (entry.epoch < epoch if epoch is not None else entry.epoch == NO_EPOCH)
    ]
    return max(earlier, key=lambda entry: entry.surviving, default=None)


def _under(entry: Committed) -> str:
    return (
        "under another leader"
        if entry.epoch == NO_EPOCH
        else f"under epoch {entry.epoch}, leader {entry.leader}"
    )


def _is_held(state: PartitionState) -> bool:
    minimum = state.effective_min_in_sync_replicas
    return minimum is not None and len(state.in_sync_replicas or []) < minimum


def _why(state: PartitionState, leader: ReplicaState, highest: Committed, *, held: bool) -> str:
    if leader.log_end_offset is None or leader.log_end_offset < highest.surviving:
        return f"Its log ends at {leader.log_end_offset}, and whether the records above are gone is not proven yet"
    safe = (
        "Nothing is missing in its log"
        if keeps_committed(state)
        else f"Its log reaches {leader.log_end_offset}"
    )
    if not held:
        return f"{safe}; it is catching up while the followers fetch"
    return f"{safe}; the in-sync set {state.in_sync_replicas} is below min ISR {state.effective_min_in_sync_replicas}, so it is held there"


def _within_leadership(state: PartitionState, leader: ReplicaState, context: Context) -> Condition:
    assert state.rare is not None
    assert state.rare.regression is not None
    seen = state.rare.regression
    node = context.cluster.nodes.get(leader.broker)
    restarted = (
        node is not None
        and node.restarted_at is not None
        and node.restarted_at >= state.high_watermark_moved_at
    )
    what = (
        "The broker restarted in between and took it from its checkpoint"
        if restarted
        else "Within one leadership it never goes back: the protocol is violated, or the broker restarted unseen"
    )
    return Condition(
        severity="info" if restarted else "warning",
        broker=leader.broker,
        description=f"Leader {leader.broker} of epoch {state.leader_epoch} shows high watermark {seen.shown} for "
        f"{context.topic}-{context.partition} and showed {seen.highest} before in the same epoch. {what}.",
        evidence={
            "leader": leader.broker,
            "leader_epoch": state.leader_epoch,
            "high_watermark": seen.shown,
            "committed_before": seen.highest,
            "since": seen.since,
            "log_end_offset": leader.log_end_offset,
            "broker_restarted": restarted,
            "protocol_violation": not restarted,
        },
    )


# A new leader's first fetch rounds take less than two passes; a third look would hide most of what consumers notice.
HW_REGRESSION = Detector(
    ID,
    "state",
    "A leader's high watermark is below what was committed before.",
    state=evaluate,
    fire_passes=2,
    sees=shows_leader,
)
