"""LSO_STUCK: the last stable offset stands: a transaction is open for longer than its coordinator would let it (KIP-664).

Replication is not at fault: the high watermark moves, and consumers that read uncommitted records notice nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context, spoken
from tidemark.detect.detector import Condition, Detector


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """It stands by what was seen of it; a leader that is silent, or does not show it, ends no transaction."""
    if state.rare is None or state.rare.last_stable is None:
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


def _is_shown(state: PartitionState) -> bool:
    leader = state.replica(state.leader)
    return leader is not None and leader.error is None and leader.last_stable_offset is not None


LSO_STUCK = Detector(
    "LSO_STUCK",
    "state",
    "The last stable offset stands still: a transaction hangs.",
    state=evaluate,
    sees=_is_shown,
)
