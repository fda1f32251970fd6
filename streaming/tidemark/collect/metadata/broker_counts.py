"""Partitions by broker, as the metadata has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tidemark.collect.codecs.metadata_image import PartitionMetadata


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
