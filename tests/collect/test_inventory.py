from __future__ import annotations

from tidemark.collect.inventory import Applied, Inventory, TopicConfiguration
from tidemark.collect.metadata import Address, Seat, TopicView, View
from tidemark.settings import Cluster

NODES = {1: Address("h", 1, None), 2: Address("h", 2, None), 3: Address("h", 3, None)}


def seat(
    leader: int = 1, epoch: int = 0, in_sync: tuple[int, ...] = (1, 2), error: int = 0
) -> Seat:
    return Seat(leader, epoch, (1, 2), in_sync, error)


def view(
    broker: int, topics: dict[str, dict[int, Seat]], at: float = 1.0, topic_id: str | None = "id"
) -> View:
    return View(
        broker,
        at,
        "cluster",
        1,
        NODES,
        {name: TopicView(topic_id, 0, seats) for name, seats in topics.items()},
    )


def inventory(**options: object) -> Inventory:
    return Inventory(Cluster(name="c", **options), 4)  # type: ignore[arg-type]


def test_the_highest_leader_epoch_wins_whoever_answers_last() -> None:
    watched = inventory()
    watched.apply(
        [
            view(2, {"t": {0: seat(epoch=3, leader=2)}}, at=1.0),
            view(3, {"t": {0: seat(epoch=2)}}, at=2.0),
        ]
    )
    one = watched.partitions["t", 0]
    assert (one.leader, one.leader_epoch, one.metadata_from) == (2, 3, (2,))
    applied = watched.apply([view(3, {"t": {0: seat(epoch=1)}}, at=3.0)])
    assert (one.leader, one.leader_epoch, applied.replan) == (2, 3, False)


def test_at_one_epoch_the_leaders_own_image_is_believed() -> None:
    watched = inventory()
    watched.apply(
        [
            view(1, {"t": {0: seat(in_sync=(1,))}}, at=1.0),
            view(3, {"t": {0: seat(in_sync=(1, 2))}}, at=2.0),
        ]
    )
    assert watched.partitions["t", 0].seat.in_sync == (1,)
    assert watched.partitions["t", 0].metadata_from == (1,)


def test_an_image_that_is_behind_in_one_partition_is_believed_in_none() -> None:
    watched = inventory()
    old = {"t": {0: seat(), 1: seat(in_sync=(1, 2))}, "u": {0: seat(in_sync=(1, 2))}}
    new = {"t": {0: seat(epoch=1), 1: seat(in_sync=(2,))}, "u": {0: seat(in_sync=(2,))}}
    # It leads t-1 by its own image, and answers last.
    for at, views in (
        (1.0, [view(2, new), view(1, old, at=9.0)]),
        (10.0, [view(1, old, at=11.0), view(3, new, at=10.0)]),
    ):
        watched.apply(views)
        assert {place: w.seat.in_sync for place, w in watched.partitions.items()} == {
            ("t", 0): (1, 2),
            ("t", 1): (2,),
            ("u", 0): (2,),
        }, at
    # With no other witness, what does not contradict the known epochs is taken.
    watched.apply([view(1, old, at=20.0)])
    assert watched.partitions["t", 0].leader_epoch == 1
    assert watched.partitions["u", 0].seat.in_sync == (1, 2)


def test_an_image_of_a_topic_that_was_made_anew_is_not_behind() -> None:
    watched = inventory()
    watched.apply([view(1, {"t": {0: seat(epoch=7)}}, topic_id="old")])
    new = {"t": {0: seat(epoch=0)}}
    assert watched.apply([view(1, new, topic_id="new"), view(2, new, topic_id="new")]).recreated


def test_a_change_of_in_sync_replicas_needs_no_new_requests() -> None:
    watched = inventory()
    assert watched.apply([view(1, {"t": {0: seat()}})]).replan
    assert watched.apply([view(1, {"t": {0: seat(in_sync=(1,))}})]) == Applied(
        False, False, set(), set(), []
    )
    moved = watched.apply([view(1, {"t": {0: seat(leader=2, epoch=1)}})])
    assert (moved.replan, moved.epoch_changed) == (True, True)


