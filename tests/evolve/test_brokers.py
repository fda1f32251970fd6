"""What is known of brokers: their `broker` events, their answers, and restart grace."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.core.cluster import (
    MAX_BROKERS,
    MAX_PURGATORY_SAMPLES,
    BrokerSeen,
    ClusterState,
    NodeState,
    PurgatorySample,
)
from tidemark.core.events import (
    CONTROLLED_SHUTDOWN,
    OK,
    REFUSED,
    TIMED_OUT,
    BrokerAnswer,
    BrokerState,
)
from tidemark.evolve.cluster import (
    PURGATORY_SECONDS,
    RETURN_SECONDS,
    apply_answers,
    apply_broker,
    grant_grace,
    newly_refusing,
)


def answer(broker: int, outcome: str = OK, in_sync: int | None = None) -> BrokerAnswer:
    return BrokerAnswer(broker=broker, outcome=outcome, in_sync=in_sync)


NODE: dict[str, Any] = {
    "fenced": True,
    "in_controlled_shutdown": False,
    "is_voter": True,
    "metadata_log_end_offset": 90,
    "metadata_lag_ms": 12.0,
    "offline_log_dirs": 1,
}


def test_a_broker_event_replaces_what_it_reports_and_keeps_the_rest() -> None:
    cluster = ClusterState()
    apply_broker(cluster, BrokerState(broker=1, observed_at=10.0, **NODE))
    assert cluster.nodes == {1: NodeState(10.0, **NODE)}
    apply_broker(cluster, BrokerState(broker=1, observed_at=11.0, fenced=False))
    assert cluster.nodes == {1: NodeState(11.0, **NODE | {"fenced": False})}
    apply_broker(cluster, BrokerState(broker=1, observed_at=11.0, metadata_log_end_offset=0))
    known = NodeState(11.0, **NODE | {"fenced": False, "metadata_log_end_offset": 0})
    assert cluster.nodes == {1: known}
    apply_broker(cluster, BrokerState(broker=1, observed_at=10.9, fenced=True))
    assert cluster.nodes == {1: known}, "an older event is ignored"


def test_a_new_incarnation_is_a_restart() -> None:
    cluster = ClusterState()
    restarts = []
    for at, incarnation in ((10.0, 7), (11.0, 7), (12.0, None), (13.0, 8), (14.0, 8)):
        apply_broker(cluster, BrokerState(broker=1, observed_at=at, incarnation=incarnation))
        restarts.append((cluster.nodes[1].incarnation, cluster.nodes[1].restarted_at))
    assert restarts == [(7, None), (7, None), (7, None), (8, 13.0), (8, 13.0)]


def test_a_bounded_number_of_nodes_and_purgatory_samples_is_known() -> None:
    cluster = ClusterState()
    for broker in range(MAX_BROKERS + 10):
        apply_broker(cluster, BrokerState(broker=broker, observed_at=10.0))
    assert [*cluster.nodes] == [*range(MAX_BROKERS)]
    for step in range(3 * MAX_PURGATORY_SAMPLES):
        at = 10.0 + step * PURGATORY_SECONDS
        apply_broker(cluster, BrokerState(broker=1, observed_at=at, produce_purgatory=step))
    newest = range(2 * MAX_PURGATORY_SAMPLES, 3 * MAX_PURGATORY_SAMPLES)
    samples = [PurgatorySample(10.0 + step * PURGATORY_SECONDS, step, None) for step in newest]
    assert cluster.nodes[1].purgatories == samples


def test_purgatories_are_sampled_at_intervals_and_only_where_reported() -> None:
    cluster = ClusterState()
    for at, produce, fetch in ((10.0, None, None), (11.0, None, 3), (20.9, 1, 3), (21.0, 0, None)):
        event = BrokerState(
            broker=1, observed_at=at, produce_purgatory=produce, fetch_purgatory=fetch
        )
        apply_broker(cluster, event)
    samples = [PurgatorySample(11.0, None, 3), PurgatorySample(21.0, 0, None)]
    assert cluster.nodes[1].purgatories == samples


@pytest.mark.parametrize(
    ("before", "outcome", "in_sync", "deserves"),
    [
        (OK, REFUSED, 0, True),
        (OK, REFUSED, None, True),
        (OK, REFUSED, 3, False),
        (OK, CONTROLLED_SHUTDOWN, 3, True),
        (OK, TIMED_OUT, 0, False),
        (OK, OK, 0, False),
        (TIMED_OUT, REFUSED, 0, True),
        # It refused in the last pass too, or was never seen.
        (REFUSED, REFUSED, 0, False),
        (CONTROLLED_SHUTDOWN, REFUSED, 0, False),
        (REFUSED, CONTROLLED_SHUTDOWN, 0, False),
        (None, REFUSED, 0, False),
    ],
)
def test_a_broker_that_left_all_in_sync_sets_before_it_stopped_deserves_grace(
    before: str | None, outcome: str, in_sync: int | None, deserves: bool
) -> None:
    cluster = ClusterState()
    if before is not None:
        apply_answers(cluster, [answer(3, before)], 100.0)
    assert newly_refusing(cluster, [answer(3, outcome, in_sync)]) == ([3] if deserves else [])


def test_answers_are_counted_while_they_stay_the_same() -> None:
    cluster = ClusterState()
    for at, outcome in ((10.0, OK), (11.0, OK), (12.0, REFUSED), (13.0, REFUSED)):
        apply_answers(cluster, [answer(1, outcome), answer(2)], at)
    assert cluster.brokers == {1: BrokerSeen(REFUSED, 12.0, 2), 2: BrokerSeen(OK, 10.0, 4)}
    apply_answers(cluster, [answer(2)], 14.0)
    assert [*cluster.brokers] == [2], "a broker that the pass does not name is forgotten"


@pytest.mark.parametrize(
    ("before", "outcome", "grace_until"),
    [
        # A broker that came back has a minute to join the in-sync sets.
        (REFUSED, OK, 100.0 + RETURN_SECONDS),
        # The broker is still absent.
        (REFUSED, TIMED_OUT, 900.0),
        (REFUSED, REFUSED, 900.0),
        # A new absence needs a new grace.
        (OK, TIMED_OUT, 0.0),
    ],
)
def test_how_long_a_grace_lasts(before: str, outcome: str, grace_until: float) -> None:
    cluster = ClusterState(brokers={1: BrokerSeen(before, 50.0, grace_until=900.0)})
    apply_answers(cluster, [answer(1, outcome)], 100.0)
    assert cluster.brokers[1].grace_until == grace_until


def test_grace_that_has_ended_does_not_start_again_when_the_broker_returns() -> None:
    cluster = ClusterState(brokers={1: BrokerSeen(REFUSED, 50.0, grace_until=80.0)})
    apply_answers(cluster, [answer(1)], 100.0)
    assert cluster.brokers[1].grace_until == 80.0


@pytest.mark.parametrize(
    ("outcomes", "grace"),
    [
        ({1: REFUSED, 2: OK}, {1: 220.0, 2: 0.0}),
        # A second broker that does not answer ends the grace of all.
        ({1: REFUSED, 2: TIMED_OUT, 3: OK}, {1: 0.0, 2: 0.0, 3: 0.0}),
    ],
)
def test_grace_is_granted_to_one_broker_at_a_time(
    outcomes: dict[int, str], grace: dict[int, float]
) -> None:
    cluster = ClusterState()
    apply_answers(cluster, [answer(broker, outcome) for broker, outcome in outcomes.items()], 100.0)
    grant_grace(cluster, [1], 100.0, 120_000.0)
    assert {broker: seen.grace_until for broker, seen in cluster.brokers.items()} == grace
    assert cluster.in_grace(1, 219.9) is (grace[1] == 220.0)
    assert not cluster.in_grace(1, 220.0)
    assert not cluster.in_grace(9, 100.0)
