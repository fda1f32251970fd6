"""Brokers before Kafka 2.7: what the collector asks for, and what stays unknown."""

from __future__ import annotations

import pytest
from kafka.protocol.consumer import FetchRequest, OffsetForLeaderEpochRequest

from tests.collect.fake_broker import EPOCH_END_OFFSETS, FETCH, LIST_OFFSETS, METADATA, Log
from tests.collect.fake_cluster import FakeCluster, outcomes, with_versions
from tidemark.core.events import Observation

pytestmark = pytest.mark.usefixtures("topic_t")

KAFKA_0_10 = with_versions({FETCH: (0, 3), LIST_OFFSETS: (0, 1), METADATA: (0, 2)})
KAFKA_0_11 = with_versions(
    {FETCH: (0, 5), LIST_OFFSETS: (0, 2), METADATA: (0, 4), EPOCH_END_OFFSETS: (0, 0)}
)
KAFKA_2_3 = with_versions(
    {FETCH: (0, 11), LIST_OFFSETS: (0, 5), METADATA: (0, 8), EPOCH_END_OFFSETS: (0, 3)}
)
NO_LEADER: tuple[int, int, list[int], list[int], int] = (-1, -1, [1, 2, 3], [], 5)


@KAFKA_0_10
def test_no_topic_is_asked_for_by_name_where_that_creates_it(cluster: FakeCluster) -> None:
    cluster.topic("t", 7)
    cluster.topic("gone", 7)
    cluster.run(2)
    del cluster.topics["gone"]
    cluster.run(4)
    assert {topic for topic, _ in cluster.passes.inventory.partitions} == {"t"}
    requests = [request for broker in cluster.brokers for request in broker.requests]
    asked = [tuple(r.topics or ()) for r in requests if type(r).__name__ == "MetadataRequest"]
    assert set(asked) == {()}


@KAFKA_0_10
def test_kafka_0_10_shows_offsets_of_every_replica_and_no_epoch(cluster: FakeCluster) -> None:
    cluster.set(log_start=3)
    observed = cluster.one(2)
    assert [
        (s.log_end_offset, s.high_watermark, s.log_start_offset, s.leader_epoch, s.error)
        for s in observed.samples
    ] == [(7, 7, 3, None, None)] * 3
    assert (observed.leader_epoch, observed.topic_id, observed.committed) == (None, None, 7)
    # Followers are asked after the leader: their lag is known.
    assert observed.leader_log_end_offset_before == 7
    assert (observed.lineage, observed.effective_min_in_sync_replicas) == (None, None)
    asked = {r.replica_id for r in cluster.brokers[1].requests if isinstance(r, FetchRequest)}
    assert asked == {-2}


@KAFKA_0_11
def test_kafka_0_11_shows_the_leaders_epochs(cluster: FakeCluster) -> None:
    cluster.topic("t", 9)
    cluster.write([(0, 3), (4, 9)], 9, 0)
    observed = next(found for _ in range(20) if (found := cluster.one()).lineage_complete_from == 0)
    assert observed.lineage == [(0, 3), (4, 9)]
    assert observed.leader_epoch is None
    assert [(s.high_watermark, s.lineage) for s in observed.samples] == [(9, None)] * 3


@KAFKA_0_11
def test_moving_offsets_show_the_newest_epoch_and_a_new_leader_all(cluster: FakeCluster) -> None:
    cluster.topic("t", 9)
    cluster.run(8)
    # Another leader, whose log lacks what the first one wrote last.
    cluster.topics["t"][0] = (2, 1, [1, 2, 3], [2, 3], 0)
    cluster.brokers[0].logs["t", 0].leads = False
    cluster.brokers[1].logs["t", 0] = Log([(0, 5), (2, 11)], 11, 2, leads=True)
    assert cluster.one(2).lineage == [(0, 5), (2, 11)]
    cluster.brokers[1].logs["t", 0].epochs[-1] = (2, 12)
    seen = [cluster.one() for _ in range(6)]
    # All is read in the passes after the change, and nothing while no offset moves.
    assert [observed.lineage for observed in seen].count([(0, 5), (2, 12)]) == 2
    assert seen[-1].lineage is None
    cluster.brokers[1].logs["t", 0].epochs[-1] = (2, 15)
    observed = cluster.one()
    assert (observed.lineage, observed.lineage_complete_from) == ([(2, 15)], 2)
    # It leads again in a newer epoch that metadata does not show.
    cluster.brokers[1].logs["t", 0].epochs = [(0, 5), (2, 15), (7, 20)]
    assert cluster.one().lineage == [(7, 20)]


@KAFKA_2_3
def test_kafka_2_3_is_asked_under_the_fence_of_the_leader_epoch(cluster: FakeCluster) -> None:
    cluster.topic("t", 7, epoch=4)
    observed = cluster.one(2)
    assert (observed.leader_epoch, observed.lineage) == (4, [(4, 7)])
    first = next(
        request
        for request in cluster.brokers[0].requests
        if isinstance(request, OffsetForLeaderEpochRequest)
    )
    (asked,) = first.topics[0].partitions
    assert (asked.current_leader_epoch, asked.leader_epoch) == (4, 4)


@KAFKA_2_3
def test_an_answer_without_leader_has_no_epoch_and_no_in_sync_set(cluster: FakeCluster) -> None:
    cluster.topic("t", 7, epoch=4)
    cluster.run(2)
    cluster.topics["t"][0] = NO_LEADER
    for _ in range(5):
        events = cluster.run()
        (observed,) = (event for event in events if isinstance(event, Observation))
        assert (observed.leader, observed.leaderless, observed.leader_epoch) == (None, True, 4)
        assert observed.in_sync_replicas is None
    cluster.topics["t"][0] = (2, 5, [1, 2, 3], [2], 0)
    observed = cluster.one(2)
    assert (observed.leader, observed.leader_epoch, observed.in_sync_replicas) == (2, 5, [2])


@pytest.mark.parametrize("cluster", [KAFKA_0_10.args[1][0], KAFKA_2_3.args[1][0]], indirect=True)
@pytest.mark.parametrize("error", [5, 72])
def test_one_broker_shows_that_there_is_no_leader_when_all_replicas_are_stopped(
    cluster: FakeCluster, error: int
) -> None:
    cluster.topics["t"][0] = (2, 0, [2, 3], [2, 3], 0)
    # Metadata is read again only after a failure.
    cluster.passes._settings.metadata_seconds = 1e9
    cluster.run(2)
    for broker in cluster.brokers[1:]:
        broker.close()
    cluster.run(2)
    cluster.topics["t"][0] = (-1, -1, [2, 3], [], error)
    observed = cluster.one(2)
    assert (observed.leader, observed.leaderless, observed.metadata_from) == (None, True, [1])


def test_a_lost_connection_is_no_missing_feature(cluster: FakeCluster) -> None:
    cluster.run(2)
    connection = cluster.passes._connections.by_broker[2]
    original = cluster.passes._live

    def lost_meanwhile() -> object:
        live = original()
        connection.close()
        return live

    cluster.passes._live = lost_meanwhile  # type: ignore[method-assign, assignment]
    assert outcomes(cluster.run())[2] == "unreachable"


@KAFKA_2_3
def test_without_the_right_to_read_the_leaders_lineage_remains(cluster: FakeCluster) -> None:
    cluster.topic("t", 7, epoch=4)
    cluster.set(fetch_error=29)
    observed = cluster.one(2)
    assert (observed.committed, observed.lineage) == (7, [(4, 7)])
    assert [(s.log_end_offset, s.high_watermark) for s in observed.samples] == [(7, None)] * 3
