"""The audit of one partition: windows are compared, and each difference is read a second time.

The second read decides. A log that was cut, deleted from or elected over meanwhile is not compared:
Kafka changes a log below its end where a follower truncates, retention deletes or an election was
unclean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from tidemark.core.text import counted
from tidemark.record_log.batches import (
    MAX_BATCH_BYTES,
    Batch,
    DamagedLogError,
    split_batches,
)
from tidemark.verbs.audit.comparison import Comparison, Difference, compare
from tidemark.verbs.audit.source import Partition, Position, Source
from tidemark.verbs.audit.windows import Pace, Window

# A partition with more differences is not read on: they are one cause.
MAX_DIFFERENCES: Final = 1000
# A broker may hold an answer back by a quota, or be about to delete a segment.
ATTEMPTS: Final = 5


@dataclass
class PartitionReport:
    """What an audit found in one partition.

    `start` and `end`: offsets that all replicas hold, below the least high watermark. `compared`:
    how many of them were compared. `findings` are confirmed, `changed` counts differences that a
    second read did not show again. `notes`: what was not compared, in words.
    """

    partition: Partition
    start: int = 0
    end: int = 0
    compared: int = 0
    batches: int = 0
    brokers: tuple[int, ...] = ()
    not_compared: dict[int, str] = field(default_factory=dict)
    findings: list[Difference] = field(default_factory=list)
    changed: int = 0
    absent_records: int = 0
    notes: list[str] = field(default_factory=list)
    unread: dict[str, int] = field(default_factory=dict)


class PartitionAudit:
    """First `run`, then `confirm`. `suspects` are differences that were read once."""

    def __init__(self, partition: Partition, source: Source, pace: Pace) -> None:
        self.report = PartitionReport(partition)
        self.suspects: list[Difference] = []
        self._partition, self._source, self._pace = partition, source, pace
        self._positions: dict[int, Position] = {}
        self._cleaned = partition.compacted is not False
        self._first_positions: dict[int, Position] = {}
        # Why a replica gave nothing at its last read.
        self._reasons: dict[int, str] = {}
        self._size = 0

    @property
    def in_two_epochs(self) -> bool:
        """Whether a suspect has batches of different leader epochs: a log may still be cut."""
        return any(len({copy.leader_epoch for copy in s.copies}) > 1 for s in self.suspects)

    def run(
        self,
        choose: Callable[[int, int], list[Window]],
        progress: Callable[[float], None],
        most: int = MAX_DIFFERENCES,
    ) -> None:
        """Compares the windows that `choose` gives for [start, end), up to `most` differences."""
        report = self.report
        if not self._locate():
            return
        next_offset = report.start
        for window in choose(report.start, report.end):
            self._size = window.size
            start = max(window.start, next_offset)
            for begin, result in self._compare(window._replace(start=start)):
                next_offset = result.end
                report.compared += result.end - begin
                report.batches += result.batches
                report.absent_records += result.absent_records
                for reason, count in result.unread.items():
                    report.unread[reason] = report.unread.get(reason, 0) + count
                self.suspects += result.differences
                progress((next_offset - report.start) / max(report.end - report.start, 1))
                if len(self.suspects) >= most:
                    del self.suspects[most:]
                    report.notes.append(
                        f"not read on from offset {next_offset}: {most} differences are enough"
                    )
                    return
        report.brokers = tuple(self._positions)

    def confirm(self) -> None:
        """Reads each suspect again. It is a finding where every replica shows the same again."""
        report = self.report
        brokers = {copy.broker for s in self.suspects for copy in s.copies}
        brokers |= {broker for s in self.suspects for broker in s.absent}
        before = self._first_positions
        now = self._source.positions(self._partition.place, brokers)
        moved = {b for b in brokers if _has_moved(before[b], now.get(b, "no answer"))}
        seen: set[object] = set()
        read_to = -1
        for suspect in self.suspects:
            of = {*suspect.absent, *(copy.broker for copy in suspect.copies)}
            if not of & moved and suspect.start >= read_to:
                logs = self._logs(of, suspect.start, self._size)
                if logs.keys() == of:
                    result = compare(logs, suspect.start, report.end, cleaned=self._cleaned)
                    read_to = max(result.end, suspect.start + 1)
                    seen |= {_identity(difference) for difference in result.differences}
            if not of & moved and _identity(suspect) in seen:
                report.findings.append(suspect)
            else:
                report.changed += 1
        self.suspects = []

    def _locate(self) -> bool:
        """Asks where the logs begin and end. Whether two replicas or more can be compared."""
        report, place = self.report, self._partition.place
        found = self._source.positions(place, self._partition.replicas)
        for broker in self._partition.replicas:
            position = found.get(broker, "no answer")
            if isinstance(position, str):
                report.not_compared[broker] = position
            else:
                self._positions[broker] = position
        self._first_positions = dict(self._positions)
        report.brokers = tuple(self._positions)
        positions = self._positions.values()
        if len(positions) < 2:
            return False
        report.start = max(p.local_log_start for p in positions)
        report.end = max(min(p.high_watermark for p in positions), report.start)
        tiered = report.start - max(p.log_start for p in positions)
        if tiered > 0 and any(p.local_log_start > p.log_start for p in positions):
            report.notes.append(
                f"{counted(tiered, 'offset')} below {report.start} are in tiered storage only: "
                "not compared"
            )
        if not all(p.exact for p in positions):
            report.notes.append(
                "a copy has no whole replication-offset-checkpoint: compared up to the common "
                "end, above which a log may still be cut"
            )
        report.notes += [f"{p.damage}: compared up to there" for p in positions if p.damage]
        if self._partition.compacted is None:
            report.notes.append(
                "the cleanup policy is unknown: records that one replica lacks are not compared"
            )
        return True

    def _compare(self, window: Window) -> Iterator[tuple[int, Comparison]]:
        """Each answer of a window: the offset from which it was compared, and the comparison."""
        offset, left = window.start, window.answers
        while offset < window.end and left != 0 and len(self._positions) >= 2:
            logs = self._logs(self._positions, offset, window.size)
            failed = [broker for broker in self._positions if broker not in logs]
            if failed:
                offset = max(offset, *(self._drop(broker, offset) for broker in failed))
                continue
            result = compare(logs, offset, window.end, cleaned=self._cleaned)
            if result.end <= offset:
                self.report.notes.append(
                    f"not compared from offset {offset} on: the least high watermark "
                    f"{window.end} is within a batch"
                )
                return
            yield offset, result
            offset = result.end
            left = None if left is None else left - 1

    def _drop(self, broker: int, offset: int) -> int:
        """Compares without a replica that gave nothing at `offset`.

        Returns the offset to go on from: where only its log start moved, the replica is kept.
        """
        before, place = self._positions[broker], self._partition.place
        now = self._source.positions(place, [broker]).get(broker, "no answer")
        if isinstance(now, Position) and now.local_log_start > offset:
            self.report.notes.append(
                f"the log start of broker {broker} moved to {now.local_log_start} meanwhile"
            )
            return now.local_log_start
        reason = self._reasons.get(broker, "no answer")
        if isinstance(now, Position) and now.log_end < before.log_end:
            reason = f"its log end moved back from {before.log_end} to {now.log_end}"
        self.report.not_compared[broker] = f"{reason}, from offset {offset} on"
        del self._positions[broker]
        return offset

    def _logs(self, brokers: Collection[int], offset: int, size: int) -> dict[int, list[Batch]]:
        """The batches at `offset` of each broker that gives any, in a few attempts."""
        logs: dict[int, list[Batch]] = {}
        missing = set(brokers)
        self._reasons = {}
        for attempt in range(ATTEMPTS):
            if attempt:
                self._pace.pause(self._source.retry_seconds)
            answers = self._source.read(self._partition.place, sorted(missing), offset, size)
            for broker in sorted(missing):
                answer = answers.get(broker, "no answer")
                if isinstance(answer, str):
                    self._reasons[broker] = answer
                    continue
                self._pace.count(len(answer))
                try:
                    batches, incomplete = split_batches(answer, offset)
                except DamagedLogError as damage:
                    self._reasons[broker] = f"damaged log: {damage.reason}"
                    missing.discard(broker)
                    continue
                if batches:
                    logs[broker] = batches
                    missing.discard(broker)
                    continue
                self._reasons[broker] = "no batch"
                size = min(max(size, incomplete), MAX_BATCH_BYTES)
            if not missing:
                break
        return logs


def _has_moved(before: Position, now: Position | str) -> bool:
    """Whether a log was cut or elected over since: then a difference proves nothing."""
    return (
        isinstance(now, str)
        or now.log_end < before.log_end
        or now.high_watermark < before.high_watermark
        or now.leader_epoch != before.leader_epoch
    )


def _identity(difference: Difference) -> object:
    return difference.offset, difference.copies, difference.absent
