"""Brokers that leave in-sync sets, by the counts of the pass records."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.evolve.test_brokers import answer
from tidemark.core.broker_seen import (
    MAX_DEPARTURES,
    SAME_PASS_SECONDS,
    BrokerSeen,
    Departure,
    Pause,
)
from tidemark.core.cluster import ClusterState, CollectorClock, NodeState
from tidemark.core.events import OK, REFUSED, TIMED_OUT, BrokerAnswer
from tidemark.evolve.broker_answers import apply_answers, grant_grace, stopping_in_order
from tidemark.evolve.departures import SAME_DEPARTURE_SECONDS, count_in_sync


class Cluster(ClusterState):
    """Broker 3, as one collector counts it."""

    def count(self, at: float, in_sync: int | None, outcome: str = OK, **counts: Any) -> None:
        self.collectors.setdefault("c", CollectorClock(1, 0, at, at, 1000.0)).ended_at = at
        answers = [BrokerAnswer(broker=3, outcome=outcome, in_sync=in_sync, **counts)]
        apply_answers(self, answers, at)
        count_in_sync(self, "c", answers, at)

    @property
    def departures(self) -> list[Departure]:
        return self.brokers[3].departures


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_fall_of_the_count_is_a_departure(cluster: Cluster) -> None:
    for at, in_sync in ((1.0, 40), (2.0, 40), (3.0, 12), (4.0, 0), (5.0, 30), (6.0, 40)):
        cluster.count(at, in_sync)
    assert cluster.departures == [Departure(3.0, 4.0, 40, returned=40)]
    assert cluster.brokers[3].in_sync == 40


Counts = dict[str, Any]
LEFT_TWO: Counts = {"left": 2, "left_most": ["a-1", "b-2"]}


@pytest.mark.parametrize(
    ("counted", "departures"),
    [
        # A small fall may be a reassignment where departures are not counted.
        (
            [(1.0, 40, {}), (2.0, 30, {}), (3.0, 16, {}), (4.0, 40, {}), (5.0, 20, {})],
            [Departure(5.0, 5.0, 20)],
        ),
        # A collector that counts what a broker left sees no reassignment.
        ([(1.0, 40, {"left": 0}), (2.0, 20, {"left": 0})], []),
        # It left two sets, and joined two others in the same pass.
        (
            [(1.0, 40, {"left": 0}), (2.0, 20, {"left": 0}), (3.0, 20, LEFT_TWO)],
            [Departure(3.0, 3.0, 2, returned=0, names=["a-1", "b-2"])],
        ),
        # Partitions that return and leave in one pass count as both.
        (
            [(1.0, 40, {"left": 0}), (2.0, 10, {"left": 30}), (3.0, 10, {"left": 4})],
            [Departure(2.0, 3.0, 34, returned=4)],
        ),
    ],
)
def test_what_counts_as_a_departure(
    cluster: Cluster, counted: list[tuple[float, int, Counts]], departures: list[Departure]
) -> None:
    for at, in_sync, counts in counted:
        cluster.count(at, in_sync, **counts)
    assert cluster.departures == departures


@pytest.mark.parametrize(
    ("grace_until", "in_sync", "departures"),
    [
        # What began in the grace of a restart stays orderly. Grace is over at its end.
        (2.5, [39, 38], [(2, True)]),
        (2.0, [39], [(1, False)]),
    ],
)
def test_a_departure_in_the_grace_of_a_restart_is_orderly(
    cluster: Cluster, grace_until: float, in_sync: list[int], departures: list[tuple[int, bool]]
) -> None:
    cluster.count(1.0, 40, left=0)
    cluster.brokers[3].grace_until = grace_until
    for at, count in enumerate(in_sync, start=2):
        cluster.count(float(at), count, left=1)
    assert [(d.partitions, d.orderly) for d in cluster.departures] == departures


def test_departures_are_apart_when_the_broker_had_returned_or_time_passed(cluster: Cluster) -> None:
    for at, in_sync in ((1.0, 4), (2.0, 0), (3.0, 2), (4.0, 0), (5.0, 1), (6.0, 0)):
        cluster.count(at, in_sync)
    assert [(d.began, d.partitions) for d in cluster.departures] == [(2.0, 4), (4.0, 2), (6.0, 1)]
    later = 6.0 + SAME_DEPARTURE_SECONDS
    cluster = Cluster()
    cluster.count(1.0, 9, left=0)
    for at, in_sync in ((6.0, 8), (later, 7), (later + SAME_DEPARTURE_SECONDS + 0.1, 6)):
        cluster.count(at, in_sync, left=1)
    assert [d.partitions for d in cluster.departures] == [2, 1]
    assert [d.is_broker_wide for d in cluster.departures] == [True, False]


def test_a_bounded_number_of_departures_is_known(cluster: Cluster) -> None:
    for step in range(3 * MAX_DEPARTURES):
        cluster.count(100.0 * step, 4)
        cluster.count(100.0 * step + 50, 0)
    assert len(cluster.departures) == MAX_DEPARTURES


def test_a_new_process_of_the_collector_starts_to_count(cluster: Cluster) -> None:
    cluster.count(1.0, 40)
    cluster.collectors.clear()
    cluster.count(2.0, 3)
    cluster.count(3.0, None)
    assert cluster.departures == []


def test_a_controlled_shutdown_explains_its_departure_and_what_follows(cluster: Cluster) -> None:
    cluster.count(1.0, 40)
    cluster.count(2.0, 1)
    cluster.count(4.0, 1, REFUSED)
    grant_grace(cluster, [3], 4.0, 600_000.0)
    cluster.count(20.0, 0, REFUSED)
    assert [(d.partitions, d.orderly) for d in cluster.departures] == [(39, True), (1, True)]
    cluster = Cluster()
    for at, in_sync in ((1.0, 40), (2.0, 0), (9.0, 40)):
        cluster.count(at, in_sync)
    cluster.count(99.0, 40, REFUSED)
    grant_grace(cluster, [3], 99.0, 600_000.0)
    assert [d.orderly for d in cluster.departures] == [False], "it had returned from that one"


def test_a_shrink_belongs_to_the_departure_of_its_pass(cluster: Cluster) -> None:
    for at, in_sync in ((100.0, 40), (200.0, 0)):
        cluster.count(at, in_sync)
    seen = cluster.brokers[3]
    for at in (200.0 - SAME_PASS_SECONDS, 200.0, 200.0 + SAME_PASS_SECONDS):
        assert seen.departure_at(at) is seen.departures[0]
    for at in (199.9 - SAME_PASS_SECONDS, 200.1 + SAME_PASS_SECONDS):
        assert seen.departure_at(at) is None


# What is known of a broker before it has answered, failed or returned, and at the same moment.


SILENT = BrokerSeen(TIMED_OUT, 50.0, failed_at=60.0)
IN_GRACE = BrokerSeen(TIMED_OUT, 50.0, grace_until=100.0, absent_since=99.0, in_order=True)


@pytest.mark.parametrize(
    ("known", "passes", "seen"),
    [
        # A broker that answers at first has not returned.
        ({}, [(5.0, [answer(1, rack="a")])], {"returned_at": 0.0, "rack": "a"}),
        # A broker that fails at first is absent since then.
        ({}, [(5.0, [answer(2), answer(1, REFUSED)])], {"absent_since": 5.0}),
        # A new broker pauses as a known one.
        (
            {},
            [
                (1.0, [answer(2)]),
                (2.0, [answer(2), answer(1, TIMED_OUT)]),
                (3.0, [answer(2), answer(1, TIMED_OUT)]),
                (4.0, [answer(2), answer(1)]),
            ],
            {"pauses": [Pause(2.0, 3.0)]},
        ),
        # The state of an older version does not say when a pause began.
        ({1: SILENT}, [(61.0, [answer(1)])], {"pauses": []}),
        # A broker returns only from an absence in which others answered.
        ({}, [(1.0, [answer(1, TIMED_OUT)]), (2.0, [answer(1)])], {"returning_until": 0.0}),
        # Grace does not explain a failure at its end.
        (
            {1: IN_GRACE, 2: BrokerSeen(OK, 50.0)},
            [(100.0, [answer(2), answer(1, TIMED_OUT)])],
            {"failed_at": 100.0},
        ),
    ],
)
def test_what_is_seen_of_broker_1(
    known: dict[int, BrokerSeen],
    passes: list[tuple[float, list[BrokerAnswer]]],
    seen: dict[str, Any],
) -> None:
    # A copy: mutmut runs the tests again in one process.
    cluster = ClusterState(brokers=copy.deepcopy(known))
    for at, answers in passes:
        apply_answers(cluster, answers, at)
    assert {name: getattr(cluster.brokers[1], name) for name in seen} == seen


def test_a_broker_that_returns_without_a_partition_may_stop_in_order() -> None:
    clock = CollectorClock(1, 0, 11.0, 11.0, 1000.0, serving={2: 0})
    seen = BrokerSeen(
        REFUSED, 11.0, answered_at=10.5, absent_since=11.0, returned_at=10.0, idle_since=10.0
    )
    cluster = ClusterState(collectors={"c": clock}, brokers={2: seen}, passed_by="c")
    assert 2 in stopping_in_order(cluster, 11.5)


@pytest.mark.parametrize(("returned_at", "is_recorded"), [(50.0, True), (50.1, False)])
def test_a_record_from_before_the_return_does_not_explain_the_next_absence(
    returned_at: float, is_recorded: bool
) -> None:
    seen = BrokerSeen(
        REFUSED, 51.0, answered_at=50.5, absent_since=51.0, returned_at=returned_at, idle_since=0.0
    )
    cluster = ClusterState(brokers={2: seen}, nodes={2: NodeState(50.0, stopping_since=50.0)})
    assert (2 in stopping_in_order(cluster, 52.0)) is is_recorded
