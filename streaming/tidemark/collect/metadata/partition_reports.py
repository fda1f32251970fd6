"""What the images of several brokers report of a partition, and how many partitions each has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidemark.collect.codecs.metadata_image import (
    LEADER_NOT_AVAILABLE,
    LISTENER_NOT_FOUND,
    MetadataImage,
    PartitionMetadata,
)


class BrokerCounts(NamedTuple):
    """See the fields of `events.BrokerAnswer`."""

    preferred: int
    preferred_led: int
    in_sync: int
    serving: int


def count_partitions(partitions: Iterable[PartitionMetadata]) -> dict[int, BrokerCounts]:
    """The counts of each broker that any partition names, as a replica or otherwise."""
    known = list(partitions)
    firsts = [(m.replicas[0], m.leader) for m in known if m.replicas]
    preferred = Counter(first for first, _ in firsts)
    led = Counter(first for first, leader in firsts if leader == first)
    in_sync = Counter(broker for m in known for broker in m.in_sync)
    serving = Counter(
        broker for m in known for broker in {m.leader, *(m.in_sync if len(m.in_sync) > 1 else ())}
    )
    return {
        b: BrokerCounts(preferred[b], led[b], in_sync[b], serving[b])
        for b in {*in_sync, *serving, *(broker for m in known for broker in m.replicas)}
    }


def is_leaderless(
    newest: PartitionMetadata,
    reports: Mapping[int, PartitionMetadata],
    only_current_broker: int | None,
    stopped: frozenset[int],
) -> bool:
    """Whether enough brokers agree that no leader serves. `reports` are by broker.

    One is enough where it has the current image, or where all replicas stopped. Kafka 2.6 with
    ZooKeeper answers as if the leader only lacked the listener: two are enough then where all
    in-sync replicas stopped.
    """
    errors = {
        broker: metadata.error
        for broker, metadata in reports.items()
        if metadata.leader == -1
        and metadata.leader_epoch == newest.leader_epoch
        and metadata.error in (LEADER_NOT_AVAILABLE, LISTENER_NOT_FOUND)
    }
    witnesses = {broker for broker, error in errors.items() if error == LEADER_NOT_AVAILABLE}
    return bool(errors) and (
        len(witnesses) >= 2
        or witnesses == {only_current_broker}
        or stopped.issuperset(newest.replicas)
        or (len(errors) >= 2 and bool(newest.in_sync) and stopped.issuperset(newest.in_sync))
    )


def complete(metadata: PartitionMetadata, known: PartitionMetadata) -> PartitionMetadata:
    """With the known leader epoch and in-sync set where an answer without a leader has none."""
    if metadata.in_sync_known:
        return metadata
    return metadata._replace(leader_epoch=known.leader_epoch, in_sync=known.in_sync)


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
