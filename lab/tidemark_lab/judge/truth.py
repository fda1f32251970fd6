"""What really happened: the producer's acknowledgements against every replica on disk. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.load_producer import AcknowledgedRecord, record_key
from tidemark_lab.brokers.replica_logs import Log
from tidemark_lab.faults.fault import FaultRecord

# Half open.
Range = tuple[int, int]
# By broker.
Replicas = Mapping[int, Mapping[Place, Log]]


class LostRecord(NamedTuple):
    """An acknowledged record that the brokers lost by the fault of this number.

    `epoch`: of its batch, where an earlier reading found it.
    """

    topic: str
    partition: int
    offset: int
    id: int
    acked_at: float
    fault: int = 0
    epoch: int | None = None

    @property
    def place(self) -> Place:
        return self.topic, self.partition


class Held(NamedTuple):
    """A record in the log of a leader. `acked_at`: None where it was not acknowledged there."""

    id: int
    epoch: int
    acked_at: float | None


@dataclass(frozen=True)
class Removed:
    """What the cluster removed in good order: it is not lost.

    Records below `log_starts`, those acknowledged `since` when the topic was created again, or
    before, and in a `compacted` log those whose key has a newer record.
    """

    log_starts: Mapping[Place, int] = field(default_factory=dict)
    since: Mapping[Place, float] = field(default_factory=dict)
    compacted: Collection[Place] = ()

    def holds(self, record: AcknowledgedRecord, log: Log, newest: Mapping[bytes, int]) -> bool:
        """Whether it may be gone from a log. `newest`: the highest offset of each key there."""
        place, stored = (record.topic, record.partition), log.get(record.offset)
        if record.acked_at <= self.since.get(place, -1.0):
            return True
        if stored is not None and stored.id != record.id:
            return False
        if record.offset < self.log_starts.get(place, 0):
            return True
        is_older = record.offset < newest.get(record_key(record.id), -1)
        return stored is None and place in self.compacted and is_older


@dataclass
class Truth:
    """What a run did to its acknowledged records.

    `faults` in their order. `lost`: acknowledged records that the leader's log does not hold at
    their offset. `held`: what it holds, by offset. `removed`: the number that faults removed in
    good order, by topic. `diverged`: offsets at which two replicas hold different records, or one
    of them none. `unread`: partitions whose leader has no readable log.
    """

    faults: list[FaultRecord] = field(default_factory=list)
    acknowledged: int = 0
    lost: list[LostRecord] = field(default_factory=list)
    held: Mapping[Place, Mapping[int, Held]] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    diverged: Mapping[Place, Sequence[int]] = field(default_factory=dict)
    unread: list[Place] = field(default_factory=list)

    def lost_of(self, place: Place) -> list[LostRecord]:
        return [record for record in self.lost if record.place == place]

    def document(self) -> dict[str, Any]:
        """The JSON form: ranges of offsets by partition."""
        places = sorted({record.place for record in self.lost})
        lost = {place: [record.offset for record in self.lost_of(place)] for place in places}
        return {
            "acknowledged": self.acknowledged,
            "lost_records": len(self.lost),
            "lost": {name_of(place): ranges(found) for place, found in lost.items()},
            "diverged": {name_of(place): ranges(found) for place, found in self.diverged.items()},
            "unread": [name_of(place) for place in self.unread],
        }


def establish(
    acknowledged: Sequence[AcknowledgedRecord],
    replicas: Replicas,
    leaders: Mapping[Place, int],
    removed: Removed | None = None,
    fault: int = 0,
) -> Truth:
    """Compares what was acknowledged with what the logs hold, after this fault."""
    removed = removed or Removed()
    truth = Truth(acknowledged=len(acknowledged))
    logs = {place: replicas.get(leader, {}).get(place) for place, leader in leaders.items()}
    newest = {place: _newest(logs.get(place) or {}) for place in removed.compacted}
    acked_at: dict[Place, dict[int, float]] = {}
    for record in acknowledged:
        place = (record.topic, record.partition)
        log = logs.get(place)
        if log is None:
            continue
        stored = log.get(record.offset)
        if removed.holds(record, log, newest.get(place, {})):
            truth.removed[record.topic] = truth.removed.get(record.topic, 0) + 1
        elif stored is not None and stored.id == record.id:
            acked_at.setdefault(place, {})[record.offset] = record.acked_at
        else:
            truth.lost.append(LostRecord(*record, fault))
    truth.held = {
        place: {
            offset: Held(*stored, acked_at.get(place, {}).get(offset))
            for offset, stored in (log or {}).items()
        }
        for place, log in logs.items()
    }
    truth.diverged = {
        place: found
        for place in leaders
        if (found := _differences(_logs(replicas, place), place in removed.compacted))
    }
    truth.unread = [place for place, log in logs.items() if log is None]
    return truth


class Ledger:
    """The truth of a run with many faults, from one reading of the disks to the next.

    At a reading every replica is in sync, so that what is acknowledged is on all of them.
    """

    def __init__(self, truth: Truth, leaders: Mapping[Place, int]) -> None:
        self.truth, self._leaders = truth, leaders
        self._taken = 0
        self._held: list[AcknowledgedRecord] = []

    def take(self, acknowledged: Sequence[AcknowledgedRecord]) -> None:
        """Adds the records that were acknowledged since. To be called before the disks are read."""
        self._held += acknowledged[self._taken :]
        self._taken = self.truth.acknowledged = len(acknowledged)

    def read(self, replicas: Replicas, fault: int, removed: Removed | None = None) -> Truth:
        """The held records against the disks. Replicas may differ in what is under way."""
        truth = establish(self._held, replicas, self._leaders, removed, fault)
        held = {(record.topic, record.partition, record.offset) for record in self._held}
        truth.diverged = {
            place: mine
            for place, found in truth.diverged.items()
            if (mine := [offset for offset in found if (*place, offset) in held])
        }
        return truth

    def settle(self, found: Truth) -> list[LostRecord]:
        """Moves what a reading lacks from the held records to the truth's lost ones."""
        lost = [
            record._replace(epoch=before.epoch)
            if (before := self.truth.held.get(record.place, {}).get(record.offset)) is not None
            and before.id == record.id
            else record
            for record in found.lost
        ]
        self.truth.held = found.held
        self.truth.lost += lost
        self.truth.removed = dict(Counter(self.truth.removed) + Counter(found.removed))
        self._held = [
            AcknowledgedRecord(*place, offset, held.id, held.acked_at)
            for place, log in found.held.items()
            for offset, held in log.items()
            if held.acked_at is not None
        ]
        return lost


def ranges(offsets: Sequence[int]) -> list[Range]:
    """Half-open ranges of these offsets, ascending."""
    found: list[Range] = []
    for offset in sorted(set(offsets)):
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + 1)
        else:
            found.append((offset, offset + 1))
    return found


def name_of(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


def _logs(replicas: Replicas, place: Place) -> list[Log]:
    return [logs[place] for logs in replicas.values() if place in logs]


def _newest(log: Log) -> dict[bytes, int]:
    """The highest offset of each key of the load."""
    return {record_key(log[offset].id): offset for offset in sorted(log)}


def _differences(logs: Sequence[Log], compacted: bool) -> list[int]:
    """From the highest first offset on: an older part may be deleted on one replica only.

    Cleaners run on their own: of compacted logs, only offsets that several hold are compared.
    """
    if len(logs) < 2:
        return []
    start = max((min(log, default=0) for log in logs), default=0)
    offsets = set().union(*logs)
    return sorted(
        offset
        for offset in offsets
        if offset >= start
        and len({_id(log, offset) for log in logs if not compacted or offset in log}) > 1
    )


def _id(log: Log, offset: int) -> int | None:
    stored = log.get(offset)
    return None if stored is None else stored.id
