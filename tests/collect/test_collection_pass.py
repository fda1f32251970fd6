from __future__ import annotations

import pytest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from tests.collect.fake_broker import FETCH, LIST_OFFSETS, METADATA, Log
from tests.collect.fake_cluster import FakeCluster, outcomes, with_versions
from tidemark.collect.codecs.metadata_image import Reassignment
from tidemark.collect.publish.pack import EventRecord
from tidemark.core.codec import decode_batch
from tidemark.core.events import Observation, PartitionDeleted, Pass
from tidemark.settings import Collect

pytestmark = pytest.mark.usefixtures("topic_t")


def test_a_healthy_partition_is_one_observation_with_all_replicas(cluster: FakeCluster) -> None:
    cluster.topic("hidden", 1)
    events = cluster.run()
    seen = [event for event in events if isinstance(event, Observation)]
    assert [event.topic for event in seen] == ["t"]
    observed = seen[0]
    assert (observed.leader, observed.leader_epoch, observed.committed, observed.leaderless) == (
        1,
        0,
        7,
        False,
    )
    assert observed.leader_log_end_offset_before == observed.leader_log_end_offset_after == 7
    assert [
        (s.broker, s.log_end_offset, s.high_watermark, s.log_start_offset, s.leader_epoch, s.error)
        for s in observed.samples
    ] == [
        (1, 7, 7, 0, 0, None),
        (2, 7, 7, 0, 0, None),
        (3, 7, 7, 0, 0, None),
    ]
    assert observed.samples[0].leads is True
    assert (observed.lineage, observed.lineage_complete_from) == ([(0, 7)], 0)
    leader, follower = observed.samples[0], observed.samples[1]
    assert follower.answered_ms is not None
    assert leader.requested_ms is not None
    assert follower.answered_ms <= leader.requested_ms
    # A pass record ends every Kafka partition of the event topic.
    assert [
        sum(isinstance(e, Pass) for e in decode_batch(r.payload).events) for r in cluster.records
    ].count(1) == 4
    assert outcomes(events) == {1: "ok", 2: "ok", 3: "ok"}


def test_the_pass_record_counts_shrinks_by_leader(cluster: FakeCluster) -> None:
    cluster.run()
    cluster.brokers[2].close()
    cluster.topics["t"][0] = (1, 0, [1, 2, 3], [1, 2], 0)
    closing = next(event for event in cluster.run(3) if isinstance(event, Pass))
    counts = {b.broker: (b.led_shrinks, b.led_shrinks_of_absent) for b in closing.brokers}
    assert counts == {1: (1, 1), 2: (0, 0), 3: (0, 0)}


def test_the_pass_record_counts_preferred_and_in_sync_partitions(
    cluster: FakeCluster,
) -> None:
    cluster.topics["t"][0] = (2, 1, [1, 2, 3], [2, 3], 0)
    closing = next(event for event in cluster.run() if isinstance(event, Pass))
    assert [(b.broker, b.preferred, b.preferred_led, b.in_sync) for b in closing.brokers] == [
        (1, 1, 0, 0),
        (2, 0, 0, 1),
        (3, 0, 0, 1),
    ]
    assert [(b.led_shrinks, b.led_shrinks_of_absent) for b in closing.brokers] == [(0, 0)] * 3
    assert closing.shard is None
    cluster.passes.cluster.shards = 4
    assert next(event for event in cluster.run() if isinstance(event, Pass)).shard == "0/4"


def test_no_broker_is_impersonated_and_no_topic_created(cluster: FakeCluster) -> None:
    cluster.run(2)
    asked = [request for broker in cluster.brokers for request in broker.requests]
    assert {request.replica_id for request in asked if isinstance(request, ListOffsetsRequest)} == {
        -1,
        -2,
    }
    assert {request.replica_id for request in asked if isinstance(request, FetchRequest)} == {-1}
    assert {
        request.allow_auto_topic_creation
        for request in asked
        if isinstance(request, MetadataRequest)
    } == {False}


def test_a_hanging_broker_does_not_cost_the_samples_of_others(cluster: FakeCluster) -> None:
    cluster.run()
    cluster.brokers[1].hangs = lambda _: True
    for _ in range(3):
        events = cluster.run()
        observed = next(event for event in events if isinstance(event, Observation))
        assert [s.error for s in observed.samples] == [None, "timed_out", None]
        assert observed.committed == 7
        assert observed.leader_log_end_offset_before == 7
        assert outcomes(events) == {1: "ok", 2: "timed_out", 3: "ok"}
    cluster.brokers[1].hangs = lambda _: False
    back = cluster.run_until_ok(2)
    assert [s.error for event in back if isinstance(event, Observation) for s in event.samples] == [
        None,
        None,
        None,
    ]


