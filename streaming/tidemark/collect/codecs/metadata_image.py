"""One broker's image of the cluster metadata, which may be older than another broker's.

Mirrors MetadataResponse and DescribeTopicPartitionsResponse.
"""

from __future__ import annotations

import base64
import uuid
from typing import Any, Final, NamedTuple

UNKNOWN_TOPIC_OR_PARTITION: Final = 3
LEADER_NOT_AVAILABLE: Final = 5
LISTENER_NOT_FOUND: Final = 72

# A topic and the number of a partition.
TopicPartition = tuple[str, int]


class BrokerAddress(NamedTuple):
    host: str
    port: int
    rack: str | None

    def bounded(self) -> BrokerAddress:
        """As events can carry it. What is no port becomes 0, to which nobody connects."""
        port = self.port if 0 < self.port < 65536 else 0
        return BrokerAddress(self.host[:255], port, self.rack and self.rack[:255])


class PartitionMetadata(NamedTuple):
    """One partition. Leader −1: none, or none reachable. Epoch −1: not reported by old brokers."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    error: int
    # False: brokers before 2.4 leave the in-sync set out of an answer without a leader.
    in_sync_known: bool = True

    @property
    def placement(self) -> tuple[int, int, tuple[int, ...]]:
        return self.leader, self.leader_epoch, self.replicas

    @property
    def all_in_sync(self) -> bool:
        return self.in_sync_known and len(self.in_sync) == len(self.replicas)


class TopicMetadata(NamedTuple):
    topic_id: str | None
    error: int
    partitions: dict[int, PartitionMetadata]


class MetadataImage(NamedTuple):
    """One broker's answer and when it was read (monotonic). Broker < 0: a bootstrap server."""

    broker: int
    at: float
    cluster_id: str | None
    controller: int
    brokers: dict[int, BrokerAddress]
    topics: dict[str, TopicMetadata]


class Reassignment(NamedTuple):
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class EligibleReplicas(NamedTuple):
    """Eligible leader replicas and last known ones (KIP-966); null where not reported.

    DescribeTopicPartitions reads them at another moment than Metadata reads the leader. The leader
    epoch and the in-sync set of the same answer show whether both are of one moment.
    """

    eligible: list[int] | None = None
    last_known: list[int] | None = None
    leader_epoch: int = -1
    in_sync: tuple[int, ...] = ()

    def is_of(self, metadata: PartitionMetadata) -> bool:
        """Whether no election or change of the in-sync set lies between this and the metadata."""
        return self.leader_epoch == metadata.leader_epoch and (
            self.in_sync == metadata.in_sync or set(self.in_sync) == set(metadata.in_sync)
        )


def topic_id_text(value: Any) -> str | None:
    """A topic id as Kafka writes it (22 characters); null for the zero id of older brokers."""
    if not isinstance(value, uuid.UUID) or value.int == 0:
        return None
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
