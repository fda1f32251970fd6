"""Alerts, acknowledgements, logs and faults for the tests of the judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemark.core.records import Alert
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.load_producer import AcknowledgedRecord
from tidemark_lab.brokers.replica_logs import Log, Stored
from tidemark_lab.drills.stage import TOPIC
from tidemark_lab.faults.fault import FaultRecord
from tidemark_lab.judge.expected import Mark, ReceivedAlert
from tidemark_lab.judge.samples import Reading, Samples

PLACE = (TOPIC, 0)


def received(
    name: str,
    at: float,
    severity: str = "warning",
    *,
    topic: str = TOPIC,
    partition: int | None = 0,
    broker: int | None = None,
    state: Any = "firing",
    **evidence: Any,
) -> ReceivedAlert:
    labels = {"alertname": name, "kafka_cluster": "drill", "severity": severity}
    if partition is not None:
        labels |= {"topic": topic, "partition": str(partition)}
    if broker is not None:
        labels["broker"] = str(broker)
    fingerprint = "/".join(f"{key}={value}" for key, value in sorted(labels.items()))
    alert = Alert(
        id=f"{fingerprint}.{at}.{state}",
        fingerprint=fingerprint,
        state=state,
        labels=labels,
        annotations={"summary": "It happened.", "description": "It happened here."},
        evidence=evidence,
        starts_at=at,
        at=at,
    )
    return ReceivedAlert(alert, at)


def loss(start: int, end: int, seen_at: float, partition: int = 0) -> ReceivedAlert:
    return received(
        "KafkaCommittedDataLoss",
        seen_at + 5,
        "critical",
        partition=partition,
        proven=[start, end],
        committed_seen_at=seen_at,
        leader=2,
        leader_before=1,
        leader_epoch_before=0,
    )


def acknowledged(offset: int, record_id: int, at: float, partition: int = 0) -> AcknowledgedRecord:
    return AcknowledgedRecord(TOPIC, partition, offset, record_id, at)


def log(ids: Mapping[int, int], epoch: int = 0) -> Log:
    """Offset -> record id, all of one epoch."""
    return {offset: Stored(record_id, epoch) for offset, record_id in ids.items()}


def replicas(**ids: Mapping[int, int]) -> dict[int, dict[Place, Log]]:
    """The logs of PLACE by broker: `_1={0: 7}` has record 7 at offset 0 on broker 1."""
    return {int(broker[1:]): {PLACE: log(found)} for broker, found in ids.items()}


def marks(*keys: str, at: float = 100.0) -> dict[str, Mark]:
    return {key: Mark(key, "kill and start", "broker 1", at) for key in keys}


def fault(
    name: str = "pause", begin: float = 100.0, held: float = 5.0, *, broker: int = 2
) -> FaultRecord:
    healed_at = begin + held
    return FaultRecord(name, "d", (broker,), (PLACE,), begin, healed_at, healed_at + 1, (begin,))


def sampled(*readings: tuple[float, int]) -> dict[Place, Samples]:
    """(time, high watermark) of each reading from the leader of epoch 0."""
    return {PLACE: Samples([Reading(at, at, committed, 0) for at, committed in readings])}