def test_answers_from_before_a_time_out_are_kept(cluster: FakeCluster) -> None:
    cluster.run()
    cluster.brokers[0].hangs = lambda key: key == FETCH
    observed = cluster.one()
    assert observed.committed == 7
    assert [s.error for s in observed.samples] == ["timed_out", None, None]
    assert observed.lineage is None


def test_a_stopped_broker_refuses_the_connection(cluster: FakeCluster) -> None:
    cluster.run()
    cluster.brokers[2].close()
    assert outcomes(cluster.run(2)) == {1: "ok", 2: "ok", 3: "refused"}


def test_a_follower_without_the_newest_epoch_is_sampled(cluster: FakeCluster) -> None:
    cluster.topics["t"][0] = (1, 4, [1, 2, 3], [1, 2, 3], 0)
    cluster.write([(0, 7)], 6, 4)
    cluster.brokers[0].logs["t", 0].epochs = [(0, 7), (4, 9)]
    for _ in range(3):
        observed = cluster.one()
        assert [(s.log_end_offset, s.high_watermark, s.leader_epoch) for s in observed.samples] == [
            (9, 6, 4),
            (7, 6, 4),
            (7, 6, 4),
        ]
        assert (observed.lineage, observed.lineage_complete_from) == ([(0, 7), (4, 9)], 0)
        assert observed.samples[1].lineage == [(0, 7)]


def test_without_the_right_to_read_the_log_ends_remain(cluster: FakeCluster) -> None:
    cluster.set(fetch_error=29)
    observed = cluster.one(3)
    assert [(s.log_end_offset, s.high_watermark, s.error) for s in observed.samples] == [
        (7, None, None)
    ] * 3
    assert (observed.committed, observed.lineage) == (7, None)
    # Followers are asked after the leader: their lag is known.
    assert observed.leader_log_end_offset_before == 7
    before = len(cluster.brokers[0].requests)
    cluster.run(30)
    per_pass = (len(cluster.brokers[0].requests) - before) / 30
    # Lineages are not asked for in every pass.
    assert per_pass <= 6


def test_an_empty_follower_without_any_epoch_is_sampled(cluster: FakeCluster) -> None:
    cluster.topic("t", 0)
    for broker in cluster.brokers[1:]:
        broker.logs["t", 0] = Log([], 0, 0)
    assert [(s.log_end_offset, s.high_watermark, s.error) for s in cluster.one().samples] == [
        (0, 0, None)
    ] * 3


def test_a_high_watermark_is_committed_only_under_the_fence(cluster: FakeCluster) -> None:
    cluster.run()
    # The leader has an epoch that metadata does not show yet: its answers are fenced.
    cluster.write([(0, 7), (1, 8)], 8, 1)
    observed = cluster.one()
    assert observed.committed is None
    assert observed.leader_epoch == 0
    assert observed.lineage is None
    assert [(s.log_end_offset, s.leader_epoch) for s in observed.samples] == [(8, 1)] * 3
    assert cluster.passes.immediate_next_pass


def test_lineages_are_read_in_four_passes_after_a_loss(cluster: FakeCluster) -> None:
    cluster.topic("t", 12)
    cluster.run(6)
    cluster.topics["t"][0] = (2, 2, [1, 2, 3], [2], 0)
    cluster.write([(0, 5), (2, 9)], 9, 2, leader=2)
    reads = [cluster.one() for _ in range(5)]
    assert [read.lineage for read in reads[:4]] == [[(0, 5), (2, 9)]] * 4
    assert [read.lineage_complete_from for read in reads[:4]] == [0] * 4
    assert reads[0].samples[0].lineage == [(0, 5), (2, 9)]
    assert (reads[4].lineage, reads[4].lineage_complete_from) == ([(2, 9)], 2)
    assert reads[4].samples[0].lineage is None


def test_the_lineage_of_a_truncated_follower_is_read_again(cluster: FakeCluster) -> None:
    cluster.topic("t", 12)
    cluster.run(6)
    cluster.brokers[2].logs["t", 0] = Log([(0, 9)], 9, 0)
    cluster.run()
    assert cluster.one().samples[2].lineage == [(0, 9)]


def test_a_quiet_partition_is_thinned_and_a_change_observed_at_once(cluster: FakeCluster) -> None:
    # Four passes read lineages. The fifth observation shows the quiet state.
    cluster.run(5)
    events = cluster.run()
    assert not [event for event in events if isinstance(event, Observation)]
    assert [event.missed for event in events if isinstance(event, Pass)] == [{}] * 4
    assert cluster.passes.thinned == 1
    cluster.brokers[0].logs["t", 0].epochs = [(0, 8)]
    assert cluster.one().samples[0].log_end_offset == 8


