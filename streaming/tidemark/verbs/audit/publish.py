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
    """Sends each finding to the Kafka partition of its partition. Raises ClusterError."""

    def records(partitions: int) -> list[Record]:
        groups = [group_of(cluster, each.topic, each.partition, partitions) for each in findings]
        values = [_record(cluster, each) for each in findings]
        return [(group, None, value) for group, value in zip(groups, values, strict=True)]

    cure = "The findings may not be published: try again."
    send_to_topic(settings.kafka, settings.topics.replica_state, records, cure)


def _record(cluster: str, event: Audit) -> bytes:
    """The sender is not a collector: it has no pass and owns no partition."""
    return encode_batch(
        Batch(
            v=2,
            cluster=cluster,
            collector=COLLECTOR,
            collector_epoch=int(event.observed_at * 1000),
            pass_number=0,
            events=[event],
        )
    )
