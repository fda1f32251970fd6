"""What is known of a broker before it has answered, failed or returned, and at the same moment."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.evolve.test_brokers import answer
from tidemark.core.broker_seen import BrokerSeen, Pause
from tidemark.core.cluster import ClusterState, CollectorClock, NodeState
from tidemark.core.events import OK, REFUSED, TIMED_OUT, BrokerAnswer
from tidemark.evolve.broker_answers import apply_answers, stopping_in_order

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
