"""What the images of several brokers report of one partition."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.collect.codecs.metadata_image import MetadataImage, PartitionMetadata


class PartitionReport(NamedTuple):
    """One partition in one broker's image."""

    image: MetadataImage
    topic_id: str | None
    metadata: PartitionMetadata


def newest_of(reports: list[PartitionReport]) -> PartitionReport:
    """That of the newest leader epoch; within it the leader's, then the one read last."""
    return max(
        reports,
        key=lambda r: (r.metadata.leader_epoch, r.image.broker == r.metadata.leader, r.image.at),
    )


def agreeing_brokers(reports: list[PartitionReport], newest: PartitionReport) -> list[int]:
    """The brokers that report the placement and the in-sync set of `newest`, sorted."""
    placement, in_sync = newest.metadata.placement, newest.metadata.in_sync
    return sorted(
        {
            r.image.broker
            for r in reports
            if r.metadata.placement == placement and r.metadata.in_sync == in_sync
        }
    )
