"""LSO_STUCK: the last stable offset stands: a transaction is open for longer than its coordinator would let it (KIP-664).

Replication is not at fault: the high watermark moves, and consumers that read uncommitted records notice nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.conditions import Condition, Detector
from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context, is_open, spoken

ID = "LSO_STUCK"


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Begins while the leader is seen; goes on while it is silent, for that ends no transaction."""
    leader = state.replica(state.leader)
    if (
        state.rare is None
        or state.rare.last_stable is None
        or ((leader is None or leader.error is not None) and not is_open(state, ID, None))
    ):
        return
    offset, since = state.rare.last_stable
    stood_ms = (context.now - since) * 1000.0
    if stood_ms < context.thresholds.last_stable_stuck_ms:
        return
    waiting = None if state.high_watermark is None else state.high_watermark - offset
    count = "" if waiting is None else f", {waiting} committed offsets past it wait"
    yield Condition(
        severity="warning",
        description=f"read_committed consumers of {context.topic}-{context.partition} get nothing from offset {offset} on: the last stable offset "
        f"has stood there for {spoken(stood_ms)}{count}. A transaction that began there was neither committed nor aborted; "
        "replication is not at fault.",
        evidence={
            "last_stable_offset": offset,
            "since": since,
            "high_watermark": state.high_watermark,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
        },
    )


LSO_STUCK = Detector(ID, "state", "The last stable offset stands still: a transaction hangs.", state=evaluate)
