"""The replicas that left an in-sync set between two passes."""

from __future__ import annotations

from tidemark.collect.codecs.metadata_image import PartitionMetadata
from tidemark.collect.metadata.led_shrinks import LedShrinks
from tidemark.collect.watched.watched_partition import WatchedPartition


class LeftReplicas:
    """By broker, the partitions whose in-sync set it left since `take`."""

    def __init__(self) -> None:
        self.led_shrinks = LedShrinks()
        self._left: dict[int, list[WatchedPartition]] = {}

    def note(self, watched: WatchedPartition, metadata: PartitionMetadata) -> None:
        """Before `metadata` is applied. What a reassignment removed has not left by itself."""
        removing = watched.reassignment.removing
        left = {
            broker
            for broker in set(watched.metadata.in_sync) - set(metadata.in_sync)
            if broker in metadata.replicas and broker not in removing
        }
        for broker in left:
            watched.shrinks[broker] = watched.shrinks.get(broker, 0) + 1
            self._left.setdefault(broker, []).append(watched)
        # A change of the leader is the controller's.
        if left and 0 <= metadata.leader == watched.metadata.leader:
            self.led_shrinks.note(metadata.leader, frozenset(left))

    def take(self) -> dict[int, list[str]]:
        """By broker, names of partitions. Those whose in-sync set it left most often come first."""
        left, self._left = self._left, {}
        names = {}
        for broker, found in left.items():
            often = sorted(((w.shrinks[broker], w.topic, w.number) for w in found), reverse=True)
            names[broker] = [f"{topic}-{number}" for _, topic, number in often]
        return names