def test_a_topic_made_anew_is_believed_of_two_brokers() -> None:
    watched = inventory()
    watched.apply([view(1, {"t": {0: seat(epoch=7), 1: seat()}}, topic_id="old")])
    one = watched.apply(
        [
            view(1, {"t": {0: seat()}}, topic_id="new"),
            view(2, {"t": {0: seat(epoch=7), 1: seat()}}, topic_id="old"),
        ]
    )
    assert one.recreated == []
    assert watched.partitions["t", 0].topic_id == "old"
    both = watched.apply(
        [view(1, {"t": {0: seat()}}, topic_id="new"), view(2, {"t": {0: seat()}}, topic_id="new")]
    )
    assert sorted((w.topic_id, w.number) for w in both.recreated) == [("old", 0), ("old", 1)]
    assert [(place, w.topic_id, w.leader_epoch) for place, w in watched.partitions.items()] == [
        (("t", 0), "new", 0)
    ]


def test_a_topic_is_absent_when_two_named_brokers_leave_it_out() -> None:
    watched = inventory()
    watched.apply([view(1, {"t": {0: seat()}})])
    assert watched.apply([view(1, {})]).absent == set()
    # A bootstrap server that could be the same broker is no second witness.
    assert watched.apply([view(1, {}), view(-1, {})]).absent == set()
    assert watched.apply([view(1, {}), view(2, {})]).absent == {"t"}
    assert [w.number for w in watched.remove({"t"})] == [0]
    assert watched.partitions == {}


def test_leaderless_takes_two_or_the_one_the_quorum_vouches_for() -> None:
    none = seat(leader=-1, epoch=1, in_sync=(), error=5)
    for views, witness, expected in (
        ([1, 2], None, True),
        ([1], None, False),
        ([1], 1, True),
        ([1], 2, False),
        ([-1, 1], None, False),
    ):
        watched = inventory()
        watched.apply([view(broker, {"t": {0: none}}) for broker in views], witness)
        assert watched.partitions["t", 0].leaderless is expected
        assert watched.partitions["t", 0].leader is None
    behind = inventory()
    behind.apply([view(1, {"t": {0: none}}), view(2, {"t": {0: seat(leader=2, epoch=2)}})])
    assert not behind.partitions["t", 0].leaderless


def test_deny_wins_over_allow_and_patterns_match_whole() -> None:
    watched = inventory(topics_allow=["a.*", "b"], topics_deny=["ab"])
    watched.apply([view(1, {name: {0: seat()} for name in ("a", "ab", "abc", "b", "bb")})])
    assert watched.topics() == {"a", "abc", "b"}
    assert watched.listed == {"a", "ab", "abc", "b", "bb"}


def test_shards_share_all_partitions_and_none_twice() -> None:
    everything = {"t": {n: seat() for n in range(200)}}
    parts = []
    for shard in range(3):
        watched = inventory(shard=shard, shards=3)
        watched.apply([view(1, everything)])
        parts.append(set(watched.partitions))
    assert set.union(*parts) == {("t", n) for n in range(200)}
    assert sum(map(len, parts)) == 200
    assert all(len(part) > 30 for part in parts)


def test_reassignments_are_laid_over_all_partitions() -> None:
    watched = inventory()
    watched.apply([view(1, {"t": {0: seat(), 1: seat()}})])
    watched.take_reassignments({("t", 0): ((3,), (1,)), ("unknown", 0): ((3,), ())})
    watched.take_configurations({"t": TopicConfiguration(2, compacted=True)})
    assert [(w.adding, w.removing, w.min_in_sync) for w in watched.partitions.values()] == [
        ((3,), (1,), 2),
        ((), (), 2),
    ]
    watched.take_reassignments({})
    assert watched.partitions["t", 0].adding == ()
    assert [w.compacted for w in watched.partitions.values()] == [True, True]


def test_what_a_broker_should_lead_and_what_it_leads() -> None:
    """Assigned to 1 and 2: 1 comes first everywhere."""
    watched = inventory()
    watched.apply(
        [
            view(
                1,
                {
                    "t": {
                        0: seat(),
                        1: seat(leader=2, epoch=1),
                        2: seat(leader=2, epoch=1, in_sync=(2,)),
                    }
                },
            )
        ]
    )
    assert [watched.tally(broker) for broker in (1, 2, 3)] == [(3, 1, 2), (0, 0, 3), (0, 0, 0)]
    watched.apply([view(1, {"t": {1: seat(epoch=2)}})])
    assert watched.tally(1) == (3, 2, 2)
    watched.remove({"t"})
    assert watched.tally(1) == (0, 0, 0)


def test_a_share_counts_its_own_partitions() -> None:
    everything = {"t": {n: seat() for n in range(50)}}
    counted = []
    for shard in range(2):
        watched = inventory(shard=shard, shards=2)
        watched.apply([view(1, everything)])
        counted.append(watched.tally(1).preferred)
    assert sum(counted) == 50 and all(counted)
