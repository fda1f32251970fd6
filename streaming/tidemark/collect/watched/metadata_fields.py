"""What the observations of a partition show of its metadata: the same until that changes."""

from __future__ import annotations

from typing import Final

from tidemark.collect.codecs.metadata_image import EligibleReplicas, PartitionMetadata, Reassignment
from tidemark.collect.codecs.topic_configuration import TopicConfiguration

_NOT_READ: Final = EligibleReplicas()


class MetadataFields:
    """Fields as in `events.Observation`. Observations share the lists: they are not changed."""

    __slots__ = (
        "adding",
        "all_in_sync",
        "effective_min_in_sync",
        "eligible",
        "in_sync",
        "last_known",
        "made_of",
        "removing",
        "replicas",
    )

    def __init__(
        self,
        metadata: PartitionMetadata,
        eligible: EligibleReplicas,
        reassignment: Reassignment,
        configuration: TopicConfiguration,
    ) -> None:
        self.made_of = (metadata, eligible, reassignment, configuration)
        self.replicas = list(metadata.replicas)
        self.in_sync = list(metadata.in_sync) if metadata.in_sync_known else None
        self.all_in_sync = metadata.all_in_sync
        if not eligible.is_of(metadata):
            eligible = _NOT_READ
        self.eligible, self.last_known = eligible.eligible, eligible.last_known
        self.adding, self.removing = list(reassignment.adding), list(reassignment.removing)
        minimum = configuration.min_in_sync
        # min(min.insync.replicas, number of replicas), as Partition.effectiveMinIsr.
        self.effective_min_in_sync = (
            None
            if minimum is None or not self.replicas
            else max(1, min(minimum, len(self.replicas)))
        )
