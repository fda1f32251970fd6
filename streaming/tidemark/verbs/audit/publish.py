"""Findings as events of the topic that the stream reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemark.core.codec import encode_batch
from tidemark.core.events import Audit, Batch
from tidemark.core.identity import group_of
from tidemark.kafka.send import Record, send_to_topic
from tidemark.settings import Settings

COLLECTOR: Final = "tidemark-audit"


def publish_findings(settings: Settings, cluster: str, findings: Sequence[Audit]) -> None:
    """Sends each finding to the Kafka partition of its partition. Raises ClusterError.

    The sender is not a collector: it has no pass and owns no partition.
    """

    def record(event: Audit, partitions: int) -> Record:
        batch = Batch(
            v=2,
            cluster=cluster,
            collector=COLLECTOR,
            collector_epoch=int(event.observed_at * 1000),
            pass_number=0,
            events=[event],
        )
        group = group_of(cluster, event.topic, event.partition, partitions)
        return group, None, encode_batch(batch)

    send_to_topic(
        settings.kafka,
        settings.topics.replica_state,
        lambda partitions: [record(event, partitions) for event in findings],
        "The findings may not be published: try again.",
    )
