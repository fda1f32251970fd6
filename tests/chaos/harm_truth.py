"""What really happened under harmful faults: which acknowledged record was lost, and when.

The truth is the producer's record of acknowledged offsets, and a full reading of each replica from
disk after each fault, when every replica is in sync. Pure.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.chaos.disk import Log
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.brokers.load_producer import AcknowledgedRecord


class HarmRecord(NamedTuple):
    """A fault. `harmed_at`: the moments before what may lose records, ascending."""

    name: str
    detail: str
    begin: float
    end: float
    harmed_at: tuple[float, ...]


class LostRecord(NamedTuple):
    """An acknowledged record that no replica has after a fault, the number of which is `fault`.

    `epoch`: of its batch, where it was on disk when the fault before was over.
    """

    fault: int
    topic: str
    partition: int
    offset: int
    id: int
    acked_at: float
    epoch: int | None = None

    @property
    def place(self) -> Place:
        return self.topic, self.partition


class Deletion(NamedTuple):
    """DeleteRecords up to an offset."""

    at: float
    topic: str
    partition: int
    offset: int


# A partition -> the replicas' logs, by broker.
Logs = Mapping[Place, Mapping[int, Log]]


@dataclass
class HarmTruth:
    """A run's faults in order and what they lost. `error`: the reason why it ended early."""

    seed: int
    faults: list[HarmRecord] = field(default_factory=list)
    lost: list[LostRecord] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    acknowledged: int = 0
    error: str | None = None
    kafka: str = KAFKA_VERSION
    # Whether the collector reads the metadata log.
    metadata_log: bool = False

    def as_json(self) -> str:
        """truth.json. Times are Unix seconds."""
        return json.dumps(vars(self)) + "\n"


def parse_harm_truth(text: str) -> HarmTruth:
    """The inverse of `HarmTruth.as_json`."""
    document: dict[str, Any] = json.loads(text)
    return HarmTruth(
        **{
            **document,
            "faults": [
                HarmRecord(name, detail, begin, end, tuple(harmed_at))
                for name, detail, begin, end, harmed_at in document["faults"]
            ],
            "lost": [LostRecord(*one) for one in document["lost"]],
            "deletions": [Deletion(*one) for one in document["deletions"]],
        }
    )


class Ledger:
    """The acknowledged records that are on every replica, from one reading to the next."""

    def __init__(self, truth: HarmTruth) -> None:
        self._truth = truth
        self._taken = 0
        self._held: dict[Place, list[AcknowledgedRecord]] = defaultdict(list)
        # Of the held records that an earlier reading found.
        self._epochs: dict[int, int] = {}

    def take(self, acknowledged: Sequence[AcknowledgedRecord]) -> None:
        """Adds the records that were acknowledged since."""
        for record in acknowledged[self._taken :]:
            self._held[record.topic, record.partition].append(record)
        self._taken = len(acknowledged)

    def disagreements(self, logs: Logs) -> list[str]:
        """Partitions where some replicas have a record that others lack."""
        found = []
        for place, held in self._held.items():
            for record in held:
                having = [b for b, log in logs[place].items() if _has(log, record)]
                if having and len(having) < len(logs[place]) and not self._is_deleted(record):
                    found.append(
                        f"{place[0]}-{place[1]}: record {record.id} at offset {record.offset} is "
                        f"on {having} of {[*logs[place]]}"
                    )
                    break
        return found

    def settle(self, logs: Logs, fault: int) -> list[LostRecord]:
        """Moves what no replica has from the held records to the truth's lost ones."""
        lost = []
        for place, held in self._held.items():
            kept = []
            for record in held:
                if self._is_deleted(record):
                    continue
                log = next((log for log in logs[place].values() if _has(log, record)), None)
                if log is None:
                    lost.append(LostRecord(fault, *record, self._epochs.get(record.id)))
                else:
                    kept.append(record)
                    self._epochs[record.id] = log[record.offset].epoch
            self._held[place] = kept
        self._truth.lost += lost
        return lost

    def _is_deleted(self, record: AcknowledgedRecord) -> bool:
        return is_deleted(self._truth.deletions, record)


def is_deleted(deletions: Iterable[Deletion], record: AcknowledgedRecord | LostRecord) -> bool:
    """Whether a deletion removed it, be it on disk or not."""
    return any(
        deletion.at >= record.acked_at
        and deletion.offset > record.offset
        and (deletion.topic, deletion.partition) == (record.topic, record.partition)
        for deletion in deletions
    )


def _has(log: Log, record: AcknowledgedRecord) -> bool:
    stored = log.get(record.offset)
    return stored is not None and stored.id == record.id
