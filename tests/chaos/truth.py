"""What really happened in a run: the faults, and whether the brokers hold what they acknowledged.

Pure. Benign faults lose nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.load_producer import AcknowledgedRecord, StoredPartition, record_key
from tidemark_lab.faults.node_faults import FaultRecord
from tidemark_lab.faults.topic_faults import Compaction, DeleteRecords, Recreation, RetentionShrink


@dataclass
class Truth:
    """A run's faults in order, and the check of its records.

    `lost` has a text for each acknowledged record that is gone although no fault removed it,
    `removed` the number of those that a fault removed, by topic: it shows that the faults took
    effect. `error`: the reason why the run ended early.
    """

    seed: int
    replication_factor: int
    faults: list[FaultRecord] = field(default_factory=list)
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    removed: dict[str, int] = field(default_factory=dict)
    error: str | None = None

    def as_json(self) -> str:
        """truth.json. Times are Unix seconds."""
        faults = [fault._asdict() for fault in self.faults]
        return json.dumps({**vars(self), "faults": faults}, indent=1) + "\n"


def parse_truth(text: str) -> Truth:
    """The inverse of `Truth.as_json`."""
    document = json.loads(text)
    return Truth(**{**document, "faults": [_fault(one) for one in document["faults"]]})


def _fault(document: Mapping[str, Any]) -> FaultRecord:
    partitions = tuple((topic, partition) for topic, partition in document["partitions"])
    return FaultRecord(
        **{**document, "brokers": tuple(document["brokers"]), "partitions": partitions}
    )


class Comparison(NamedTuple):
    """`lost` and `removed` of a truth."""

    lost: list[str]
    removed: dict[str, int]


def compare_records(
    acknowledged: Sequence[AcknowledgedRecord],
    stored: Mapping[Place, StoredPartition],
    faults: Sequence[FaultRecord],
) -> Comparison:
    """What was acknowledged against what is stored.

    A fault removed a record below the log start of a partition with deletion, one with a newer
    record of its key in a compacted one, and one acknowledged before its topic was created again.
    """
    deleted = _touched(faults, DeleteRecords.name) | _touched(faults, RetentionShrink.name)
    compacted = _touched(faults, Compaction.name)
    recreated = {
        place: fault.end
        for fault in faults
        if fault.name == Recreation.name
        for place in fault.partitions
    }
    newest = {
        place: {record_key(one): offset for offset, one in sorted(stored[place].record_ids.items())}
        for place in compacted & stored.keys()
    }

    def is_removed(place: Place, record: AcknowledgedRecord) -> bool:
        if place in deleted and record.offset < stored[place].log_start_offset:
            return True
        return newest.get(place, {}).get(record_key(record.id), -1) > record.offset

    lost, removed = [], Counter[str]()
    for record in acknowledged:
        place = (record.topic, record.partition)
        found = stored[place].record_ids.get(record.offset)
        if record.acked_at <= recreated.get(place, 0.0):
            removed[record.topic] += 1
            continue
        if found == record.id:
            continue
        if found is None and is_removed(place, record):
            removed[record.topic] += 1
            continue
        holds = "no record" if found is None else f"record {found}"
        lost.append(
            f"{record.topic}-{record.partition}: record {record.id} was acknowledged at offset "
            f"{record.offset}, which holds {holds}"
        )
    return Comparison(lost, dict(removed))


def _touched(faults: Sequence[FaultRecord], name: str) -> set[Place]:
    return {place for fault in faults if fault.name == name for place in fault.partitions}
