"""LSO_STUCK: the last stable offset does not move: a transaction is open for too long (KIP-664).

Replication is not the cause. The high watermark moves, and consumers that read uncommitted records
notice nothing.
"""

from __future__ import annotations

import msgspec

from tidemark.core import activity
from tidemark.core.events import OpenTransaction
from tidemark.core.partition import PartitionState
from tidemark.core.text import duration, printable, utc
from tidemark.detect.detector import Condition, Conditions, Context, Detector


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """Judged by the last known value: a leader that does not report it ends no transaction."""
    if state.sparse is None or state.sparse.last_stable is None:
        return
    stable = state.sparse.last_stable
    offset, since, held_by = stable.offset, stable.since, stable.transaction
    still_ms = (context.now - since) * 1000.0
    if still_ms < context.thresholds.last_stable_stuck_ms:
        return
    waiting = None if state.high_watermark is None else state.high_watermark - offset
    count = "" if waiting is None else f" {waiting} committed offsets wait behind it."
    yield Condition(
        severity="warning",
        description=f"read_committed consumers of {context.name} get no record from offset "
        f"{offset} on: the last stable offset has not moved for {duration(still_ms)}."
        f"{count} A transaction that began there was neither committed nor aborted. "
        f"{holder_text(held_by)}Replication is not the cause.",
        evidence={
            "last_stable_offset": offset,
            "since": since,
            "high_watermark": state.high_watermark,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "transaction": held_by and msgspec.to_builtins(held_by),
        },
        # It may be known only after the alert has fired.
        revision="" if held_by is None else str(held_by.producer_id),
    )


def holder_text(held_by: OpenTransaction | None) -> str:
    """Whose transaction it is and what to do about it, with a space at the end; empty: unknown."""
    if held_by is None:
        return ""
    at, owner = held_by.last_timestamp, held_by.transactional_id
    newest = "" if at is None else f", with its newest batch here of {utc(at)} UTC"
    who = f"Producer {held_by.producer_id}, epoch {held_by.producer_epoch}, holds it{newest}"
    if owner is None:
        return (
            f"{who}. No coordinator shows its transactional id: it hangs and has to be aborted by "
            "its start offset, or Tidemark may not describe it. "
        )
    return (
        f"{who}. Coordinator {held_by.coordinator} knows it as `{printable(owner)}`: its owner has "
        "to commit or abort it. "
    )


def _is_shown(state: PartitionState) -> bool:
    leader = state.replica(state.leader)
    if leader is None or leader.error is not None:
        return False
    return leader.last_stable_offset is not None


DETECTOR = Detector(
    "LSO_STUCK",
    "state",
    "The last stable offset does not move: a transaction hangs.",
    severities=("warning",),
    wakes_on=activity.SPARSE,
    state=evaluate,
    can_judge=_is_shown,
)
