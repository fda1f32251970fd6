from __future__ import annotations

from typing import Any

import pytest

from tidemark.collect.codecs.metadata_image import (
    BrokerAddress,
    MetadataImage,
    PartitionMetadata,
    Reassignment,
    TopicMetadata,
)
from tidemark.collect.codecs.topic_configuration import TopicConfiguration
from tidemark.collect.metadata.inventory import (
    RESTORED_EPOCH_READS,
    Inventory,
    MetadataChanges,
)
from tidemark.settings import Cluster

NODES = {
    1: BrokerAddress("h", 1, None),
    2: BrokerAddress("h", 2, None),
    3: BrokerAddress("h", 3, None),
}


def metadata(
    leader: int = 1,
    epoch: int = 0,
    in_sync: tuple[int, ...] = (1, 2),
    error: int = 0,
    replicas: tuple[int, ...] = (1, 2),
) -> PartitionMetadata:
    return PartitionMetadata(leader, epoch, replicas, in_sync, error)


def image(
    broker: int,
    topics: dict[str, dict[int, PartitionMetadata]],
    at: float = 1.0,
    topic_id: str | None = "id",
) -> MetadataImage:
    return MetadataImage(
        broker,
        at,
        "cluster",
        1,
        NODES,
        {name: TopicMetadata(topic_id, 0, partitions) for name, partitions in topics.items()},
    )


def inventory(**options: object) -> Inventory:
    return Inventory(Cluster(name="c", **options), 4)  # type: ignore[arg-type]


@pytest.fixture
def watched() -> Inventory:
    return inventory()


def test_the_highest_leader_epoch_wins_in_any_order_of_answers(watched: Inventory) -> None:
    watched.apply(
        [
            image(2, {"t": {0: metadata(epoch=3, leader=2)}}, at=1.0),
            image(3, {"t": {0: metadata(epoch=2)}}, at=2.0),
        ]
    )
    one = watched.partitions["t", 0]
    assert (one.leader, one.leader_epoch, one.metadata_from) == (2, 3, [2])
    applied = watched.apply([image(3, {"t": {0: metadata(epoch=1)}}, at=3.0)])
    assert (one.leader, one.leader_epoch, applied.replan) == (2, 3, False)


def test_the_leaders_own_image_wins_within_an_epoch(watched: Inventory) -> None:
    watched.apply(
        [
            image(1, {"t": {0: metadata(in_sync=(1,))}}, at=1.0),
            image(3, {"t": {0: metadata(in_sync=(1, 2))}}, at=2.0),
        ]
    )
    assert watched.partitions["t", 0].metadata.in_sync == (1,)
    assert watched.partitions["t", 0].metadata_from == [1]


def test_an_image_that_is_behind_in_one_partition_is_ignored(watched: Inventory) -> None:
    old = {"t": {0: metadata(), 1: metadata(in_sync=(1, 2))}, "u": {0: metadata(in_sync=(1, 2))}}
    new = {"t": {0: metadata(epoch=1), 1: metadata(in_sync=(2,))}, "u": {0: metadata(in_sync=(2,))}}
    # It leads t-1 by its own image, and answers last.
    for at, views in (
        (1.0, [image(2, new), image(1, old, at=9.0)]),
        (10.0, [image(1, old, at=11.0), image(3, new, at=10.0)]),
    ):
        watched.apply(views)
        assert {place: w.metadata.in_sync for place, w in watched.partitions.items()} == {
            ("t", 0): (1, 2),
            ("t", 1): (2,),
            ("u", 0): (2,),
        }, at
    # A single image counts where it does not contradict the known epochs.
    watched.apply([image(1, old, at=20.0)])
    assert watched.partitions["t", 0].leader_epoch == 1
    assert watched.partitions["u", 0].metadata.in_sync == (1, 2)


def test_an_image_of_a_recreated_topic_is_not_behind(watched: Inventory) -> None:
    watched.apply([image(1, {"t": {0: metadata(epoch=7)}}, topic_id="old")])
    new = {"t": {0: metadata(epoch=0)}}
    assert watched.apply([image(1, new, topic_id="new"), image(2, new, topic_id="new")]).recreated


def test_metadata_of_a_backup_counts_after_reads_of_two_brokers(watched: Inventory) -> None:
    """The topic id is the same, and no broker shows the known epoch any more."""
    known, restored = {"t": {0: metadata(epoch=7)}}, {"t": {0: metadata(epoch=3)}}
    watched.apply([image(1, known)])
    shown = []
    for read in range(RESTORED_EPOCH_READS + 5):
        # At first one broker may only be behind, and once another one shows the known epoch.
        others = {0: [], 4: [image(2, known)]}.get(read, [image(2, restored)])
        changes = watched.apply([image(1, restored), *others])
        shown.append(watched.partitions["t", 0].leader_epoch)
    assert shown.index(3) == 4 + RESTORED_EPOCH_READS
    assert (changes.recreated, changes.absent) == ([], set())


