"""The result of an audit as text, as JSON and as events. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tidemark.core.events import Audit
from tidemark.core.text import counted
from tidemark.verbs.audit.comparison import Copy, Difference
from tidemark.verbs.audit.partition_audit import PartitionReport

# Lines of text for one partition, and names in one line; JSON has all.
MAX_LINES: Final = 20
MAX_NAMES: Final = 5


def as_text(reports: Sequence[PartitionReport], read: str) -> list[str]:
    """`read`: how the offsets were chosen."""
    lines: list[str] = []
    for report in reports:
        name = report.partition.name
        lines += [f"{name}: {describe(found)}" for found in report.findings[:MAX_LINES]]
        more = len(report.findings) - MAX_LINES
        if more > 0:
            lines.append(f"{name}: {counted(more, 'more difference')}; --json lists all")
    lines += _notes(reports)
    findings = sum(len(report.findings) for report in reports)
    partitions = [report for report in reports if report.compared]
    compared = sum(report.compared for report in reports)
    offsets = sum(report.end - report.start for report in reports)
    of = f" of {offsets:,}" if compared < offsets else ""
    lines.append(
        f"{counted(findings, 'difference') if findings else 'no difference'} in {compared:,}{of} "
        f"offsets of {counted(len(partitions), 'partition')} ({read})."
    )
    return lines


def describe(found: Difference) -> str:
    """One difference, in a sentence or two."""
    groups = defaultdict(list)
    for copy in found.copies:
        groups[copy._replace(broker=-1)].append(copy.broker)
    held = [
        f"{_brokers(brokers)} {'hold' if len(brokers) > 1 else 'holds'} {_batch(copy)}"
        for copy, brokers in groups.items()
    ]
    if found.absent:
        holds = "hold" if len(found.absent) > 1 else "holds"
        held.append(f"{_brokers(found.absent)} {holds} no batch")
    if found.records is None:
        records = f"Whether records differ is unknown: {found.unread}."
    elif found.records == 0:
        records = "The records are equal, the batches are not."
    else:
        differ = "differs" if found.records == 1 else "differ"
        records = f"{counted(found.records, 'record')} {differ}, the first at {found.first_record}."
    return f"offset {found.offset}: {'; '.join(held)}. {records}"


def document(reports: Sequence[PartitionReport], **parameters: Any) -> dict[str, Any]:
    """The JSON document."""
    return {
        **parameters,
        "differences": sum(len(report.findings) for report in reports),
        "partitions": [
            {
                "topic": report.partition.place[0],
                "partition": report.partition.place[1],
                "replicas": list(report.partition.replicas),
                "compared_replicas": list(report.brokers),
                "not_compared": {str(b): why for b, why in report.not_compared.items()},
                "start_offset": report.start,
                "end_offset": report.end,
                "compared_offsets": report.compared,
                "absent_records": report.absent_records,
                "changed": report.changed,
                "unread_batches": report.unread,
                "notes": report.notes,
                "findings": [_finding(found) for found in report.findings],
            }
            for report in reports
        ],
    }


def events(reports: Iterable[PartitionReport], now: float) -> list[Audit]:
    """The findings that replicas hold different batches at one offset.

    One event, with the lowest offset, for each set of replicas that agree and their leader epochs:
    the rest is the same incident. Times ascend, because the newest finding of a partition counts.
    """
    found: list[Audit] = []
    for report in reports:
        seen: set[object] = set()
        for difference in report.findings:
            copies = sorted(difference.copies)
            if len({copy.crc for copy in copies}) < 2:
                continue
            epochs = [copy.leader_epoch for copy in copies]
            key = (tuple((c.broker, c.leader_epoch) for c in copies), _agreeing(copies))
            if key in seen:
                continue
            seen.add(key)
            same = len(set(epochs)) == 1
            topic, partition = report.partition.place
            found.append(
                Audit(
                    topic=topic,
                    partition=partition,
                    observed_at=now + len(found) / 1000,
                    topic_id=report.partition.topic_id,
                    brokers=[copy.broker for copy in copies],
                    offset=difference.offset,
                    leader_epoch=epochs[0] if same else None,
                    crcs=[copy.crc for copy in copies],
                    leader_epochs=None if same else epochs,
                    high_watermark=report.end,
                )
            )
    return found


def _agreeing(copies: Sequence[Copy]) -> tuple[int, ...]:
    """For each replica, the first one that holds the same bytes."""
    crcs = [copy.crc for copy in copies]
    return tuple(crcs.index(crc) for crc in crcs)


def _notes(reports: Sequence[PartitionReport]) -> list[str]:
    """What was not compared, one line for each reason."""
    names: dict[str, list[str]] = defaultdict(list)
    for report in reports:
        name = report.partition.name
        reasons = list(report.notes)
        if len(report.partition.replicas) < 2:
            reasons = ["one replica only: nothing to compare"]
        else:
            reasons += [f"broker {b} is not compared: {w}" for b, w in report.not_compared.items()]
        if report.changed:
            changed = counted(report.changed, "difference")
            reasons.append(f"the logs changed meanwhile: {changed} not confirmed, not compared")
        if report.absent_records:
            records = counted(report.absent_records, "record")
            reasons.append(f"cleaned: {records} not on every replica, not compared")
        reasons += [
            f"{count} differing batches of a compacted log are not compared: {why}"
            for why, count in report.unread.items()
        ]
        for reason in reasons:
            names[reason].append(name)
    return [f"{_some(of)}: {reason}" for reason, of in names.items()]


def _some(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _brokers(brokers: Sequence[int]) -> str:
    return ("broker " if len(brokers) == 1 else "brokers ") + ", ".join(map(str, brokers))


def _batch(copy: Copy) -> str:
    epoch = "" if copy.leader_epoch is None else f" of epoch {copy.leader_epoch}"
    damaged = ", which is not the CRC written in it" if copy.damaged else ""
    return f"batch {copy.base_offset}–{copy.last_offset}{epoch} with CRC {copy.crc:08x}{damaged}"


def _finding(found: Difference) -> dict[str, Any]:
    return {
        "offset": found.offset,
        "batches": [copy._asdict() for copy in found.copies],
        "absent": list(found.absent),
        "differing_records": found.records,
        "first_differing_record": found.first_record,
        "unread": found.unread,
    }
