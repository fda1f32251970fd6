"""Findings as events of the topic that the stream reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemark.core.codec import encode_lone_event
from tidemark.core.events import Audit
from tidemark.core.identity import group_of
from tidemark.kafka.send import Record, send_to_topic
from tidemark.settings import Settings

COLLECTOR: Final = "tidemark-audit"


def publish_findings(settings: Settings, cluster: str, findings: Sequence[Audit]) -> None:
    """Sends each finding to the Kafka partition of its partition. Raises ClusterError."""

    def record(event: Audit, partitions: int) -> Record:
        group = group_of(cluster, event.topic, event.partition, partitions)
        return group, None, encode_lone_event(cluster, COLLECTOR, event)

    send_to_topic(
        settings.kafka,
        settings.topics.replica_state,
        lambda partitions: [record(event, partitions) for event in findings],
        "The findings may not be published: try again.",
    )
