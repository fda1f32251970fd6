"""Metadata that did not change is not merged again: the inventory is as if it were."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.collect.codecs.metadata_image import (
    BrokerAddress,
    MetadataImage,
    PartitionMetadata,
    TopicMetadata,
)
from tidemark.collect.metadata.inventory import Inventory, MetadataChanges
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.settings import Cluster

NAMES = ("a", "b", "hidden")

PARTITIONS = st.builds(
    PartitionMetadata,
    leader=st.sampled_from([1, 1, 2, 3, -1]),
    leader_epoch=st.integers(0, 2),
    replicas=st.sampled_from([(1, 2), (2, 1, 3)]),
    in_sync=st.sampled_from([(1, 2), (1,)]),
    error=st.sampled_from([0, 0, 5]),
)
TOPICS = st.builds(
    TopicMetadata,
    topic_id=st.sampled_from([None, "one", "one", "two"]),
    error=st.sampled_from([0, 0, 0, 3]),
    partitions=st.dictionaries(st.integers(0, 2), PARTITIONS, max_size=3),
)


@st.composite
def rounds(draw: st.DrawFn) -> list[list[MetadataImage]]:
    """Images over time. Many show the very objects of the image before."""
    topics: dict[str, TopicMetadata] = {}
    found = []
    for number in range(draw(st.integers(1, 8))):
        images = []
        for place in range(draw(st.integers(1, 2))):
            for name in NAMES:
                kind = draw(st.sampled_from(["same"] * 6 + ["other", "gone"]))
                if kind == "gone":
                    topics.pop(name, None)
                elif kind == "other" or (name not in topics and number == 0):
                    topics[name] = draw(TOPICS)
            broker = draw(st.sampled_from([-1, 1, 2, 3]))
            addresses = {b: BrokerAddress("h", b, None) for b in draw(st.sets(st.integers(1, 3)))}
            at = number + 0.1 * place
            images.append(MetadataImage(broker, at, "c", 1, addresses, dict(topics)))
        found.append(images)
    return found


def copied(image: MetadataImage) -> MetadataImage:
    """Equal, and no topic in it is the object that an earlier image had."""
    topics = {
        name: TopicMetadata(t.topic_id, t.error, dict(t.partitions))
        for name, t in image.topics.items()
    }
    return image._replace(topics=topics)


def content(inventory: Inventory) -> Any:
    partitions = {
        place: {
            field.name: getattr(watched, field.name)
            for field in fields(WatchedPartition)
            if field.name not in ("lineage", "newest_epoch")
        }
        | {"reads_left": watched.lineage.reads_left}
        for place, watched in inventory.partitions.items()
    }
    counts = {broker: inventory.counts(broker) for broker in (1, 2, 3)}
    return (
        partitions,
        *(counts, inventory.brokers, inventory.listed, inventory.topics()),
        inventory.left_replicas.take(),
    )


def summary(changes: MetadataChanges) -> Any:
    recreated = sorted((w.topic, w.number, w.topic_id or "") for w in changes.recreated)
    return changes.replan, changes.added, changes.absent, recreated, changes.reassigned


@given(rounds(), st.integers(1, 2), st.data())
@settings(max_examples=60)
def test_settled_topics_are_as_if_they_were_merged_again(
    found: list[list[MetadataImage]], shards: int, data: st.DataObject
) -> None:
    cluster = Cluster(name="c", topics_deny=["hidden"], shards=shards)
    settling, merging = Inventory(cluster, 4), Inventory(cluster, 4)
    for images in found:
        only = data.draw(st.sampled_from([None, 1]))
        ours = settling.apply(images, only)
        theirs = merging.apply([copied(image) for image in images], only)
        assert summary(ours) == summary(theirs)
        assert content(settling) == content(merging)
        if data.draw(st.integers(0, 5)) == 0:
            assert len(settling.remove({"a"})) == len(merging.remove({"a"}))


def test_the_same_metadata_is_merged_once() -> None:
    inventory = Inventory(Cluster(name="c"), 4)
    metadata = PartitionMetadata(1, 0, (1, 2), (1, 2), 0)
    topics = {"a": TopicMetadata(None, 0, {0: metadata})}
    applied: list[Any] = []
    whole = inventory._apply_partition
    inventory._apply_partition = lambda *given: (applied.append(given), whole(*given))[1]  # type: ignore[func-returns-value, method-assign]
    for at in (1.0, 2.0):
        inventory.apply([MetadataImage(b, at + b, "c", 1, {}, topics) for b in (2, 3)])
    assert len(applied) == 1
    watched = inventory.partitions["a", 0]
    assert (watched.metadata_at, watched.metadata_from) == (5.0, [2, 3])


def test_a_shard_without_a_partition_of_a_topic_does_not_take_it_for_new_each_time() -> None:
    topics = {"a": TopicMetadata(None, 0, {0: PartitionMetadata(1, 0, (1, 2), (1, 2), 0)})}
    shards = [Inventory(Cluster(name="c", shard=n, shards=2), 4) for n in (0, 1)]
    for at in (1.0, 2.0):
        found = [shard.apply([MetadataImage(1, at, "c", 1, {}, topics)]) for shard in shards]
        new = sorted(changes.added for changes in found)
        assert new == ([set(), {"a"}] if at == 1.0 else [set(), set()])
