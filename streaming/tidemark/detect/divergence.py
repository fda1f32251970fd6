"""DIVERGENCE: two replicas hold different records at the same offsets, where Kafka promises the same.

From their lineages (core/divergences.py says what counts, and what cannot), or from the batches that an audit compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tidemark.core.leader_epochs import highest_committed
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import AuditFinding, Divergence
from tidemark.detect.context import Context, counted
from tidemark.detect.detector import Condition, Detector


def evaluate(
    before: PartitionState, after: PartitionState, context: Context
) -> Iterator[Condition]:
    """Speaks when a difference has become certain, once: while it stands, an acknowledged one is not told again."""
    if after.rare is None:
        return
    known = (
        before.rare.divergences
        if before.rare is not None and before.topic_id == after.topic_id
        else []
    )
    for found in after.rare.divergences:
        old = next(
            (
                item
                for item in known
                if (item.broker, item.epoch, item.since) == (found.broker, found.epoch, found.since)
            ),
            None,
        )
        if _is_certain(found, context.now, context) and not (
            old is not None and _is_certain(old, before.observed_at, context)
        ):
            yield _of_lineages(found, after, context)
    finding = after.rare.audit
    if finding is not None and (before.rare is None or before.rare.audit != finding):
        yield from _of_audit(finding, after, context)


def _is_certain(found: Divergence, at: float, context: Context) -> bool:
    return found.confirmed or (
        not found.closed and (at - found.since) * 1000.0 >= context.thresholds.divergence_ms
    )


def _of_lineages(found: Divergence, after: PartitionState, context: Context) -> Condition:
    count = abs(found.follower_end - found.leader_end)
    start, end = sorted((found.leader_end, found.follower_end))
    why = (
        f"both hold epoch {found.next_epoch} or a later one above it, so no truncation is to come"
        if found.closed
        else f"it has not cut them off in {context.now - found.since:.0f} s although it knows leader epoch {after.leader_epoch}"
    )
    what = f"its records of epochs up to {found.epoch} end at {found.follower_end}, those of leader {after.leader} at {found.leader_end}"
    if found.absent:
        what = f"it holds records of epoch {found.epoch} at [{start}, {end}), and the log of leader {after.leader} none of that epoch"
    return Condition(
        severity="critical",
        subject=found.broker,
        broker=found.broker,
        epochs=(found.epoch, found.next_epoch),
        description=f"Broker {found.broker}'s log of {context.topic}-{context.partition} is not the leader's: {what}; {counted(count, 'record')} or more "
        f"differ, from offset {start} on; {why}. {_advice(found.broker, after.leader)}{context.at_risk}",
        evidence={
            "follower": found.broker,
            "leader": after.leader,
            "epoch": found.epoch,
            "follower_end_offset": found.follower_end,
            "leader_end_offset": found.leader_end,
            "differs": [start, end],
            "records": count,
            "closed": found.closed,
            "first_read_at": found.since,
            "lineage_of_follower": getattr(after.replica(found.broker), "lineage", None),
            "lineage_of_leader": after.lineage,
            "in_sync_replicas": after.in_sync_replicas,
        },
        revision=f"{found.follower_end}-{found.leader_end}",
    )


def _of_audit(
    finding: AuditFinding, after: PartitionState, context: Context
) -> Iterator[Condition]:
    """Different batches of one epoch below what is committed. No verdict where a log does not reach, or may be cut yet."""
    committed = highest_committed(after.committed)
    replicas = [after.replica(broker) for broker in finding.brokers]
    if (
        committed is None
        or finding.offset >= committed
        or len(finding.brokers) != len(finding.crcs)
    ):
        return
    if finding.leader_epoch is None and after.leader_epoch is not None:
        # Batches of different epochs: one of the logs may be cut there yet, and its lineage shows whether it was not.
        return
    starts = [replica.log_start_offset for replica in replicas if replica is not None]
    if len(starts) < len(replicas) or any(
        start is None or start > finding.offset for start in starts
    ):
        return
    odd = _odd_one(finding, after.leader)
    crcs = {str(broker): crc for broker, crc in zip(finding.brokers, finding.crcs, strict=True)}
    who = (
        "nothing tells which of them is right" if odd is None else f"broker {odd}'s is the odd one"
    )
    if odd is not None and len(crcs) == 2:
        who = f"broker {odd} does not hold what leader {after.leader} does"
    epoch = "" if finding.leader_epoch is None else f" of epoch {finding.leader_epoch}"
    yield Condition(
        severity="critical",
        subject=odd,
        broker=odd,
        epochs=(finding.leader_epoch, None),
        description=f"An audit found different content in {context.topic}-{context.partition}: the batches at offset {finding.offset}{epoch}, "
        f"below the committed {committed}, differ between brokers {', '.join(map(str, finding.brokers))}; {who}. "
        f"{_advice(odd, after.leader)}{context.at_risk}",
        evidence={
            "offset": finding.offset,
            "epoch": finding.leader_epoch,
            "crcs": crcs,
            "leader": after.leader,
            "highest_high_watermark": committed,
            "audited_at": finding.at,
        },
        revision=str(finding.offset),
    )


def _odd_one(finding: AuditFinding, leader: int | None) -> int | None:
    """The only broker with another batch than most; of two that disagree, the one that does not lead. None: it cannot be told."""
    copies = Counter(finding.crcs)
    most = copies.most_common(1)[0][1]
    ledger = dict(zip(finding.brokers, finding.crcs, strict=True))
    others = [broker for broker, crc in ledger.items() if copies[crc] < most]
    if len(others) == 1:
        return others[0]
    others = [broker for broker in ledger if broker != leader]
    return others[0] if len(ledger) == 2 and len(others) == 1 else None


def _advice(odd: int | None, leader: int | None) -> str:
    """What to do first: keep every copy, and do not let the wrong one win."""
    if odd is not None and odd == leader:
        return "It leads, so consumers read it: save all logs, and let another of them lead before it is made to copy that one anew."
    other = "any of them" if odd is None else f"broker {odd}"
    return f"What a consumer reads depends on who leads: do not move leadership to {other}, and save all logs before one is made to copy another."


DIVERGENCE = Detector(
    "DIVERGENCE",
    "event",
    "Two replicas hold different records at the same offsets.",
    event=evaluate,
)
