"""The topics whose metadata is the same in each read: nearly all, nearly always.

A read of the metadata gives the same object for a topic that has not changed (`codecs.metadata`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from tidemark.collect.codecs.metadata_image import MetadataImage, TopicMetadata, TopicPartition
from tidemark.collect.watched.watched_partition import WatchedPartition


class _SettledTopic(NamedTuple):
    """A topic whose partitions all have leaders and this metadata."""

    metadata: TopicMetadata
    partitions: list[WatchedPartition]


class SettledTopics:
    """Topics whose newest metadata is that of all their watched partitions."""

    def __init__(self) -> None:
        self._by_name: dict[str, _SettledTopic] = {}

    def unchanged_in(self, images: list[MetadataImage]) -> set[str]:
        """Those of which every image shows the metadata that is known."""
        return {
            name
            for name, settled in self._by_name.items()
            if all(image.topics.get(name) is settled.metadata for image in images)
        }

    def refresh(self, names: set[str], images: list[MetadataImage]) -> None:
        """The metadata of these topics was read again, and is the same."""
        agreeing = sorted({image.broker for image in images if image.broker >= 0})
        newest = max(image.at for image in images) if images else 0.0
        read_at = {image.broker: image.at for image in sorted(images, key=lambda i: i.at)}
        for name in names:
            for watched in self._by_name[name].partitions:
                watched.metadata_from = agreeing
                # As `newest_of`: the leader's own image comes first.
                watched.metadata_at = read_at.get(watched.metadata.leader, newest)

    def settle(
        self,
        name: str,
        reports: list[tuple[MetadataImage, TopicMetadata]],
        partitions: Mapping[TopicPartition, WatchedPartition],
        is_own: Callable[[str, int], bool],
        size: int,
    ) -> None:
        """Notes whether a topic is settled after its `reports` were applied.

        It is if all reports are one object, which is what all its watched partitions have, and each
        of them has a leader. Those are `size` partitions, as many as the metadata has of the shard.
        """
        self.forget(name)
        if not reports or any(topic is not reports[0][1] for _, topic in reports):
            return
        topic = reports[0][1]
        found = [
            watched
            for number, metadata in topic.partitions.items()
            if (watched := partitions.get((name, number))) is not None
            and watched.metadata == metadata
            and watched.topic_id == topic.topic_id
            and watched.leader is not None
        ]
        if len(found) == size == sum(map(partial(is_own, name), topic.partitions)):
            self._by_name[name] = _SettledTopic(topic, found)

    def forget(self, name: str) -> None:
        self._by_name.pop(name, None)
