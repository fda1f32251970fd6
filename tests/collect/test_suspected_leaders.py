"""Who believes to lead, though another does (ZOMBIE_LEADER)."""

from __future__ import annotations

from kafka.protocol.consumer import ListOffsetsRequest

from tests.collect.fake_broker import LIST_OFFSETS, VERSIONS, Log
from tests.collect.fake_cluster import FakeCluster
from tidemark.core.events import Observation


def leader_only(cluster: FakeCluster, broker: int) -> list[tuple[int, int]]:
    """The (partition, fence) that a broker was asked for as its leader."""
    asked = [
        r
        for r in cluster.brokers[broker - 1].requests
        if isinstance(r, ListOffsetsRequest) and r.replica_id == -1
    ]
    return [
        (p.partition_index, p.current_leader_epoch)
        for request in asked
        for topic in request.topics
        for p in topic.partitions
    ]


def forget(cluster: FakeCluster) -> None:
    for broker in cluster.brokers:
        broker.requests.clear()


def zombie(cluster: FakeCluster, end: int = 7) -> None:
    """Broker 1 leads under epoch 4, as it thinks; the others have followed broker 2 to epoch 5."""
    cluster.topic("t", 7, epoch=4)
    cluster.run(6)
    cluster.topics["t"][0] = (2, 5, [1, 2, 3], [1, 2, 3], 0)
    for broker in cluster.brokers[1:]:
        broker.logs["t", 0] = Log([(4, 7)], 7, 5, leads=broker.broker == 2)
    cluster.brokers[0].logs["t", 0] = Log([(4, end)], end, 4, leads=True)


def test_a_broker_behind_the_epoch_tells_whether_it_believes_to_lead(cluster: FakeCluster) -> None:
    zombie(cluster, end=9)
    forget(cluster)
    observed = cluster.one()
    assert (observed.leader, observed.leader_epoch) == (2, 5)
    assert [(s.leads, s.leader_epoch, s.log_end_offset) for s in observed.samples] == [
        (True, 4, 9),
        (True, 5, 7),
        (None, 5, 7),
    ]
    # Its high watermark is no committed offset, whatever it says.
    assert observed.committed == 7
    assert leader_only(cluster, 1) == [(0, 4)]
    cluster.brokers[0].logs["t", 0].leads = False
    assert cluster.one().samples[0].leads is False


def test_what_a_believer_says_is_never_committed_though_nobody_leads(cluster: FakeCluster) -> None:
    zombie(cluster, end=9)
    cluster.topics["t"][0] = (-1, 5, [1, 2, 3], [1, 2, 3], 5)
    observed = cluster.one()
    assert observed.samples[0].leads is True
    assert observed.committed is None


def test_a_believer_is_told_in_every_pass_though_no_offset_moves(cluster: FakeCluster) -> None:
    zombie(cluster)
    assert [sum(isinstance(event, Observation) for event in cluster.run()) for _ in range(10)] == [
        1
    ] * 10


def test_a_former_leader_that_knows_its_successor_is_asked_for_some_passes(
    cluster: FakeCluster,
) -> None:
    zombie(cluster)
    cluster.brokers[0].logs["t", 0] = Log([(4, 7)], 7, 5)
    forget(cluster)
    assert [cluster.one().samples[0].leads for _ in range(5)] == [False, False, False, False, None]
    assert leader_only(cluster, 1) == [(0, 5)] * 4
    assert not cluster.passes.hurry


def test_where_all_is_well_no_follower_is_asked(cluster: FakeCluster) -> None:
    cluster.topic("t", 7)
    cluster.run(3)
    assert leader_only(cluster, 1)
    assert not leader_only(cluster, 2) + leader_only(cluster, 3)


def test_a_broker_whose_answers_bear_no_epoch_is_not_asked() -> None:
    old = FakeCluster({**VERSIONS, LIST_OFFSETS: (1, 3)})
    try:
        zombie(old)
        forget(old)
        assert old.one().samples[0].leads is None
        assert not leader_only(old, 1)
    finally:
        old.close()
