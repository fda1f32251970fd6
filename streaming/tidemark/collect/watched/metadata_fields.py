"""What the observations of a partition show of its metadata: the same until that changes."""

from __future__ import annotations

from typing import Final, NamedTuple

from tidemark.collect.codecs.metadata_image import EligibleReplicas, PartitionMetadata, Reassignment
from tidemark.collect.codecs.topic_configuration import TopicConfiguration
from tidemark.core.events import Observation

_NOT_READ: Final = EligibleReplicas()


class ShownMetadata(NamedTuple):
    """The newest reads of a partition. While they are equal, so are the fields made of them."""

    metadata: PartitionMetadata
    eligible: EligibleReplicas
    reassignment: Reassignment
    configuration: TopicConfiguration
    leaderless: bool


def metadata_observation(
    topic: str, number: int, topic_id: str | None, shown: ShownMetadata
) -> Observation:
    """Without times, and without what the pass answers. Its copies share the lists."""
    metadata, minimum = shown.metadata, shown.configuration.min_in_sync
    if minimum is not None and shown.configuration.min_is_bounded:
        # As Partition.effectiveMinIsr.
        minimum = min(minimum, len(metadata.replicas))
    eligible = shown.eligible if shown.eligible.is_of(metadata) else _NOT_READ
    return Observation(
        topic=topic,
        partition=number,
        observed_at=0.0,
        topic_id=topic_id,
        leader=metadata.leader if metadata.leader >= 0 else None,
        leader_epoch=metadata.leader_epoch if metadata.leader_epoch >= 0 else None,
        leaderless=shown.leaderless,
        replicas=list(metadata.replicas),
        in_sync_replicas=list(metadata.in_sync) if metadata.in_sync_known else None,
        eligible_leader_replicas=eligible.eligible,
        last_known_eligible_leader_replicas=eligible.last_known,
        adding=list(shown.reassignment.adding),
        removing=list(shown.reassignment.removing),
        effective_min_in_sync_replicas=None
        if minimum is None or not metadata.replicas
        else max(1, minimum),
    )
