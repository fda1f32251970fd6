"""HW_STALLED: records wait above a high watermark that stands still. Names the replica that holds it."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context, counted, shows_leader, uncommitted
from tidemark.detect.detector import Condition, Detector


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Standing still and waiting must both have lasted: a high watermark that moves, if late, is lag and not this."""
    window = uncommitted(state, context.now)
    if state.leader is None or window is None:
        return
    records, waited_ms = window
    still_ms = (context.now - state.high_watermark_moved_at) * 1000.0
    if min(waited_ms, still_ms) < context.thresholds.high_watermark_stalled_ms:
        return
    members = state.in_sync_replicas or []
    minimum = state.effective_min_in_sync_replicas
    holder = _holder(state)
    if minimum is not None and len(members) < minimum:
        why = f"the in-sync set {members} is below min ISR {minimum}, so it may not move"
    else:
        why = "the replica that holds it is not known"
        if holder is not None and holder == state.leader:
            why = f"every in-sync follower has them, so look at leader {holder}, and whether it reaches the controller"
        elif holder is not None:
            why = f"broker {holder} holds it"
    yield Condition(
        severity="warning",
        broker=holder if holder is not None else next(iter(state.missing), None),
        description=f"The high watermark of {context.topic}-{context.partition} has stood at {state.high_watermark} for "
        f"{still_ms / 1000:.1f} s with {counted(records, 'record')} above it: {why}.",
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


def _holder(state: PartitionState) -> int | None:
    """The in-sync follower with the lowest log end; a silent one goes first, for its log end is the one not seen.

    The leader itself when every one of them has all that it had before they were asked.
    """
    members = [
        r
        for r in state.replicas
        if r.broker != state.leader and r.broker in (state.in_sync_replicas or [])
    ]
    silent = [r for r in members if r.error is not None]
    if silent:
        return silent[0].broker
    known = [r for r in members if r.log_end_offset is not None]
    last = min(known, key=lambda r: r.log_end_offset or 0, default=None)
    if last is None or last.log_end_offset is None:
        return None
    return (
        state.leader
        if state.leader_before is not None and last.log_end_offset >= state.leader_before
        else last.broker
    )


HW_STALLED = Detector(
    "HW_STALLED",
    "state",
    "The high watermark stands still while records wait above it.",
    state=evaluate,
    sees=shows_leader,
)
