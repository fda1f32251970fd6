"""The watched partitions, merged from the metadata images of the brokers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tidemark.collect.codecs.metadata_image import (
    BrokerAddress,
    EligibleReplicas,
    MetadataImage,
    Reassignment,
    TopicMetadata,
    TopicPartition,
)
from tidemark.collect.codecs.topic_configuration import TopicConfiguration
from tidemark.collect.metadata.left_replicas import LeftReplicas
from tidemark.collect.metadata.partition_reports import (
    BrokerCounts,
    PartitionReport,
    agreeing_brokers,
    complete,
    count_partitions,
    is_leaderless,
    newest_of,
)
from tidemark.collect.metadata.settled_topics import SettledTopics
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.broker_outcome_texts import NOT_CHECKED
from tidemark.core.events import SHARED_ADDRESS, UNLISTED
from tidemark.core.identity import group_of
from tidemark.settings import Cluster

# Brokers with old images catch up within this many reads of the metadata: of a topic without an id,
# which may have been created again, and of one whose metadata may be restored from a backup.
OLDER_EPOCH_READS: Final = 3
RESTORED_EPOCH_READS: Final = 10


@dataclass(slots=True)
class MetadataChanges:
    """The changes that a round of images made."""

    # Requests must be planned again.
    replan: bool = False
    # Topics with partitions that were not watched before: their configuration is unknown.
    added: set[str] = field(default_factory=set)
    # Perhaps deleted: to be confirmed.
    absent: set[str] = field(default_factory=set)
    # Partitions of topics that were deleted and created again.
    recreated: list[WatchedPartition] = field(default_factory=list)
    # A known partition has other replicas: a reassignment began or ended.
    reassigned: bool = False


class Inventory:
    """Watched partitions. `groups`: the number of Kafka partitions of the event topic."""

    def __init__(self, cluster: Cluster, groups: int) -> None:
        self.partitions: dict[TopicPartition, WatchedPartition] = {}
        self.brokers: dict[int, BrokerAddress] = {}
        # Those of them that no image of the newest round lists.
        self.no_longer_listed: set[int] = set()
        self.cluster_id: str | None = None
        self.controller = -1
        # All topics in the newest images, watched or not.
        self.listed: set[str] = set()
        self._cluster = cluster
        self._groups = groups
        self._allow = [re.compile(pattern) for pattern in cluster.topics_allow]
        self._deny = [re.compile(pattern) for pattern in cluster.topics_deny]
        self._wanted: dict[str, bool] = {}
        # How many watched partitions each topic has.
        self._sizes = Counter[str]()
        self._settled = SettledTopics()
        self._counts: dict[int, BrokerCounts] | None = None
        self._all_in_sync: bool | None = None
        self._only_current_broker: int | None = None
        self._stopped: frozenset[int] = frozenset()
        self.left_replicas = LeftReplicas()

    def wants(self, topic: str) -> bool:
        if topic not in self._wanted:
            denied = any(pattern.fullmatch(topic) for pattern in self._deny)
            allowed = any(pattern.fullmatch(topic) for pattern in self._allow)
            self._wanted[topic] = allowed and not denied
        return self._wanted[topic]

    def topics(self) -> set[str]:
        return set(self._sizes)

    def apply(
        self,
        images: list[MetadataImage],
        only_current_broker: int | None = None,
        stopped: Collection[int] = (),
    ) -> MetadataChanges:
        """Merges images.

        `only_current_broker`: the only live broker, if its image is current. `stopped`: brokers
        that answered before and refuse connections now.
        """
        changes = MetadataChanges()
        self._only_current_broker, self._stopped = only_current_broker, frozenset(stopped)
        known = self.topics()
        self.listed = {name for image in images for name in image.topics}
        for image in sorted(images, key=lambda image: image.at):
            # One broker that says what no event can carry costs no other one its watch.
            self.brokers.update(
                (b, address.bounded()) for b, address in image.brokers.items() if b >= 0
            )
            self.cluster_id = (image.cluster_id or "")[:255] or self.cluster_id
            self.controller = image.controller
        self._forget_brokers(images)
        settled = self._settled.unchanged_in(images)
        current = [i for i in images if not self._is_behind(i, images, settled)] or images
        self._settled.refresh(settled, current)
        listed = {name for image in current for name, t in image.topics.items() if t.partitions}
        complete: dict[str, set[int]] = {}
        reports_of: dict[str, list[tuple[MetadataImage, TopicMetadata]]] = {}
        for name in sorted(filter(self.wants, listed - settled)):
            found = [image for image in current if name in image.topics]
            reports = [(i, i.topics[name]) for i in found if not i.topics[name].error]
            numbers = {number for _, topic in reports for number in topic.partitions}
            for number in filter(partial(self.is_own, name), numbers):
                self._apply_partition(name, number, reports, changes)
            reports_of[name] = reports
            if name in known and len(reports) >= 2:
                complete[name] = numbers
        if complete:
            # A topic that was created again may have fewer partitions.
            changes.recreated += self._remove(
                (topic, number)
                for topic, number in self.partitions
                if topic in complete and number not in complete[topic]
            )
        if reports_of:
            self._counts = self._all_in_sync = None
            for name, reports in reports_of.items():
                size = self._sizes[name]
                self._settled.settle(name, reports, self.partitions, self.is_own, size)
        if len({image.broker for image in images if image.broker >= 0}) >= 2:
            changes.absent = known - self.listed
        changes.replan |= bool(changes.recreated)
        return changes

    def _is_epoch_back(
        self, watched: WatchedPartition, newest: PartitionReport, reports: list[PartitionReport]
    ) -> bool:
        """Whether two brokers have shown an older epoch in several reads, and none a newer one."""
        is_back = (
            0 <= newest.metadata.leader_epoch < watched.metadata.leader_epoch
            and len({report.image.broker for report in reports if report.image.broker >= 0}) >= 2
        )
        watched.older_epoch_reads = watched.older_epoch_reads + 1 if is_back else 0
        reads = OLDER_EPOCH_READS if newest.topic_id is None else RESTORED_EPOCH_READS
        return watched.older_epoch_reads >= reads

    def group_of(self, topic: str, number: int) -> int:
        """The Kafka partition of the event topic for the events of a partition."""
        return group_of(self._cluster.name, topic, number, self._groups)

    def is_own(self, topic: str, number: int) -> bool:
        """Whether the partition is in this collector's shard."""
        shards = self._cluster.shards
        return (
            shards == 1
            or group_of(self._cluster.name, topic, number, shards) == self._cluster.shard
        )

    def _is_behind(
        self, image: MetadataImage, images: list[MetadataImage], settled: set[str]
    ) -> bool:
        """Whether an image is older than another, or than the inventory, by any leader epoch.

        Then the rest of it is older too: in-sync replicas, which change within an epoch, may be out
        of date. The `settled` topics are the same in all images and in the inventory.
        """
        for name, topic in image.topics.items():
            if name in settled or not self.wants(name):
                continue
            others = [
                other.topics[name].partitions
                for other in images
                if other is not image
                and name in other.topics
                and other.topics[name].topic_id == topic.topic_id
            ]
            for number, metadata in topic.partitions.items():
                epochs = [other[number].leader_epoch for other in others if number in other]
                watched = self.partitions.get((name, number))
                if watched is not None and watched.topic_id == topic.topic_id:
                    epochs.append(watched.metadata.leader_epoch)
                if epochs and metadata.in_sync_known and metadata.leader_epoch < max(epochs):
                    return True
        return False

    def _forget_brokers(self, images: list[MetadataImage]) -> None:
        """Keeps a broker that no image lists only while a watched partition is assigned to it."""
        unlisted = set(self.brokers).difference(*(image.brokers for image in images))
        if unlisted:
            assigned = {b for w in self.partitions.values() for b in w.metadata.replicas}
            for broker in unlisted - assigned:
                del self.brokers[broker]
        self.no_longer_listed = unlisted & self.brokers.keys()

    def _apply_partition(
        self,
        topic: str,
        number: int,
        images: list[tuple[MetadataImage, TopicMetadata]],
        changes: MetadataChanges,
    ) -> None:
        reports = [
            PartitionReport(image, t.topic_id, t.partitions[number])
            for image, t in images
            if number in t.partitions
        ]
        watched = self.partitions.get((topic, number))
        if watched is not None and watched.topic_id is not None:
            same = [report for report in reports if report.topic_id == watched.topic_id]
            if same:
                reports = same
            elif len(reports) < 2 or len({report.topic_id for report in reports}) > 1:
                return
            else:
                # Two brokers report the same new id: the topic was deleted and created again.
                changes.recreated.append(watched)
                watched = None
        newest = newest_of(reports)
        metadata = newest.metadata
        if watched is not None and self._is_epoch_back(watched, newest, reports):
            # The replicas' answers decide whether it is the same topic.
            watched = None
        if watched is not None:
            metadata = complete(metadata, watched.metadata)
        if watched is None:
            group = self.group_of(topic, number)
            watched = WatchedPartition(topic, number, newest.topic_id, group, metadata)
            self._sizes[topic] += (topic, number) not in self.partitions
            self.partitions[topic, number] = watched
            changes.added.add(topic)
            changes.replan = True
        elif metadata.leader_epoch < watched.metadata.leader_epoch:
            # The image is old: an epoch never decreases within one topic id.
            return
        self.left_replicas.note(watched, metadata)
        changes.reassigned |= {*metadata.replicas} != {*watched.metadata.replicas}
        changes.replan |= watched.update(metadata)
        identified = [report for report in reports if report.image.broker >= 0]
        watched.metadata_from = agreeing_brokers(identified, newest)
        watched.metadata_at = newest.image.at
        watched.leaderless = is_leaderless(
            newest.metadata,
            {r.image.broker: r.metadata for r in identified},
            self._only_current_broker,
            self._stopped,
        )

    def set_eligible(self, found: dict[TopicPartition, EligibleReplicas]) -> None:
        for place, eligible in found.items():
            watched = self.partitions.get(place)
            if watched is not None and watched.eligible != eligible:
                watched.eligible, watched.is_settled = eligible, False

    def set_reassignments(self, found: dict[TopicPartition, Reassignment]) -> None:
        """All other partitions are under no reassignment."""
        none = Reassignment()
        for place, watched in self.partitions.items():
            reassignment = found.get(place, none)
            if watched.reassignment != reassignment:
                watched.reassignment, watched.is_settled = reassignment, False

    def set_configurations(self, found: dict[str, TopicConfiguration]) -> None:
        for (topic, _), watched in self.partitions.items():
            if topic in found:
                # Equal ones are shared: comparing them is cheap for every partition.
                if found[topic] == watched.configuration:
                    found[topic] = watched.configuration
                else:
                    watched.is_settled = False
                watched.configuration, watched.has_unsent = found[topic], True

    def set_sizes(self, broker: int, found: dict[TopicPartition, int]) -> None:
        """The sizes of the replicas on a broker; unknown for those that it does not list."""
        for place, watched in self.partitions.items():
            size = found.get(place)
            if size is not None:
                watched.sizes[broker], watched.has_unsent = size, True
            else:
                watched.sizes.pop(broker, None)

    def remove(self, topics: set[str]) -> list[WatchedPartition]:
        """Forgets deleted topics. Returns their partitions."""
        for topic in topics:
            self._wanted.pop(topic, None)
        self._counts = self._all_in_sync = None
        return self._remove((topic, n) for topic, n in self.partitions if topic in topics)

    def _remove(self, places: Iterable[TopicPartition]) -> list[WatchedPartition]:
        removed = [self.partitions.pop(place) for place in list(places)]
        for watched in removed:
            self._settled.forget(watched.topic)
            self._sizes[watched.topic] -= 1
            if not self._sizes[watched.topic]:
                del self._sizes[watched.topic]
        return removed

    def counts(self, broker: int) -> BrokerCounts:
        return self._all_counts().get(broker, BrokerCounts(0, 0, 0, 0))

    def unlisted(self) -> list[int]:
        """Brokers with replicas that no broker lists, ascending. Not of a share of the cluster."""
        if self._cluster.shards > 1:
            return []
        return sorted(b for b in self._all_counts() if b >= 0 and b not in self.brokers)

    def judge_address(self, broker: int) -> str:
        """Of whoever answers at a broker's address and cannot be asked who it is.

        NOT_CHECKED where it may be taken for the broker, else the outcome that says why not.
        """
        listed = {b: a for b, a in self.brokers.items() if b not in self.no_longer_listed}
        if broker not in listed:
            return UNLISTED
        is_alone = [a[:2] for a in listed.values()].count(listed[broker][:2]) == 1
        return NOT_CHECKED if is_alone else SHARED_ADDRESS

    def _all_counts(self) -> dict[int, BrokerCounts]:
        """Counted once after each change of the metadata."""
        if self._counts is None:
            self._counts = count_partitions(w.metadata for w in self.partitions.values())
        return self._counts

    @property
    def all_in_sync(self) -> bool:
        """Of all partitions; looked at once after each change of the metadata."""
        if self._all_in_sync is None:
            self._all_in_sync = all(w.metadata.all_in_sync for w in self.partitions.values())
        return self._all_in_sync
