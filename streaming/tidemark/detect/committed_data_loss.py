"""COMMITTED_DATA_LOSS: offsets below a high watermark that a leader reported are lost.

`evolve.loss_proof` has the proof. Here it becomes ranges, wall-clock bounds and words.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tidemark.assess.records_held import Holder, first_sentence
from tidemark.core import activity
from tidemark.core.leader_epochs import NO_EPOCH, Committed, LineageEntries, committed_under
from tidemark.core.offset_history import passed_at
from tidemark.core.partition import LossCandidate, PartitionState
from tidemark.core.text import counted, utc
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.lost_records import holders_of
from tidemark.detect.measures import held_in_escrow
from tidemark.evolve.loss_proof import serving_leader

ID = "COMMITTED_DATA_LOSS"
Range = tuple[int, int]


class LossEvidence(Struct, kw_only=True):
    """Ranges are half open; epochs are None where none is known."""

    proven: Range
    # Records that producers with acks=1 may have an acknowledgement for.
    exposed: Range | None = None
    records: int = 0
    leader_epoch_before: int | None = None
    leader_epoch_after: int | None = None
    leader: int | None = None
    leader_before: int | None = None
    committed_seen_at: float | None = None
    # Wall-clock bounds: the first record was not written before, the last not after.
    written_between: tuple[float | None, float | None] = (None, None)
    lineage: LineageEntries | None = None
    log_start_offset: int | None = None
    in_sync_replicas_before: list[int] | None = None
    in_sync_replicas: list[int] | None = None
    read_at: tuple[float, float] | None = None
    # "log": the metadata has no leader epochs; those above are the newest of the leaders' logs.
    epochs_from: Literal["metadata", "log"] = "metadata"
    confidence: str = "proven"
    # Of the range, what the escrow holds; null: it holds nothing of the partition.
    in_escrow: int | None = None
    # The replicas that had them when they answered last, and what the leader before shows.
    records_held_by: list[Holder] = []


def evaluate(before: PartitionState, after: PartitionState, context: Context) -> Conditions:
    """Fires at the second of two reads, of different passes, that show the same range missing.

    An open alert is updated when the old leader comes back and shows that it had more, and when a
    replica that had the records answers again, or has cut them.
    """
    loss = after.loss_candidate
    if loss is not None and loss.confirmed and _is_of_leader(loss, after):
        yield _condition(_evidence(before, after, loss), after, context)
        return
    if serving_leader(after) is None or after.leader_epoch is None:
        # Nothing is known of the log while no leader serves.
        return
    for alert in context.alerts:
        if alert.detector != ID:
            continue
        known = alert.evidence_as(LossEvidence)
        update = _with_holders(replace(known, exposed=_exposed(known, after)), after)
        if update.exposed != known.exposed or _is_urgent(known, update):
            yield _condition(update, after, context)


def _is_of_leader(loss: LossCandidate, after: PartitionState) -> bool:
    """Whether the leader that proved it still leads: evidence names that one."""
    return after.leader is not None and after.leader_epoch in (None, loss.epoch_after)


def _exposed(known: LossEvidence, after: PartitionState) -> Range | None:
    """What may have been acknowledged above the range, while the leader of the loss leads."""
    seen = committed_under(after.committed, known.leader_epoch_before)
    if known.leader_epoch_after != after.leader_epoch or seen is None:
        return known.exposed
    is_more = seen.log_end_offset > (known.exposed or known.proven)[1]
    return (known.proven[1], seen.log_end_offset) if is_more else known.exposed


def _is_urgent(known: LossEvidence, update: LossEvidence) -> bool:
    """Whether a replica that had the records answers again, or has cut them."""
    now = {holder.broker: holder for holder in update.records_held_by}
    return any(
        now[each.broker].state == "cut" or (now[each.broker].answers and not each.answers)
        for each in known.records_held_by
        if each.state == "held" and each.broker in now
    )


def _with_holders(known: LossEvidence, after: PartitionState) -> LossEvidence:
    epochs = known.leader_epoch_before, known.leader_epoch_after
    found = holders_of(after, known.proven, epochs, known.records_held_by)
    told = {known.leader_before, *(h.broker for h in known.records_held_by)}
    return replace(
        known, records_held_by=[h for h in found if h.state == "held" or h.broker in told]
    )


def _epochs(evidence: LossEvidence) -> tuple[int | None, int | None]:
    """The incident; without epochs, the range."""
    if evidence.leader_epoch_after is None:
        return evidence.proven
    return evidence.leader_epoch_before, evidence.leader_epoch_after


def _evidence(before: PartitionState, after: PartitionState, loss: LossCandidate) -> LossEvidence:
    seen = committed_under(after.committed, loss.epoch_before)
    has_epochs = loss.epoch_after != NO_EPOCH
    newest_epoch = loss.epoch_before if has_epochs else None
    leader = after.replica(after.leader)
    evidence = LossEvidence(
        proven=(loss.start, loss.end),
        exposed=(loss.end, loss.exposed_to) if loss.exposed_to > loss.end else None,
        records=loss.end - loss.start,
        leader_epoch_before=newest_epoch,
        leader_epoch_after=loss.epoch_after if has_epochs else None,
        leader=after.leader,
        leader_before=None if seen is None else seen.leader,
        committed_seen_at=None if seen is None else seen.at,
        written_between=_written_between(after, loss, seen),
        lineage=after.lineage,
        log_start_offset=None if leader is None else leader.log_start_offset,
        in_sync_replicas_before=None if seen is None else _members_at(after, seen.at),
        in_sync_replicas=after.in_sync_replicas,
        read_at=(before.observed_at, after.observed_at),
        epochs_from="log" if has_epochs and after.leader_epoch is None else "metadata",
        in_escrow=held_in_escrow(after, loss.start, loss.end, after.observed_at, newest_epoch),
    )
    return _with_holders(evidence, after)


def _condition(evidence: LossEvidence, after: PartitionState, context: Context) -> Condition:
    start, end = evidence.proven
    exposed_to = end if evidence.exposed is None else evidence.exposed[1]
    tail = ""
    if exposed_to > end:
        tail = (
            f" Another {counted(exposed_to - end, 'record')} in [{end}, {exposed_to}) may have "
            "been acknowledged with acks=1."
        )
    name, holders = context.name, evidence.records_held_by
    now = first_sentence(name, (start, end), holders, after.leader, evidence.leader_before)
    verb = "is" if end - start == 1 else "are"
    shown = [f"{each.broker}:{each.state}:{each.answers}" for each in holders]
    return Condition(
        severity="critical",
        # Without epochs only the range distinguishes two losses of one partition.
        epochs=_epochs(evidence),
        description=f"{now} {counted(end - start, 'committed record')} of {name} {verb} lost: "
        f"offsets [{start}, {end}){_written(evidence)}. {_proof(evidence)}."
        f"{_in_escrow(evidence)}{tail}{context.at_risk}",
        evidence=evidence,
        revision="-".join([f"{start}-{end}-{exposed_to}", *shown]),
    )


def _in_escrow(evidence: LossEvidence) -> str:
    held = evidence.in_escrow
    if held is None:
        return ""
    start, end = evidence.proven
    some = "All" if held == end - start else f"{held}"
    return f" {some} of them are in escrow: tidemark salvage --losses --from-escrow."


def _written(evidence: LossEvidence) -> str:
    first, last = evidence.written_between
    if last is None:
        return ""
    since = "" if first is None else f"between {utc(first)} and "
    return f", written {since or 'by '}{utc(last)} UTC"


def _proof(evidence: LossEvidence) -> str:
    proof = f"Two reads of the log of leader {evidence.leader} prove it"
    if evidence.leader_epoch_after is None:
        return f"{proof}, by its end (the metadata has no leader epochs)"
    return proof


def _members_at(after: PartitionState, at: float) -> list[int] | None:
    """The in-sync set when the range was seen to be committed."""
    changes = (change for change in reversed(after.isr_history) if change.at <= at)
    return next((change.in_sync_replicas for change in changes), None)


def _written_between(
    after: PartitionState, loss: LossCandidate, seen: Committed | None
) -> tuple[float | None, float | None]:
    """The first record was not there before the left bound, the last one was by the right.

    A later leadership than that of the loss wrote other records at these offsets. So may an earlier
    one have done: the leader of the loss brought its own where its election was unclean.
    """
    history, epoch = after.previous_offset_history, after.previous_offset_history_epoch
    # Without epochs, nothing shows of which leadership a history is.
    if after.leader_epoch is None or (epoch is not None and epoch > loss.epoch_before):
        return None, None
    if epoch != loss.epoch_before:
        history = []
    times = [passed_at(history, loss.end - 1)[1]]
    if seen is not None and seen.high_watermark == loss.end:
        # A reading between two passes may have seen the last record before any pass did.
        times.append(seen.at)
    by = min((time for time in times if time is not None), default=None)
    return passed_at(history, loss.start)[0], by


DETECTOR = Detector(
    ID,
    "event",
    "Records that were committed are lost.",
    severities=("critical",),
    wakes_on=activity.EVENTFUL,
    event=evaluate,
)
