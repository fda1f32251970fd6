"""DIVERGENCE: two replicas hold different records at the same offsets.

Proven by their lineages (`evolve.divergences` says what counts), or by an audit of batches.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tidemark.core import activity
from tidemark.core.leader_epochs import highest_committed
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import EMPTY, AuditFinding, Divergence
from tidemark.core.text import counted
from tidemark.detect.detector import Condition, Conditions, Context, Detector


def evaluate(before: PartitionState, after: PartitionState, context: Context) -> Conditions:
    """Fires once, when a difference becomes certain."""
    earlier, now = before.sparse or EMPTY, after.sparse or EMPTY
    known = earlier.divergences if before.topic_id == after.topic_id else []
    for found in now.divergences:
        was_certain = any(
            _is_certain(old, before.observed_at, context)
            for old in known
            if (old.broker, old.epoch, old.since) == (found.broker, found.epoch, found.since)
        )
        if _is_certain(found, context.now, context) and not was_certain:
            yield _of_lineages(found, after, context)
    if now.audit is not None and now.audit != earlier.audit:
        yield from _of_audit(now.audit, after, context)


def _is_certain(found: Divergence, at: float, context: Context) -> bool:
    lasted_ms = (at - found.since) * 1000.0
    lasts = not found.closed and lasted_ms >= context.thresholds.divergence_ms
    return found.confirmed or lasts


def _of_lineages(found: Divergence, after: PartitionState, context: Context) -> Condition:
    start, end = sorted((found.leader_end, found.follower_end))
    follower = after.replica(found.broker)
    why = (
        f"It has not cut them off in {context.now - found.since:.0f} s although it knows leader "
        f"epoch {after.leader_epoch}"
    )
    if found.closed:
        why = (
            f"Both logs hold epoch {found.next_epoch} or a later one above it, so no truncation "
            "is to come"
        )
    what = (
        f"Its records of epochs up to {found.epoch} end at {found.follower_end}, those of leader "
        f"{after.leader} at {found.leader_end}"
    )
    if found.absent:
        what = (
            f"It holds records of epoch {found.epoch} at [{start}, {end}); the log of leader "
            f"{after.leader} holds none of that epoch"
        )
    text = (
        f"The log of {context.name} on broker {found.broker} differs from the leader's. {what}. "
        f"{counted(end - start, 'record')} or more differ, from offset {start} on. {why}. "
        f"{_advice(found.broker, after.leader)}"
    )
    if found.suspected:
        why = (
            "One end may only be where deleted records ended: a broker that crashes may forget "
            "that it deleted them"
        )
        if start < (after.uncompacted_from or 0):
            why = (
                "The records there are older than what is known of the cleanup policy: a copy of "
                "a log that was compacted looks the same"
            )
        text = (
            f"The log of {context.name} on broker {found.broker} is suspected to differ from the "
            f"leader's. {what}. {why}. `tidemark audit` compares the records."
        )
    return Condition(
        severity="warning" if found.suspected else "critical",
        subject=found.broker,
        broker=found.broker,
        epochs=(found.epoch, found.next_epoch),
        description=f"{text}{context.at_risk}",
        evidence={
            "follower": found.broker,
            "leader": after.leader,
            "epoch": found.epoch,
            "follower_end_offset": found.follower_end,
            "leader_end_offset": found.leader_end,
            "differs": [start, end],
            "records": end - start,
            "closed": found.closed,
            "confidence": "suspected" if found.suspected else "proven",
            "first_read_at": found.since,
            "lineage_of_follower": None if follower is None else follower.lineage,
            "lineage_of_leader": after.lineage,
            "in_sync_replicas": after.in_sync_replicas,
        },
        revision=f"{found.follower_end}-{found.leader_end}",
    )


def _of_audit(finding: AuditFinding, after: PartitionState, context: Context) -> Conditions:
    """Different batches below what is committed.

    No verdict where a log does not reach the offset, or may still be cut there.
    """
    marks = (highest_committed(after.committed), finding.high_watermark)
    committed = max((mark for mark in marks if mark is not None), default=None)
    if committed is None or finding.offset >= committed:
        return
    epochs = finding.leader_epochs or [finding.leader_epoch] * len(finding.brokers)
    if not len(finding.brokers) == len(finding.crcs) == len(epochs):
        return
    if set(epochs) == {None} and after.leader_epoch is not None:
        # The epochs are unknown and may differ: one log may still be cut there, and its lineage
        # will show whether it was not.
        return
    replicas = [after.replica(broker) for broker in finding.brokers]
    starts = [None if replica is None else replica.log_start_offset for replica in replicas]
    if any(start is None or start > finding.offset for start in starts):
        return
    epoch_of = dict(zip(finding.brokers, epochs, strict=True))
    crc_of = dict(zip(finding.brokers, finding.crcs, strict=True))
    odd = _odd_one(epoch_of, crc_of, after.leader)
    known = [epoch for epoch in epochs if epoch is not None]
    evidence: dict[str, Any] = {
        "offset": finding.offset,
        "epoch": finding.leader_epoch,
        "crcs": {str(broker): crc for broker, crc in crc_of.items()},
        "leader": after.leader,
        "highest_high_watermark": committed,
        "audited_at": finding.at,
    }
    if finding.leader_epochs is not None:
        evidence["epochs"] = {str(broker): epoch for broker, epoch in epoch_of.items()}
    yield Condition(
        severity="critical",
        subject=odd,
        broker=odd,
        epochs=(min(known, default=None), max(known) if len(set(epochs)) > 1 else None),
        description=f"An audit found different content in {context.name}. "
        f"{_batches(finding, epoch_of, committed)}; {_verdict(odd, after.leader, len(crc_of))}. "
        f"{_advice(odd, after.leader)}{context.at_risk}",
        evidence=evidence,
        revision=str(finding.offset),
    )


def _batches(finding: AuditFinding, epoch_of: dict[int, int | None], committed: int) -> str:
    where = f"The batches at offset {finding.offset}"
    if len(set(epoch_of.values())) > 1:
        each = ", ".join(
            f"{'none' if epoch is None else epoch} on broker {broker}"
            for broker, epoch in epoch_of.items()
        )
        return f"{where}, below the committed {committed}, are of different leader epochs ({each})"
    epoch = "" if finding.leader_epoch is None else f" of epoch {finding.leader_epoch}"
    brokers = ", ".join(map(str, finding.brokers))
    return f"{where}{epoch}, below the committed {committed}, differ between brokers {brokers}"


def _odd_one(
    epoch_of: dict[int, int | None], crc_of: dict[int, int], leader: int | None
) -> int | None:
    """The only broker whose batch differs from most; of two brokers, the one that does not lead.

    None when neither decides it.
    """
    batch_of = {broker: (epoch_of[broker], crc) for broker, crc in crc_of.items()}
    copies = Counter(batch_of.values())
    most = copies.most_common(1)[0][1]
    others = [broker for broker, batch in batch_of.items() if copies[batch] < most]
    if len(others) == 1:
        return others[0]
    others = [broker for broker in batch_of if broker != leader]
    return others[0] if len(batch_of) == 2 and len(others) == 1 else None


def _verdict(odd: int | None, leader: int | None, replicas: int) -> str:
    if odd is None:
        return "it is not known which of them is right"
    if replicas == 2:
        return f"broker {odd} does not hold what leader {leader} holds"
    return f"broker {odd} differs from the others"


def _advice(odd: int | None, leader: int | None) -> str:
    """The first step: keep every copy, and do not let the wrong one win."""
    if odd is not None and odd == leader:
        return (
            "It leads, so consumers read it. Save all logs and move the leadership to another "
            "replica before this one copies its log again."
        )
    other = "any of them" if odd is None else f"broker {odd}"
    return (
        "The leader decides what consumers read. Do not move the leadership to "
        f"{other}, and save all logs before one replica copies another."
    )


DETECTOR = Detector(
    "DIVERGENCE",
    "event",
    "Two replicas hold different records at the same offsets.",
    severities=("critical", "warning"),
    wakes_on=activity.DIVERGENCE,
    event=evaluate,
)