def test_a_change_of_in_sync_replicas_needs_no_new_requests(watched: Inventory) -> None:
    assert watched.apply([image(1, {"t": {0: metadata()}})]).replan
    assert watched.apply([image(1, {"t": {0: metadata(in_sync=(1,))}})]) == MetadataChanges()
    moved = watched.apply([image(1, {"t": {0: metadata(leader=2, epoch=1)}})])
    assert moved.replan


def test_a_recreated_topic_needs_two_brokers(watched: Inventory) -> None:
    watched.apply([image(1, {"t": {0: metadata(epoch=7), 1: metadata()}}, topic_id="old")])
    one = watched.apply(
        [
            image(1, {"t": {0: metadata()}}, topic_id="new"),
            image(2, {"t": {0: metadata(epoch=7), 1: metadata()}}, topic_id="old"),
        ]
    )
    assert (one.recreated, one.added) == ([], set())
    assert watched.partitions["t", 0].topic_id == "old"
    both = watched.apply(
        [
            image(1, {"t": {0: metadata()}}, topic_id="new"),
            image(2, {"t": {0: metadata()}}, topic_id="new"),
        ]
    )
    assert (sorted((w.topic_id, w.number) for w in both.recreated), both.added) == (
        [("old", 0), ("old", 1)],
        {"t"},
    )
    assert [(place, w.topic_id, w.leader_epoch) for place, w in watched.partitions.items()] == [
        (("t", 0), "new", 0)
    ]


def test_a_topic_is_absent_when_two_brokers_omit_it(watched: Inventory) -> None:
    watched.apply([image(1, {"t": {0: metadata()}})])
    assert watched.apply([image(1, {})]).absent == set()
    # A bootstrap server may be the same broker.
    assert watched.apply([image(1, {}), image(-1, {})]).absent == set()
    assert watched.apply([image(1, {}), image(2, {})]).absent == {"t"}
    assert [w.number for w in watched.remove({"t"})] == [0]
    assert watched.partitions == {}


WITHOUT_LEADER = {"t": {0: metadata(leader=-1, epoch=1, in_sync=(), error=5)}}


def without_listener(*brokers: int, in_sync: tuple[int, ...] = (1,)) -> list[MetadataImage]:
    """The leader may only lack the listener of the collector."""
    missing = {"t": {0: metadata(leader=-1, epoch=1, in_sync=in_sync, error=72)}}
    return [image(broker, missing) for broker in brokers]


@pytest.mark.parametrize(
    ("images", "options", "leaderless"),
    [
        # It takes two brokers or the sole witness.
        ([image(1, WITHOUT_LEADER), image(2, WITHOUT_LEADER)], {}, True),
        ([image(1, WITHOUT_LEADER)], {}, False),
        ([image(1, WITHOUT_LEADER)], {"only_current_broker": 1}, True),
        ([image(1, WITHOUT_LEADER)], {"only_current_broker": 2}, False),
        # A bootstrap server may be the same broker.
        ([image(-1, WITHOUT_LEADER), image(1, WITHOUT_LEADER)], {}, False),
        # A missing listener is no leader once the in-sync brokers stopped.
        (without_listener(2, 3), {}, False),
        (without_listener(2, 3), {"stopped": {1}}, True),
        (without_listener(2, 3, in_sync=(1, 2)), {"stopped": {1}}, False),
        # One image may be old: another replica may lead.
        (without_listener(3), {"stopped": {1}}, False),
        (without_listener(3), {"stopped": {1, 2}}, True),
        (without_listener(2, 3, in_sync=()), {"stopped": {1}}, False),
    ],
)
def test_when_a_partition_is_leaderless(
    watched: Inventory, images: list[MetadataImage], options: dict[str, Any], leaderless: bool
) -> None:
    watched.apply(images, **options)
    assert watched.partitions["t", 0].leaderless is leaderless
    assert watched.partitions["t", 0].leader is None


def test_a_leader_of_a_later_epoch_makes_a_partition_not_leaderless(watched: Inventory) -> None:
    watched.apply([image(1, WITHOUT_LEADER), image(2, {"t": {0: metadata(leader=2, epoch=2)}})])
    assert not watched.partitions["t", 0].leaderless


def test_deny_wins_over_allow_and_patterns_match_whole() -> None:
    watched = inventory(topics_allow=["a.*", "b"], topics_deny=["ab"])
    watched.apply([image(1, {name: {0: metadata()} for name in ("a", "ab", "abc", "b", "bb")})])
    assert watched.topics() == {"a", "abc", "b"}
    assert watched.listed == {"a", "ab", "abc", "b", "bb"}


