"""What is known of a broker before it has answered, failed or returned, and at the same moment."""

from __future__ import annotations

import pytest

from tests.evolve.test_brokers import answer
from tidemark.core.broker_seen import BrokerSeen, Pause
from tidemark.core.cluster import ClusterState, CollectorClock, NodeState
from tidemark.core.events import OK, REFUSED, TIMED_OUT
from tidemark.evolve.broker_answers import apply_answers, stopping_in_order


def test_a_broker_that_answers_at_first_has_not_returned(cluster: ClusterState) -> None:
    apply_answers(cluster, [answer(1, rack="a")], 5.0)
    assert cluster.brokers[1].returned_at == 0.0
    assert cluster.brokers[1].rack == "a"


def test_a_broker_that_fails_at_first_is_absent_since_then(cluster: ClusterState) -> None:
    apply_answers(cluster, [answer(1), answer(2, REFUSED)], 5.0)
    assert cluster.brokers[2].absent_since == 5.0


def test_a_new_broker_pauses_as_a_known_one(cluster: ClusterState) -> None:
    apply_answers(cluster, [answer(1)], 1.0)
    for at, outcome in ((2.0, TIMED_OUT), (3.0, TIMED_OUT), (4.0, OK)):
        apply_answers(cluster, [answer(1), answer(2, outcome)], at)
    assert cluster.brokers[2].pauses == [Pause(2.0, 3.0)]


def test_the_state_of_an_older_version_does_not_say_when_a_pause_began() -> None:
    cluster = ClusterState(brokers={1: BrokerSeen(TIMED_OUT, 50.0, failed_at=60.0)})
    apply_answers(cluster, [answer(1)], 61.0)
    assert cluster.brokers[1].pauses == []


def test_a_broker_returns_only_from_an_absence_in_which_others_answered(
    cluster: ClusterState,
) -> None:
    apply_answers(cluster, [answer(1, TIMED_OUT)], 1.0)
    apply_answers(cluster, [answer(1)], 2.0)
    assert cluster.brokers[1].returning_until == 0.0


def test_grace_does_not_explain_a_failure_at_its_end() -> None:
    seen = BrokerSeen(TIMED_OUT, 50.0, grace_until=100.0, absent_since=99.0, in_order=True)
    cluster = ClusterState(brokers={1: BrokerSeen(OK, 50.0), 2: seen})
    apply_answers(cluster, [answer(1), answer(2, TIMED_OUT)], 100.0)
    assert cluster.brokers[2].failed_at == 100.0


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
