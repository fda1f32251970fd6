"""What really happened: the producer's acknowledgements against every replica on disk. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.local.cluster import Place
from tidemark.local.load_producer import AcknowledgedRecord

# Half open.
Range = tuple[int, int]
# broker -> partition -> offset -> record id
Replicas = Mapping[int, Mapping[Place, Mapping[int, int]]]


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
    acknowledged: Sequence[AcknowledgedRecord], replicas: Replicas, leaders: Mapping[Place, int]
) -> Truth:
    """Compares what was acknowledged with what the logs hold at the end of a drill."""
    lost: dict[Place, list[AcknowledgedRecord]] = {}
    kept: dict[Place, dict[int, float]] = {}
    held = {place: replicas.get(leader, {}).get(place) for place, leader in leaders.items()}
    for record in acknowledged:
        place = (record.topic, record.partition)
        log = held.get(place)
        if log is None:
            continue
        if log.get(record.offset) == record.id:
            kept.setdefault(place, {})[record.offset] = record.acked_at
        else:
            lost.setdefault(place, []).append(record)
    diverged = {
        place: found
        for place in leaders
        if (found := _differences([logs[place] for logs in replicas.values() if place in logs]))
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


def _differences(logs: Sequence[Mapping[int, int]]) -> list[int]:
    """From the highest first offset on: an older part may be deleted on one replica only."""
    if len(logs) < 2:
        return []
    start = max((min(log, default=0) for log in logs), default=0)
    offsets = set().union(*logs)
    return sorted(
        offset
        for offset in offsets
        if offset >= start and len({log.get(offset) for log in logs}) > 1
    )


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"
