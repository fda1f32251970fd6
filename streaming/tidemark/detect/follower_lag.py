"""FOLLOWER_LAG: a follower's log ends behind the leader's log end, by more time than a fetch round explains.

Kafka's own gauges measure against the high watermark, which the slowest in-sync follower itself holds back, so they
read zero here. A silent follower that is still in sync is judged by the leader alone: while the in-sync set is large
enough for the high watermark to move, the high watermark is the slowest in-sync log end (Partition.scala,
maybeIncrementLeaderHW).
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.offset_history import age_ms
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.detect.context import (
    Context,
    answered,
    counted,
    followers,
    is_open,
    shows_leader_first,
    uncommitted,
)
from tidemark.detect.detector import Condition, Detector

ID = "FOLLOWER_LAG"


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """One condition a follower; the lag is a lower bound in records and in milliseconds."""
    if state.leader is None or state.leader_before is None:
        return
    for follower in followers(state):
        if context.in_grace(follower.broker):
            continue
        lag = (
            _measured(state, follower, context)
            if follower.error is None
            else _inferred(state, follower, context)
        )
        if lag is None:
            continue
        records, milliseconds = lag
        inferred = follower.error is not None
        how = (
            f"; it does not answer ({follower.error}), so this is inferred from the leader"
            if inferred
            else ""
        )
        member = (
            "still in sync" if follower.broker in (state.in_sync_replicas or []) else "not in sync"
        )
        yield Condition(
            severity="warning",
            subject=follower.broker,
            broker=follower.broker,
            description=f"Broker {follower.broker} ({member}) is at least {counted(records, 'record')} and {milliseconds / 1000:.1f} s "
            f"behind leader {state.leader} in {context.topic}-{context.partition}{how}.",
            evidence={
                "leader": state.leader,
                "leader_epoch": state.leader_epoch,
                "leader_log_end_offset": state.leader_before,
                "follower_log_end_offset": None if inferred else follower.log_end_offset,
                "high_watermark": state.high_watermark,
                "lag_records": records,
                "lag_ms": round(milliseconds),
                "inferred": inferred,
                "in_sync_replicas": state.in_sync_replicas,
                "sampled_at": follower.sampled_at,
            },
        )


def _measured(
    state: PartitionState, follower: ReplicaState, context: Context
) -> tuple[int, float] | None:
    if (
        follower.log_end_offset is None
        or state.leader_before is None
        or not answered(state, follower)
    ):
        return None
    records = state.leader_before - follower.log_end_offset
    if records <= 0:
        return None
    age = age_ms(state.ring, follower.log_end_offset, context.now) or 0.0
    return (records, age) if age > context.thresholds.lag_ms else None


def _inferred(
    state: PartitionState, follower: ReplicaState, context: Context
) -> tuple[int, float] | None:
    window = uncommitted(state, context.now)
    members = state.in_sync_replicas or []
    if follower.broker not in members:
        return _known_behind(state, follower, context)
    minimum = state.effective_min_in_sync_replicas
    if window is None or minimum is None or len(members) < minimum:
        return None
    # Records waited a whole pass: in passing, every log end is above the high watermark.
    if window[1] < 0.9 * context.period_ms or _another_holds(state, follower.broker):
        return None
    return window


def _known_behind(
    state: PartitionState, follower: ReplicaState, context: Context
) -> tuple[int, float] | None:
    """Out of the in-sync set and silent: it was behind when last seen, and nothing shows that it is not any more."""
    if (
        not is_open(state, ID, follower.broker)
        or state.leader_before is None
        or follower.log_end_offset is None
    ):
        return None
    records = state.leader_before - follower.log_end_offset
    return (
        (records, age_ms(state.ring, follower.log_end_offset, context.now) or 0.0)
        if records > 0
        else None
    )


def _another_holds(state: PartitionState, silent: int) -> bool:
    """Whether a follower that answers explains the high watermark by its own log end."""
    return any(
        other.broker != silent
        and other.error is None
        and other.broker in (state.in_sync_replicas or [])
        and other.log_end_offset is not None
        and state.high_watermark is not None
        and other.log_end_offset <= state.high_watermark
        for other in followers(state)
    )


FOLLOWER_LAG = Detector(
    ID,
    "state",
    "A follower's log is behind its leader's log end.",
    state=evaluate,
    sees=shows_leader_first,
)
