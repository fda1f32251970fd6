"""Replicas that consider themselves leader while another one leads (ZOMBIE_LEADER)."""

from __future__ import annotations

from kafka.protocol.consumer import ListOffsetsRequest

from tests.collect.fake_broker import LIST_OFFSETS, Log
from tests.collect.fake_cluster import FakeCluster, with_versions
from tidemark.core.events import Observation


def leader_only(cluster: FakeCluster, broker: int) -> list[tuple[int, int]]:
    """The (partition, fence) of the requests to a broker that only a leader answers."""
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


def zombie(cluster: FakeCluster, end: int = 7) -> None:
    """Broker 1 considers itself leader under epoch 4; the others follow broker 2 under epoch 5."""
    cluster.topic("t", 7, epoch=4)
    cluster.run(6)
    cluster.topics["t"][0] = (2, 5, [1, 2, 3], [1, 2, 3], 0)
    cluster.write([(4, 7)], 7, 5, leader=2)
    cluster.brokers[0].logs["t", 0] = Log([(4, end)], end, 4, leads=True)


def test_a_broker_behind_the_epoch_is_asked_whether_it_leads(cluster: FakeCluster) -> None:
    zombie(cluster, end=9)
    cluster.forget_requests()
    observed = cluster.one()
    assert (observed.leader, observed.leader_epoch) == (2, 5)
    assert [(s.leads, s.leader_epoch, s.log_end_offset) for s in observed.samples] == [
        (True, 4, 9),
        (True, 5, 7),
        (None, 5, 7),
    ]
    # Its high watermark is not committed.
    assert observed.committed == 7
    assert leader_only(cluster, 1) == [(0, 4)]
    cluster.brokers[0].logs["t", 0].leads = False
    assert cluster.one().samples[0].leads is False


def test_a_zombie_leaders_high_watermark_is_not_committed_without_a_leader(
    cluster: FakeCluster,
) -> None:
    zombie(cluster, end=9)
    cluster.topics["t"][0] = (-1, 5, [1, 2, 3], [1, 2, 3], 5)
    observed = cluster.one()
    assert observed.samples[0].leads is True
    assert observed.committed is None


def test_a_partition_with_a_zombie_leader_is_observed_in_every_pass(cluster: FakeCluster) -> None:
    zombie(cluster)
    assert [sum(isinstance(event, Observation) for event in cluster.run()) for _ in range(10)] == [
        1
    ] * 10


def test_a_former_leader_that_knows_its_successor_is_asked_for_some_passes(
    cluster: FakeCluster,
) -> None:
    zombie(cluster)
    cluster.brokers[0].logs["t", 0] = Log([(4, 7)], 7, 5)
    cluster.forget_requests()
    assert [cluster.one().samples[0].leads for _ in range(5)] == [False, False, False, False, None]
    assert leader_only(cluster, 1) == [(0, 5)] * 4
    assert not cluster.passes.immediate_next_pass


def test_no_follower_of_a_healthy_partition_is_asked(cluster: FakeCluster) -> None:
    cluster.topic("t", 7)
    cluster.run(3)
    assert leader_only(cluster, 1)
    assert not leader_only(cluster, 2) + leader_only(cluster, 3)


@with_versions({LIST_OFFSETS: (1, 3)})
def test_a_broker_without_epochs_in_its_answers_is_not_asked(cluster: FakeCluster) -> None:
    zombie(cluster)
    cluster.forget_requests()
    assert cluster.one().samples[0].leads is None
    assert not leader_only(cluster, 1)
