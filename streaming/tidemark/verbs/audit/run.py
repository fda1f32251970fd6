"""An audit of many partitions: each is compared, then every difference is read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from tidemark.verbs.audit.partition_audit import MAX_DIFFERENCES, PartitionAudit, PartitionReport
from tidemark.verbs.audit.source import Partition, Source
from tidemark.verbs.audit.windows import Pace, Window

# Time for a truncation or an election under way to show.
CONFIRM_SECONDS: Final = 2.0
# As `divergence_ms`: for so long a follower may still cut records of another leader epoch.
CONFIRM_EPOCHS_SECONDS: Final = 30.0
# All partitions together.
MAX_SUSPECTS: Final = 10_000

# (share of the audit that is done, partition)
Progress = Callable[[float, str], None]


def audit_partitions(
    partitions: Iterable[Partition],
    source: Source,
    pace: Pace,
    choose: Callable[[int, int], list[Window]],
    progress: Progress,
    confirm_seconds: tuple[float, float] = (CONFIRM_SECONDS, CONFIRM_EPOCHS_SECONDS),
) -> list[PartitionReport]:
    """A report for each partition, in order.

    `confirm_seconds`: how long to wait before the second read, and where a difference is one of
    leader epochs.
    """
    todo = list(partitions)
    audits: list[PartitionAudit] = []
    left = MAX_SUSPECTS
    for number, partition in enumerate(todo):
        audit = PartitionAudit(partition, source, pace)
        audits.append(audit)
        if left <= 0:
            audit.report.notes.append(f"not read: there are {MAX_SUSPECTS} differences before it")
            continue

        def share(done: float, number: int = number, name: str = partition.name) -> None:
            progress((number + done) / len(todo), name)

        share(0.0)
        audit.run(choose, share, min(MAX_DIFFERENCES, left))
        left -= len(audit.suspects)
    suspected = [audit for audit in audits if audit.suspects]
    if suspected:
        in_two_epochs = any(audit.in_two_epochs for audit in suspected)
        pace.pause(confirm_seconds[in_two_epochs])
        for audit in suspected:
            progress(1.0, f"{audit.report.partition.name}, second read")
            audit.confirm()
    return [audit.report for audit in audits]
