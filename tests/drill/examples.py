"""Alerts, acknowledgements and marks for the tests of drills."""

from __future__ import annotations

from typing import Any

from tidemark.core.records import Alert
from tidemark_lab.brokers.load_producer import AcknowledgedRecord
from tidemark_lab.drills.pipeline import ReceivedAlert
from tidemark_lab.drills.stage import TOPIC, Mark

PLACE = (TOPIC, 0)


def received(
    name: str,
    at: float,
    severity: str = "warning",
    *,
    partition: int | None = 0,
    broker: int | None = None,
    state: Any = "firing",
    **evidence: Any,
) -> ReceivedAlert:
    labels = {"alertname": name, "kafka_cluster": "drill", "severity": severity}
    if partition is not None:
        labels |= {"topic": TOPIC, "partition": str(partition)}
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
    )


def acknowledged(offset: int, record_id: int, at: float, partition: int = 0) -> AcknowledgedRecord:
    return AcknowledgedRecord(TOPIC, partition, offset, record_id, at)


def marks(*keys: str, at: float = 100.0) -> dict[str, Mark]:
    return {key: Mark(key, "kill and start", "broker 1", at) for key in keys}
