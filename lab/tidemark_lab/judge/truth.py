"""What really happened: the producer's acknowledgements against every replica on disk. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.load_producer import AcknowledgedRecord, record_key

# Half open.
Range = tuple[int, int]
# broker -> partition -> offset -> record id
Replicas = Mapping[int, Mapping[Place, Mapping[int, int]]]


@dataclass(frozen=True)
class Removed:
    """What the cluster removed in good order: it is not lost.

    Records below `log_starts` of the leaders, those acknowledged before `since` (the topic was
    created again), and where `compacted` those whose key has a newer record in the log.
    """

    log_starts: Mapping[Place, int] = field(default_factory=dict)
    since: float = 0.0
    compacted: bool = False

    def holds(self, record: AcknowledgedRecord, newest: Mapping[bytes, int]) -> bool:
        """Whether it may be missing in a log. `newest`: the highest offset of each key there."""
        if record.acked_at < self.since:
            return True
        if record.offset < self.log_starts.get((record.topic, record.partition), 0):
            return True
        return self.compacted and record.offset < newest.get(record_key(record.id), 0)


@dataclass(frozen=True)
class Truth:
    """`lost`: acknowledged records that the leader's log does not hold at their offset.

    `kept`: by partition, offset -> when the record that is there was acknowledged. `diverged`: the
    offsets at which two replicas hold different records, or one of them none. `unread`: partitions
    whose leader has no readable log.
    """

    acknowledged: int
    lost: Mapping[Place, Sequence[AcknowledgedRecord]]
    kept: Mapping[Place, Mapping[int, float]]
    diverged: Mapping[Place, Sequence[int]]
    unread: Sequence[Place] = ()

    @property
    def lost_records(self) -> int:
        return sum(map(len, self.lost.values()))

    def document(self) -> dict[str, Any]:
        """The JSON form: ranges of offsets by partition."""
        return {
            "acknowledged": self.acknowledged,
            "lost_records": self.lost_records,
            "lost": {
                _name(place): ranges([record.offset for record in records])
                for place, records in self.lost.items()
            },
            "diverged": {_name(place): ranges(found) for place, found in self.diverged.items()},
            "unread": [_name(place) for place in self.unread],
        }


def establish(
    acknowledged: Sequence[AcknowledgedRecord],
    replicas: Replicas,
    leaders: Mapping[Place, int],
    removed: Removed | None = None,
) -> Truth:
    """Compares what was acknowledged with what the logs hold at the end of a drill."""
    removed = removed or Removed()
    lost: dict[Place, list[AcknowledgedRecord]] = {}
    kept: dict[Place, dict[int, float]] = {}
    held = {place: replicas.get(leader, {}).get(place) for place, leader in leaders.items()}
    newest = {place: _newest(log or {}) for place, log in held.items()}
    for record in acknowledged:
        place = (record.topic, record.partition)
        log = held.get(place)
        if log is None:
            continue
        if log.get(record.offset) == record.id:
            kept.setdefault(place, {})[record.offset] = record.acked_at
        elif not removed.holds(record, newest[place]):
            lost.setdefault(place, []).append(record)
    diverged = {
        place: found
        for place in leaders
        if (found := _differences(_logs(replicas, place), compacted=removed.compacted))
    }
    unread = [place for place, log in held.items() if log is None]
    return Truth(len(acknowledged), lost, kept, diverged, unread)


def ranges(offsets: Sequence[int]) -> list[Range]:
    """Half-open ranges of these offsets, ascending."""
    found: list[Range] = []
    for offset in sorted(set(offsets)):
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + 1)
        else:
            found.append((offset, offset + 1))
    return found


def _logs(replicas: Replicas, place: Place) -> list[Mapping[int, int]]:
    return [logs[place] for logs in replicas.values() if place in logs]


def _newest(log: Mapping[int, int]) -> dict[bytes, int]:
    """The highest offset of each key of the load."""
    return {record_key(log[offset]): offset for offset in sorted(log)}


def _differences(logs: Sequence[Mapping[int, int]], *, compacted: bool = False) -> list[int]:
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
        and len({log.get(offset) for log in logs if not compacted or offset in log}) > 1
    )


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"
