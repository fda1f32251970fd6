"""What really happened: committed, deleted and lost records, elections, truncations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tests.histories.controller import NO_LEADER, PartitionRecord
from tests.histories.logs import ReplicaLog


class Cut(NamedTuple):
    """Records that a replica lost; `why`: truncation, power failure, new disk, reset, …"""

    at: float
    broker: int
    topic: int
    old_end: int
    cut_at: int
    ids: list[int]
    why: str


class Leadership(NamedTuple):
    """A leader that took over, and the committed records that its log lacked then."""

    topic: int
    epoch: int
    leader: int
    at: float
    lost: frozenset[int]


class Election(NamedTuple):
    """`kind`: clean, eligible, last known leader, unclean."""

    topic: int
    epoch: int
    leader: int
    kind: str
    at: float


class Truth:
    """Record ids count up over the whole history. Bounded by the length of a history."""

    def __init__(self) -> None:
        self.now = 0.0
        self.epoch_of: list[int] = []
        self.offset_of: list[int] = []
        self.written_at: list[float] = []
        # By topic: offset -> the records that were committed there, and those that a leader
        # committed after its epoch was over at the controller.
        self.committed: list[dict[int, list[int]]] = [{}]
        self.late: list[dict[int, list[int]]] = [{}]
        self.committed_at: dict[int, float] = {}
        # Record -> when retention or DeleteRecords removed it.
        self.deleted: dict[int, float] = {}
        # Those that compaction removed from some log: they are not lost.
        self.compacted: set[int] = set()
        self.high_watermarks: list[int] = [0]
        self.elections: list[Election] = []
        self.leaderships: list[Leadership] = []
        self.cuts: list[Cut] = []
        self.restarts: list[tuple[float, int]] = []
        # A power failure or a new disk: a clean election may lose records after it.
        self.lossy = False
        # Epochs count again from lower ones.
        self.restored = False

    @property
    def topic(self) -> int:
        return len(self.committed) - 1

    def write(self, epoch: int, offset: int, count: int) -> list[int]:
        first = len(self.epoch_of)
        self.epoch_of += [epoch] * count
        self.offset_of += range(offset, offset + count)
        self.written_at += [self.now] * count
        return list(range(first, first + count))

    def recreate(self) -> None:
        self.committed.append({})
        self.late.append({})
        self.high_watermarks.append(0)

    def commit(self, ids: Iterable[int], topic: int, *, legitimate: bool) -> None:
        """A leader's high watermark passed these records."""
        table = (self.committed if legitimate else self.late)[topic]
        high = self.high_watermarks[topic]
        for record in ids:
            if record < 0 or (legitimate and record in self.committed_at):
                continue
            offset = self.offset_of[record]
            known = table.setdefault(offset, [])
            if record not in known:
                known.append(record)
            if legitimate:
                self.committed_at[record] = self.now
                high = max(high, offset + 1)
        self.high_watermarks[topic] = high

    def compact(self, ids: Iterable[int]) -> None:
        self.compacted.update(ids)
        self.delete(self.compacted)

    def delete(self, ids: Iterable[int]) -> None:
        for record in ids:
            self.deleted.setdefault(record, self.now)

    def elect(self, record: PartitionRecord, old_leader: int) -> None:
        if record.leader not in {NO_LEADER, old_leader}:
            self.elections.append(
                Election(record.topic, record.leader_epoch, record.leader, record.kind, self.now)
            )

    def restore(self, record: PartitionRecord) -> None:
        """Its leader leads on, under a lower epoch."""
        self.restored = True
        self.elections.append(
            Election(record.topic, record.leader_epoch, record.leader, "clean", self.now)
        )

    def lead(self, topic: int, epoch: int, leader: int, log: ReplicaLog) -> None:
        """A broker takes over under an epoch of the controller.

        Deleted records that are in its log are there again.
        """
        for record in log.ids[log.start :]:
            if record not in self.compacted:
                self.deleted.pop(record, None)
        lost = self.missing(topic, log)
        self.leaderships.append(Leadership(topic, epoch, leader, self.now, frozenset(lost)))

    def missing(self, topic: int, log: ReplicaLog) -> list[int]:
        """Committed records, not deleted, that a log lacks."""
        ids, end, found = log.ids, len(log.ids), []
        for offset, records in self.committed[topic].items():
            here = ids[offset] if offset < end else -1
            found += [r for r in records if r != here and r not in self.deleted]
        return found

    def cut(
        self, broker: int, topic: int, old_end: int, cut_at: int, ids: list[int], why: str
    ) -> None:
        if old_end > cut_at or why != "truncation":
            self.cuts.append(Cut(self.now, broker, topic, old_end, cut_at, ids, why))

    def lost_under(self, topic: int, epoch: int | None, leader: int | None) -> frozenset[int]:
        """What the leadership of an epoch lacked; without epochs, a leader's newest two."""
        if epoch is not None:
            for seen in reversed(self.leaderships):
                if (seen.topic, seen.epoch) == (topic, epoch):
                    return seen.lost
            return frozenset()
        newest = [s for s in self.leaderships if s.topic == topic and s.leader == leader][-2:]
        return frozenset().union(*(s.lost for s in newest))
