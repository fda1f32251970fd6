"""What is known of a cluster as a whole: shares of several collectors, who is contested, who deserves restart grace."""

from __future__ import annotations

import pytest

from tidemark.core.cluster import ClusterState
from tidemark.core.events import CONTROLLED_SHUTDOWN, OK, REFUSED, TIMED_OUT, BrokerAnswer, Pass
from tidemark.detect.collector_conflict import shares_overlap


def passed(at: float, shard: str | None = None, answers: list[BrokerAnswer] | None = None) -> Pass:
    return Pass(
        number=int(at),
        started_at=at,
        ended_at=at,
        monotonic=at,
        period_ms=1000.0,
        brokers=answers or [],
        shard=shard,
    )


def counts(preferred: int, led: int) -> list[BrokerAnswer]:
    return [BrokerAnswer(broker=1, outcome=OK, preferred=preferred, preferred_led=led)]


def test_collectors_of_shares_take_turns_at_the_cluster() -> None:
    cluster = ClusterState()
    turns = [
        cluster.is_due(name, passed(at))
        for name, at in (("a", 100.0), ("b", 100.5), ("a", 101.0), ("b", 101.5))
    ]
    assert turns == [True, False, True, False]
    assert cluster.is_due("a", passed(101.1)), (
        "its own passes may follow closely, when something happens"
    )
    assert not cluster.is_due("b", passed(101.84))
    assert cluster.is_due("b", passed(101.86)), "the other one is late"
    assert cluster.is_due("a", passed(60.0)), "clocks that differ so much keep nobody waiting"


def test_shares_are_counted_together_and_a_silent_collectors_not_at_all() -> None:
    cluster = ClusterState()
    assert cluster.preferred_of(1, 0.0) is None
    cluster.tick("a", 1, passed(100.0, "0/2", counts(10, 10)))
    cluster.tick("b", 2, passed(101.0, "1/2", counts(12, 2)))
    assert cluster.preferred_of(1, 102.0) == (22, 12)
    assert cluster.preferred_of(1, 131.0) == (12, 2)
    assert cluster.preferred_of(2, 102.0) is None


def test_who_counts_the_whole_cluster_has_counted_the_shares_too() -> None:
    cluster = ClusterState()
    cluster.tick("a", 1, passed(100.0, "0/2", counts(10, 10)))
    cluster.tick("b", 2, passed(101.0, None, counts(22, 12)))
    assert cluster.preferred_of(1, 102.0) == (22, 12)


def test_passes_beside_a_newer_process_are_counted_until_it_falls_silent() -> None:
    cluster = ClusterState()
    cluster.tick("old", 1, passed(100.0))
    cluster.tick("new", 2, passed(101.0))
    for at in (102.0, 103.0, 104.0):
        cluster.tick("old", 1, passed(at))
    assert (cluster.collectors["old"].contested, cluster.collectors["new"].contested) == (3, 0)
    cluster.tick("old", 1, passed(140.0))
    assert cluster.collectors["old"].contested == 0


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        (None, None, True),
        (None, "1/4", True),
        ("1/4", "1/4", True),
        ("1/4", "2/4", False),
        ("1/4", "1/2", True),
        ("1/4", "0/2", False),
        ("1/4", "2/6", False),
        ("1/4", "3/6", True),
        ("0/2", "2/3", True),
        ("0/0", "1/0", True),
        ("a", "b", False),
        ("a", "a", True),
    ],
)
def test_shares_overlap_where_a_number_can_leave_both_remainders(
    one: str | None, other: str | None, overlap: bool
) -> None:
    assert shares_overlap(one, other) is shares_overlap(other, one) is overlap


@pytest.mark.parametrize(
    ("outcome", "in_sync", "deserves"),
    [
        (REFUSED, 0, True),
        (REFUSED, None, True),
        (REFUSED, 3, False),
        (CONTROLLED_SHUTDOWN, 3, True),
        (TIMED_OUT, 0, False),
        (OK, 0, False),
    ],
)
def test_grace_is_for_who_left_every_in_sync_set_before_it_went(
    outcome: str, in_sync: int | None, deserves: bool
) -> None:
    cluster = ClusterState()
    cluster.note_answers([BrokerAnswer(broker=3, outcome=OK)], 100.0)
    answers = [BrokerAnswer(broker=3, outcome=outcome, in_sync=in_sync)]
    assert cluster.newly_refusing(answers) == ([3] if deserves else [])