def test_shards_cover_all_partitions_without_overlap_and_count_their_own() -> None:
    everything = {"t": {n: metadata() for n in range(200)}}
    shards = [inventory(shard=shard, shards=3) for shard in range(3)]
    for shard in shards:
        shard.apply([image(1, everything)])
    parts = [set(shard.partitions) for shard in shards]
    assert set.union(*parts) == {("t", n) for n in range(200)}
    assert sum(map(len, parts)) == 200
    assert all(len(part) > 30 for part in parts)
    assert [shard.counts(1).preferred for shard in shards] == [len(part) for part in parts]


def test_reassignments_apply_to_all_partitions(watched: Inventory) -> None:
    watched.apply([image(1, {"t": {0: metadata(), 1: metadata()}})])
    watched.set_reassignments(
        {("t", 0): Reassignment((3,), (1,)), ("unknown", 0): Reassignment((3,), ())}
    )
    watched.set_configurations({"t": TopicConfiguration(2, compacted=True)})
    assert [
        (*w.reassignment, w.configuration.min_in_sync) for w in watched.partitions.values()
    ] == [
        ((3,), (1,), 2),
        ((), (), 2),
    ]
    watched.set_reassignments({})
    assert watched.partitions["t", 0].reassignment.adding == ()
    assert [w.configuration.compacted for w in watched.partitions.values()] == [True, True]


def test_counts_of_preferred_led_and_in_sync_partitions(watched: Inventory) -> None:
    """All are assigned to brokers 1 and 2, and prefer 1."""
    watched.apply(
        [
            image(
                1,
                {
                    "t": {
                        0: metadata(),
                        1: metadata(leader=2, epoch=1),
                        2: metadata(leader=2, epoch=1, in_sync=(2,)),
                    }
                },
            )
        ]
    )
    counts: list[tuple[int, ...]] = [(3, 1, 2, 2), (0, 0, 3, 3), (0, 0, 0, 0)]
    assert [watched.counts(broker) for broker in (1, 2, 3)] == counts
    watched.apply([image(1, {"t": {1: metadata(epoch=2)}})])
    assert tuple(watched.counts(1)) == (3, 2, 2, 2)
    watched.remove({"t"})
    assert tuple(watched.counts(1)) == (0, 0, 0, 0)


def test_a_broker_that_is_in_sync_alone_and_leads_no_more_serves_nothing(
    watched: Inventory,
) -> None:
    """Its controlled shutdown leaves it in the set: there is no other replica."""
    watched.apply([image(1, {"t": {0: metadata(in_sync=(2,)), 1: metadata(in_sync=(1,))}})])
    assert [watched.counts(broker).serving for broker in (1, 2)] == [2, 0]
    watched.apply([image(1, {"t": {1: metadata(leader=-1, epoch=1, in_sync=(1,))}})])
    assert (watched.counts(1).in_sync, watched.counts(1).serving) == (1, 1)


def test_shrinks_count_for_the_leader_that_remains(watched: Inventory) -> None:
    three = (1, 2, 3)

    def led(leader: int, in_sync: tuple[int, ...]) -> dict[int, tuple[int, int]]:
        found = metadata(leader=leader, in_sync=in_sync, replicas=three)
        watched.apply([image(1, {"t": {0: found}})])
        watched.left_replicas.led_shrinks.settle({}, 1.0)
        return watched.left_replicas.led_shrinks.totals

    assert led(1, three) == {}
    assert led(1, (1,)) == {1: (1, 1)}, "one change, however many brokers leave"
    assert led(1, three) == {1: (1, 1)}
    assert led(2, (2, 3)) == {1: (1, 1)}, "the controller elected another leader"
    watched.set_reassignments({("t", 0): Reassignment(removing=(3,))})
    assert led(2, (2,)) == {1: (1, 1)}, "a reassignment removed it"


def test_brokers_that_left_in_sync_sets(watched: Inventory) -> None:
    """Since the last call, without reassignments; what they left most often comes first."""
    complete = {number: metadata(in_sync=(1, 2)) for number in range(3)}
    watched.apply([image(1, {"t": complete})])
    assert watched.left_replicas.take() == {}
    watched.apply([image(1, {"t": {2: metadata(in_sync=(1,))}})])
    assert watched.left_replicas.take() == {2: ["t-2"]}
    watched.apply([image(1, {"t": complete})])
    watched.set_reassignments({("t", 1): Reassignment(removing=(2,))})
    left = {number: metadata(in_sync=(1,)) for number in range(3)}
    watched.apply([image(1, {"t": left})])
    assert watched.left_replicas.take() == {2: ["t-2", "t-0"]}
    assert watched.left_replicas.take() == {}
    watched.apply([image(1, {"t": complete})])
    watched.apply([image(1, {"t": {0: metadata(replicas=(1, 3), in_sync=(1, 3))}})])
    assert watched.left_replicas.take() == {}, "broker 2 has no replica any more"
