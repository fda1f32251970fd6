"""COMMITTED_DATA_LOSS: offsets below a high watermark that a leader reported are not in the log any more.

The proof stands in core/losses.py; here it becomes words, ranges and wall-clock bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidemark.core.leader_epochs import NO_EPOCH, committed_under
from tidemark.core.offset_history import Ring, passed_at
from tidemark.core.partition import LossRead, PartitionState
from tidemark.detect.context import Context, counted
from tidemark.detect.detector import Condition, Detector
from tidemark.evolve.losses import serving_leader

ID = "COMMITTED_DATA_LOSS"


def evaluate(
    before: PartitionState, after: PartitionState, context: Context
) -> Iterator[Condition]:
    """Fires at the second of two reads, of different passes, that show the same range to be gone.

    An open one is brought up to date when the old leader comes back and shows that it had more.
    """
    loss = after.loss_read
    if loss is not None and loss.confirmed:
        yield _condition(_evidence(before, after, loss), context)
        return
    if serving_leader(after) is None or after.leader_epoch is None:
        # Nothing is said of what is gone while nobody serves.
        return
    for life in after.lives:
        if life.detector == ID and life.evidence["leader_epoch_after"] == after.leader_epoch:
            seen = committed_under(after.committed, life.evidence["leader_epoch_before"])
            told = (life.evidence["exposed"] or life.evidence["proven"])[1]
            if seen is not None and seen.log_end_offset > told:
                yield _condition(
                    {**life.evidence, "exposed": [life.evidence["proven"][1], seen.log_end_offset]},
                    context,
                )


def _evidence(before: PartitionState, after: PartitionState, loss: LossRead) -> dict[str, Any]:
    seen = committed_under(after.committed, loss.epoch_before)
    epochless = loss.epoch_after == NO_EPOCH
    return {
        "proven": [loss.start, loss.end],
        "exposed": [loss.end, loss.exposed_to] if loss.exposed_to > loss.end else None,
        "records": loss.end - loss.start,
        "leader_epoch_before": None if epochless else loss.epoch_before,
        "leader_epoch_after": None if epochless else loss.epoch_after,
        "leader": after.leader,
        "leader_before": None if seen is None else seen.leader,
        "committed_seen_at": None if seen is None else seen.at,
        "written_between": _written_between(after.ring_before or after.ring, loss),
        "lineage": after.lineage,
        "log_start_offset": getattr(after.replica(after.leader), "log_start_offset", None),
        "in_sync_replicas_before": None if seen is None else _members_at(after, seen.at),
        "in_sync_replicas": after.in_sync_replicas,
        "read_at": [before.observed_at, after.observed_at],
        "confidence": "proven",
    }


def _condition(evidence: dict[str, Any], context: Context) -> Condition:
    (start, end), exposed = evidence["proven"], evidence["exposed"]
    epochs = (evidence["leader_epoch_before"], evidence["leader_epoch_after"])
    tail = ""
    if exposed is not None:
        tail = f" Another {counted(exposed[1] - end, 'record')} in [{end}, {exposed[1]}) may have been acknowledged by acks=1."
    return Condition(
        severity="critical",
        broker=evidence["leader"],
        # Without epochs nothing else tells two losses of one partition apart.
        epochs=(start, end) if epochs[1] is None else epochs,
        description=f"{counted(end - start, 'committed record')} of {context.topic}-{context.partition} {'is' if end - start == 1 else 'are'} gone: "
        f"offsets [{start}, {end}){_proof(evidence)}.{tail}{context.at_risk}",
        evidence=evidence,
        revision=f"{start}-{end}-{end if exposed is None else exposed[1]}",
    )


def _proof(evidence: dict[str, Any]) -> str:
    leader, before, after = (
        evidence["leader"],
        evidence["leader_epoch_before"],
        evidence["leader_epoch_after"],
    )
    if after is None:
        return f", proven by the log end of leader {leader}, read twice (its brokers know no leader epochs)"
    return f" of epochs up to {before}, proven by leader {leader} of epoch {after}"


def _members_at(after: PartitionState, at: float) -> list[int] | None:
    """The in-sync set that was seen last when the range was seen to be committed."""
    return next((members for time, members in reversed(after.isr_history) if time <= at), None)


def _written_between(ring: Ring, loss: LossRead) -> list[float | None]:
    """Wall-clock bounds of the range: its first record was not there before, its last was there by."""
    return [passed_at(ring, loss.start)[0], passed_at(ring, loss.end - 1)[1]]


COMMITTED_DATA_LOSS = Detector(ID, "event", "Records that were committed are gone.", event=evaluate)
