"""FOLLOWER_LAG: a follower's log ends behind the leader's by more time than a fetch round explains.

Kafka's own gauges measure against the high watermark. The slowest in-sync follower holds the high
watermark back, so they read zero here. A silent follower that is still in sync is judged by the
leader alone: while the in-sync set is large enough for the high watermark to move, the high
watermark is the lowest in-sync log end offset (Partition.maybeIncrementLeaderHW).
"""

from __future__ import annotations

from tidemark.assess.isr_removal import expect_removal, replica_lag_time_max_ms
from tidemark.core import activity
from tidemark.core.offset_history import age_ms
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.text import answer_text, counted
from tidemark.core.tracked_alert import is_firing, tracked
from tidemark.detect.default_thresholds import CAUGHT_UP_PASSES, REMOVED_MS
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import (
    answered,
    followers,
    is_in_sync,
    is_reassigned,
    shows_leader_before,
    uncommitted,
)
from tidemark.detect.suspect import suspect_of

ID = "FOLLOWER_LAG"
# (records, milliseconds), both lower bounds.
Lag = tuple[int, float]


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """One condition per follower."""
    if state.leader is None or state.leader_end_before is None:
        return
    for follower in followers(state):
        broker = follower.broker
        if context.in_grace(broker):
            continue
        inferred = follower.error is not None
        lag = (_inferred if inferred else _measured)(state, follower, context)
        if lag is None:
            continue
        records, milliseconds = lag
        how = ""
        if follower.error is not None:
            answers = answer_text(follower.error)
            how = f". It {answers} ({follower.error}); the lag is inferred from the leader"
        in_sync = is_in_sync(state, broker)
        member = "still in sync" if in_sync else "not in sync"
        suspect = suspect_of(state, broker, context)
        why = f" {suspect.why}." if suspect.why else ""
        yield Condition(
            severity=context.severity(ID, broker, explained=_is_explained(state, broker, context)),
            subject=broker,
            broker=suspect.broker,
            hold_ms=context.while_churning(REMOVED_MS, [broker], suspect.broker),
            description=f"Broker {broker} ({member}) is at least "
            f"{counted(records, 'record')} and {milliseconds / 1000:.1f} s behind leader "
            f"{state.leader} in {context.name}{how}.{_removal(state, follower, context)}{why}",
            evidence={
                "leader": state.leader,
                "leader_epoch": state.leader_epoch,
                "leader_log_end_offset": state.leader_end_before,
                "follower_log_end_offset": None if inferred else follower.log_end_offset,
                "high_watermark": state.high_watermark,
                "lag_records": records,
                "lag_ms": round(milliseconds),
                "inferred": inferred,
                "in_sync_replicas": state.in_sync_replicas,
                "sampled_at": follower.sampled_at,
            },
        )


def _removal(state: PartitionState, follower: ReplicaState, context: Context) -> str:
    """A sentence about when it leaves the in-sync set; empty where that is not known."""
    limit_ms = replica_lag_time_max_ms(context.cluster, state.leader, context.now)
    alert = tracked(context.alerts, ID, follower.broker)
    since = None if alert is None else alert.since
    found = expect_removal(state, follower, limit_ms, since, context.thresholds.lag_ms, context.now)
    if found is None:
        return ""
    return (
        f" It leaves the in-sync set in {found.earliest_ms / 1000:.0f} to "
        f"{found.latest_ms / 1000:.0f} s unless it catches up."
    )


def _is_explained(state: PartitionState, broker: int, context: Context) -> bool:
    """Whether BROKER_DOWN or a reassignment explains the lag, and for no longer than they do.

    Kafka removes a silent follower from the in-sync set within `REMOVED_MS`.
    """
    is_short = context.held_ms(ID, broker) < REMOVED_MS
    if context.cluster.is_absent(broker, context.now):
        return is_short or not is_in_sync(state, broker)
    return is_short and is_reassigned(state, context.now)


def _measured(state: PartitionState, follower: ReplicaState, context: Context) -> Lag | None:
    lag = _behind(state, follower, context) if answered(state, follower) else None
    return lag if lag is not None and lag[1] > context.thresholds.lag_ms else None


def _behind(state: PartitionState, follower: ReplicaState, context: Context) -> Lag | None:
    """How far the follower's last known log end offset is behind the leader's present one."""
    if follower.log_end_offset is None or state.leader_end_before is None:
        return None
    records = state.leader_end_before - follower.log_end_offset
    if records <= 0:
        return None
    return records, age_ms(state.offset_history, follower.log_end_offset, context.now) or 0.0


def _inferred(state: PartitionState, follower: ReplicaState, context: Context) -> Lag | None:
    members, minimum = state.in_sync_replicas or [], state.effective_min_in_sync_replicas
    if follower.broker not in members:
        # Silent and out of sync: it was behind, and no sample shows that it caught up.
        known = is_firing(context.alerts, ID, follower.broker)
        return _behind(state, follower, context) if known else None
    window = uncommitted(state, context.now)
    if window is None or minimum is None or len(members) < minimum:
        return None
    # The records have waited for a whole pass. For a moment, every log end offset is above the
    # high watermark.
    if window[1] < 0.9 * context.period_ms or _another_holds(state, follower, context):
        return None
    return window


def _another_holds(state: PartitionState, silent: ReplicaState, context: Context) -> bool:
    """Whether another in-sync follower explains the high watermark."""
    return any(
        other.broker != silent.broker
        and is_in_sync(state, other.broker)
        and _holds(state, other, silent, context)
        for other in followers(state)
    )


def _holds(
    state: PartitionState, other: ReplicaState, silent: ReplicaState, context: Context
) -> bool:
    """By its log end offset, or because its broker does not answer at all and the other one does.

    Brokers that report no log end offset of a follower answer otherwise.
    """
    cluster, high_watermark = context.cluster, state.high_watermark
    if other.error is not None:
        return cluster.seen(silent.broker).answers and cluster.is_absent(other.broker, context.now)
    if other.log_end_offset is None or high_watermark is None:
        return False
    return other.log_end_offset <= high_watermark


DETECTOR = Detector(
    ID,
    "state",
    "A follower's log is behind the leader's log end offset.",
    severities=("warning", "info"),
    wakes_on=activity.LAG | activity.UNANSWERED,
    state=evaluate,
    waits_ms=lambda thresholds: thresholds.lag_ms,
    can_judge=shows_leader_before,
    clear_passes=CAUGHT_UP_PASSES,
)
