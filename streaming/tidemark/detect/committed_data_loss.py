"""COMMITTED_DATA_LOSS: offsets below a high watermark that a leader reported are not in the log any more.

The proof stands in core/losses.py; here it becomes words, ranges and wall-clock bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.conditions import Condition, Detector
from tidemark.core.epochs import NO_EPOCH
from tidemark.core.partition import LossRead, PartitionState
from tidemark.core.ring import Ring, passed_at
from tidemark.detect.context import Context, counted


def evaluate(before: PartitionState, after: PartitionState, context: Context) -> Iterator[Condition]:
    """Fires at the second of two reads, of different passes, that show the same range to be gone."""
    loss = after.loss_read
    if loss is None or not loss.confirmed:
        return
    count = loss.end - loss.start
    exposed = [loss.end, loss.exposed_to] if loss.exposed_to > loss.end else None
    written = _written_between(after.ring_before or after.ring, loss)
    seen = next((entry for entry in after.committed if entry.epoch == loss.epoch_before), None)
    epochless = loss.epoch_after == NO_EPOCH
    tail = (
        f" Another {counted(loss.exposed_to - loss.end, 'record')} in [{loss.end}, {loss.exposed_to}) may have been acknowledged by acks=1."
        if exposed
        else ""
    )
    yield Condition(
        severity="critical",
        broker=after.leader,
        # Without epochs nothing else tells two losses of one partition apart.
        epochs=(loss.start, loss.end) if epochless else (loss.epoch_before, loss.epoch_after),
        description=f"{counted(count, 'committed record')} of {context.topic}-{context.partition} {'is' if count == 1 else 'are'} gone: offsets [{loss.start}, {loss.end}){_proof(after, loss)}."
        f"{tail}{context.at_risk}",
        evidence={
            "proven": [loss.start, loss.end],
            "exposed": exposed,
            "records": count,
            "leader_epoch_before": None if epochless else loss.epoch_before,
            "leader_epoch_after": None if epochless else loss.epoch_after,
            "leader": after.leader,
            "leader_before": None if seen is None else seen.leader,
            "committed_seen_at": None if seen is None else seen.at,
            "written_between": written,
            "lineage": after.lineage,
            "log_start_offset": getattr(after.replica(after.leader), "log_start_offset", None),
            "in_sync_replicas_before": None if seen is None else _members_at(after, seen.at),
            "in_sync_replicas": after.in_sync_replicas,
            "read_at": [before.observed_at, after.observed_at],
            "confidence": "proven",
        },
        revision=f"{loss.start}-{loss.end}-{loss.exposed_to}",
    )


def _proof(after: PartitionState, loss: LossRead) -> str:
    if loss.epoch_after == NO_EPOCH:
        return f", proven by the log end of leader {after.leader}, read twice (its brokers know no leader epochs)"
    return f" of epochs up to {loss.epoch_before}, proven by leader {after.leader} of epoch {loss.epoch_after}"


def _members_at(after: PartitionState, at: float) -> list[int] | None:
    """The in-sync set that was seen last when the range was seen to be committed."""
    return next((members for time, members in reversed(after.isr_history) if time <= at), None)


def _written_between(ring: Ring, loss: LossRead) -> list[float | None]:
    """Wall-clock bounds of the range: its first record was not there before, its last was there by."""
    return [passed_at(ring, loss.start)[0], passed_at(ring, loss.end - 1)[1]]


COMMITTED_DATA_LOSS = Detector("COMMITTED_DATA_LOSS", "event", "Records that were committed are gone.", event=evaluate)