def test_a_partition_without_any_answer_is_missed_in_its_group_only(
    cluster: FakeCluster,
) -> None:
    cluster.run()
    cluster.set(hangs=lambda key: key in {LIST_OFFSETS, METADATA})
    cluster.run()
    missed = [
        e.missed
        for r in cluster.records
        for e in decode_batch(r.payload).events
        if isinstance(e, Pass)
    ]
    assert sorted(missed, key=str) == [{"t": [(0, 0)]}, {}, {}, {}]


def test_a_partition_with_a_lost_observation_is_missed_and_observed_again(
    cluster: FakeCluster,
) -> None:
    cluster.run(6)

    async def work() -> list[EventRecord]:
        return await cluster.passes.run({("t", 0)})

    events = [
        e for record in cluster.passes.loop.run(work) for e in decode_batch(record.payload).events
    ]
    assert sum(e.missed == {"t": [(0, 0)]} for e in events if isinstance(e, Pass)) == 1
    # It is observed again, although it is quiet.
    assert [e.topic for e in events if isinstance(e, Observation)] == ["t"]


def test_two_brokers_must_agree_that_no_leader_serves(cluster: FakeCluster) -> None:
    cluster.run(2)
    cluster.topics["t"][0] = (-1, 1, [1, 2, 3], [], 5)
    observed = cluster.one()
    assert (observed.leader, observed.leader_epoch, observed.leaderless) == (None, 1, True)
    cluster.topics["t"][0] = (-1, 2, [1, 2, 3], [1], 72)
    observed = cluster.one()
    assert (observed.leader, observed.leaderless) == (None, False)


def test_one_broker_alone_does_not_make_a_partition_leaderless(cluster: FakeCluster) -> None:
    cluster.run(2)
    for broker in cluster.brokers[1:]:
        broker.close()
    cluster.run(2)
    cluster.topics["t"][0] = (-1, 1, [1, 2, 3], [], 5)
    observed = cluster.one(2)
    assert (observed.leader, observed.leaderless, observed.metadata_from) == (None, False, [1])


def test_a_topic_is_gone_when_two_brokers_do_not_know_it(cluster: FakeCluster) -> None:
    cluster.topic("u", 7)
    cluster.run(2)
    del cluster.topics["t"]
    gone = [
        event for _ in range(3) for event in cluster.run() if isinstance(event, PartitionDeleted)
    ]
    assert [(event.topic, event.partition) for event in gone] == [("t", 0)]
    assert {event.topic for event in cluster.run() if isinstance(event, Observation)} <= {"u"}


@with_versions({LIST_OFFSETS: (1, 3)})
def test_brokers_without_fences_commit_only_what_metadata_confirms(cluster: FakeCluster) -> None:
    observed = cluster.one(2)
    assert observed.committed == 7
    assert [(s.log_end_offset, s.high_watermark, s.leader_epoch) for s in observed.samples] == [
        (7, 7, None)
    ] * 3
    # The leader changes between the two reads of metadata.
    answers = cluster.brokers[0].answers
    original = answers[LIST_OFFSETS]

    def elected_meanwhile(request: object, version: int) -> bytes:
        cluster.topics["t"][0] = (2, 1, [1, 2, 3], [1, 2, 3], 0)
        return original(request, version)

    answers[LIST_OFFSETS] = elected_meanwhile
    assert cluster.one().committed is None


@with_versions({FETCH: (0, 11)})
def test_brokers_before_fetch_12_are_sampled_with_the_librarys_messages(
    cluster: FakeCluster,
) -> None:
    observed = cluster.one(2)
    assert [(s.log_end_offset, s.high_watermark, s.error) for s in observed.samples] == [
        (7, 7, None)
    ] * 3
    assert observed.committed == 7
    assert observed.lineage is None


def test_reassignments_are_listed_again_when_the_replicas_of_a_partition_change(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new replica lags. For some seconds, only the list says that a reassignment adds it."""
    listed: list[dict[tuple[str, int], Reassignment]] = [{}, {("t", 0): Reassignment(adding=(3,))}]

    async def read(*_: object) -> dict[tuple[str, int], Reassignment]:
        return listed.pop(0)

    monkeypatch.setattr("tidemark.collect.metadata.metadata_reader.read_reassignments", read)
    cluster.passes._reader._settings = Collect(metadata_seconds=60.0)
    cluster.topics["t"][0] = (1, 0, [1, 2], [1, 2], 0)
    cluster.run(3)
    assert len(listed) == 1, "the next list is due in some seconds"
    cluster.topics["t"][0] = (1, 0, [1, 2, 3], [1, 2], 0)
    cluster.passes.immediate_next_pass = True
    cluster.run()
    seen = [event for event in cluster.run() if isinstance(event, Observation)]
    assert (listed, seen[-1].adding) == ([], [3])
