"""How long lineages are read: in every pass until they agree, and later at intervals."""

from __future__ import annotations

import pytest

from tests.collect.fake_broker import FETCH, Log
from tests.collect.fake_cluster import FakeCluster, with_versions
from tidemark.collect.codecs.topic_configuration import TopicConfiguration
from tidemark.collect.watched import lineage_schedule
from tidemark.collect.watched.lineage_schedule import PASSES_AFTER_CHANGE, LineageSchedule
from tidemark.core.events import Observation, Replica

pytestmark = pytest.mark.usefixtures("topic_t")

Lineage = list[tuple[int, int]]
AGREED: Lineage = [(0, 5), (2, 9)]


def set_lineages(cluster: FakeCluster, *of: Lineage) -> None:
    """Broker 1 leads under epoch 2; each broker has the given lineage. Runs four passes."""
    cluster.topic("t", 9, epoch=2)
    for broker, lineage in zip(cluster.brokers, of, strict=True):
        broker.logs["t", 0] = Log(lineage, 9, 2, leads=broker.broker == 1)
    cluster.run(4)


def read_of(cluster: FakeCluster) -> list[Lineage | None]:
    """The lineages in the observation of a pass: the leader's whole one, then the followers'."""
    observed = next((event for event in cluster.run() if isinstance(event, Observation)), None)
    if observed is None:
        return [None, None, None]
    whole = observed.lineage if observed.lineage is not None and len(observed.lineage) > 1 else None
    return [whole, observed.samples[1].lineage, observed.samples[2].lineage]


@pytest.mark.parametrize(
    "part", [[(0, 6), (2, 9)], [(0, 8)], [(0, 6), (1, 4), (2, 9)], [(0, 5), (1, 7), (2, 9)]]
)
def test_a_diverging_or_impossible_lineage_is_read_until_it_agrees(
    cluster: FakeCluster, part: Lineage
) -> None:
    set_lineages(cluster, AGREED, AGREED, part)
    for _ in range(4):
        assert read_of(cluster) == [AGREED, None, part]
    cluster.brokers[2].logs["t", 0].epochs = AGREED
    cluster.run()
    assert read_of(cluster) == [None, None, None]


def test_an_impossible_lineage_of_the_leader_is_read_again(cluster: FakeCluster) -> None:
    impossible = [(0, 6), (1, 4), (2, 9)]
    set_lineages(cluster, impossible, impossible, AGREED)
    assert read_of(cluster)[0] == impossible
    assert read_of(cluster)[0] == impossible


@pytest.mark.parametrize("part", [AGREED, [(0, 4)], [(0, 5)]])
def test_a_follower_that_agrees_or_is_behind_is_not_read_again(
    cluster: FakeCluster, part: Lineage
) -> None:
    set_lineages(cluster, AGREED, AGREED, part)
    assert read_of(cluster) == [None, None, None]


def test_closed_epochs_of_a_compacted_topic_may_end_elsewhere(cluster: FakeCluster) -> None:
    cluster.run()
    cluster.passes.inventory.set_configurations({"t": TopicConfiguration(None, compacted=True)})
    set_lineages(cluster, AGREED, AGREED, [(0, 6), (2, 9)])
    assert read_of(cluster) == [None, None, None]


def test_ends_below_a_log_start_are_not_compared(cluster: FakeCluster) -> None:
    cluster.set(log_start=6)
    set_lineages(cluster, AGREED, AGREED, [(0, 6), (2, 9)])
    assert read_of(cluster) == [None, None, None]


def test_a_lasting_divergence_is_read_at_intervals_and_observed_in_every_pass(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage_schedule, "READS_IN_A_ROW", 6)
    part = [(0, 6), (2, 9)]
    set_lineages(cluster, AGREED, AGREED, part)
    assert [read_of(cluster)[2] for _ in range(4)] == [part, part, None, None]
    assert isinstance(cluster.one(), Observation)
    check = cluster.passes.inventory.partitions["t", 0].lineage.check
    assert check is not None
    check.due_at = 0.0
    cluster.run()
    assert [read_of(cluster)[2] for _ in range(2)] == [part, None]


def test_a_broker_that_was_silent_at_a_change_is_read_after_its_return(
    cluster: FakeCluster,
) -> None:
    cluster.run(5)
    cluster.brokers[2].hangs = lambda _: True
    set_lineages(cluster, AGREED, AGREED, AGREED)
    assert read_of(cluster) == [None, None, None]
    cluster.brokers[2].hangs = lambda _: False
    back = cluster.run_until_ok(3)
    observed = next(event for event in back if isinstance(event, Observation))
    assert observed.samples[2].lineage == AGREED
    assert [read_of(cluster)[2] for _ in range(4)] == [AGREED, AGREED, AGREED, None]


def test_what_a_late_broker_was_not_asked_for_stays_due() -> None:
    schedule = LineageSchedule((1, 2, 3))
    samples = [Replica(broker=broker, log_end_offset=9) for broker in (1, 2, 3)]
    observed = Observation(
        topic="t", partition=0, observed_at=1.0, leader=1, replicas=[1, 2, 3], samples=samples
    )
    for _ in range(PASSES_AFTER_CHANGE):
        schedule.record(observed, leader_read=True, now=1.0, late={2})
    assert schedule.reads_left == {2: PASSES_AFTER_CHANGE}


def test_a_removed_replica_is_not_waited_for(cluster: FakeCluster) -> None:
    cluster.brokers[2].hangs = lambda _: True
    cluster.run(5)
    cluster.topics["t"][0] = (1, 0, [1, 2], [1, 2], 0)
    cluster.run(3)
    assert cluster.passes.thinned == 1


@with_versions({FETCH: (0, 11)})
def test_brokers_without_lineages_do_not_keep_a_partition_from_thinning(
    cluster: FakeCluster,
) -> None:
    cluster.run(7)
    assert cluster.passes.thinned == 1


def test_a_settled_partition_has_no_lineage_to_read(cluster: FakeCluster) -> None:
    """A pass looks for lineages that are due among the other partitions only."""
    watched = []
    for number in range(24):
        if number == 8:
            cluster.topics["t"][0] = (2, 2, [1, 2, 3], [1, 2, 3], 0)
            cluster.write(AGREED, 9, 2, leader=2)
        if number == 16:
            cluster.brokers[2].logs["t", 0] = Log([(0, 4)], 4, 2)
        cluster.run()
        (partition,) = cluster.passes.inventory.partitions.values()
        watched.append((partition.is_settled, partition.lineage.is_pending))
    assert (True, True) not in watched
    assert {(True, False), (False, True)} <= {*watched}
