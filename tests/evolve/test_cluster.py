"""The clocks and shares of a cluster's collectors, and what passes report of the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.core.cluster import MAX_COLLECTORS, OWNER_SILENT_SECONDS, ClusterState, CollectorClock
from tidemark.core.events import OK, REFUSED, TIMED_OUT, BrokerAnswer, Pass
from tidemark.evolve.cluster import SET_BACK_PASSES, advance_clock, apply_pass, is_due, note_refused


def pass_at(at: float, **fields: Any) -> Pass:
    times = {"started_at": at, "ended_at": at, "monotonic": at / 2}
    return Pass(**{"number": int(at), **times, "period_ms": 1000.0, **fields})


def advance(cluster: ClusterState, *passes: tuple[str, int, float]) -> None:
    """Passes: (collector, its epoch, when)."""
    for name, epoch, at in passes:
        advance_clock(cluster, name, epoch, pass_at(at))


def preferred(broker: int, owned: int | None, led: int | None) -> BrokerAnswer:
    return BrokerAnswer(broker=broker, outcome=OK, preferred=owned, preferred_led=led)


def test_a_pass_moves_the_clock_of_its_collector(cluster: ClusterState) -> None:
    answers = [preferred(1, 10, 7), preferred(2, 10, None), preferred(3, None, 0)]
    assert advance_clock(cluster, "a", 3, pass_at(100.0, shard="0/2", brokers=answers))
    first = CollectorClock(3, 100, 100.0, 50.0, 1000.0, "0/2", 100.0, preferred={1: (10, 7)})
    assert cluster.collectors == {"a": first}
    assert advance_clock(cluster, "a", 3, pass_at(101.0, period_ms=500.0))
    second = CollectorClock(3, 101, 101.0, 50.5, 500.0, began_at=100.0)
    assert cluster.collectors == {"a": second}


def test_shrinks_are_those_of_the_newest_pass(cluster: ClusterState) -> None:
    """Without the count of absent brokers, none is known to be absent."""
    answers = [
        BrokerAnswer(broker=1, outcome=OK, led_shrinks=5, led_shrinks_of_absent=2),
        BrokerAnswer(broker=2, outcome=OK, led_shrinks=3),
        BrokerAnswer(broker=3, outcome=OK),
    ]
    advance_clock(cluster, "a", 3, pass_at(100.0, brokers=answers))
    found = [cluster.led_shrinks_of(broker) for broker in (1, 2, 3)]
    assert found == [[(3, 5, 2)], [(3, 3, 0)], []]
    advance_clock(cluster, "a", 3, pass_at(101.0, brokers=answers[1:]))
    assert cluster.led_shrinks_of(1) == []


@pytest.mark.parametrize(
    ("collector_epoch", "number", "moves"),
    [(3, 101, True), (3, 100, False), (3, 99, False), (4, 1, True), (2, 101, False)],
)
def test_repeated_passes_and_those_of_a_replaced_process_do_not_count(
    cluster: ClusterState, collector_epoch: int, number: int, moves: bool
) -> None:
    advance_clock(cluster, "a", 3, pass_at(100.0))
    assert advance_clock(cluster, "a", collector_epoch, pass_at(105.0, number=number)) is moves
    assert cluster.collectors["a"].ended_at == (105.0 if moves else 100.0)


def test_a_process_whose_clock_was_ahead_is_replaced_after_some_passes(
    cluster: ClusterState,
) -> None:
    advance_clock(cluster, "a", 3, pass_at(100.0))
    for number in range(1, SET_BACK_PASSES):
        assert not advance_clock(cluster, "a", 2, pass_at(100.0 + number))
    clock = cluster.collectors["a"]
    assert (clock.older_passes, clock.older_at) == (SET_BACK_PASSES - 1, 129.0)
    assert not advance_clock(ClusterState({"a": clock}), "a", 3, pass_at(100.0)), "repeated"
    assert advance_clock(cluster, "a", 2, pass_at(90.0))
    assert cluster.collectors["a"] == CollectorClock(2, 90, 90.0, 45.0, 1000.0, began_at=90.0)


def test_passes_of_an_older_process_are_remembered_while_the_newer_one_runs(
    cluster: ClusterState,
) -> None:
    advance(cluster, ("a", 3, 100.0), ("a", 2, 101.0), ("a", 2, 100.5), ("a", 3, 102.0))
    clock = cluster.collectors["a"]
    assert (clock.began_at, clock.older_at, clock.older_passes) == (100.0, 101.0, 0)


def test_passes_beside_a_newer_process_count_until_it_is_silent(cluster: ClusterState) -> None:
    advance(cluster, ("old", 1, 100.0), ("new", 2, 101.0))
    advance(cluster, *(("old", 1, at) for at in (102.0, 103.0, 104.0)))
    old = cluster.collectors["old"]
    assert (old.contested, old.contested_from, cluster.collectors["new"].contested) == (3, 51.0, 0)
    # By the monotonic clock of the older one, since its first pass after the newer one's last.
    silent_at = 102.0 + 2 * OWNER_SILENT_SECONDS
    advance_clock(cluster, "old", 1, pass_at(silent_at))
    assert cluster.collectors["old"].contested == 4
    advance_clock(cluster, "old", 1, pass_at(silent_at + 0.1, number=170))
    assert cluster.collectors["old"].contested == 0


@pytest.mark.parametrize("ahead", [-3600.0, 0.0, 3600.0])
@pytest.mark.parametrize("step", [-7200.0, 0.0, 7200.0])
def test_the_wall_clocks_of_collectors_do_not_matter(
    cluster: ClusterState, ahead: float, step: float
) -> None:
    """The owner's clock is ahead or behind, and the other one's steps meanwhile."""

    def passes(name: str, number: int, at: float) -> None:
        event = pass_at(at, number=number, monotonic=float(number))
        advance_clock(cluster, name, {"a": 2, "b": 1}[name], event)

    for number in range(100, 140):
        passes("a", number, 100.0 + ahead + number)
        passes("b", number, 100.0 + number + step * (number > 120))
        assert not cluster.is_silent("a", "b")
    for number in range(140, 170):
        passes("b", number, 100.0 + number)
        assert not cluster.is_silent("a", "b")
    passes("b", 170, 270.0)
    assert cluster.is_silent("a", "b")
    assert not cluster.is_silent("b", "a")
    passes("a", 140, 240.0 + ahead)
    passes("b", 171, 271.0)
    assert not cluster.is_silent("a", "b")


def test_a_new_process_measures_the_silence_of_others_from_its_own_beginning(
    cluster: ClusterState,
) -> None:
    advance_clock(cluster, "a", 5, pass_at(100.0))
    advance_clock(cluster, "b", 1, pass_at(101.0, monotonic=1.0))
    advance_clock(cluster, "b", 2, pass_at(110.0, monotonic=90_000.0))
    assert not cluster.is_silent("a", "b")
    advance_clock(cluster, "b", 2, pass_at(111.0, number=111, monotonic=90_031.0))
    assert cluster.is_silent("a", "b")
    assert cluster.is_silent("a", "b", 6), "its process was replaced"
    assert cluster.is_silent("z", "b"), "an owner that is not known"
    assert not cluster.is_silent("a", "z"), "a collector without a pass"


@pytest.mark.parametrize(
    ("passes", "contested"),
    [
        # The first pass of an older process counts too.
        ([("new", 2, 101.0), ("old", 1, 102.0)], {"new": 0, "old": 1}),
        # Two processes of the same age do not contest.
        ([("a", 1, 100.0), ("b", 1, 101.0), ("a", 1, 102.0)], {"a": 0, "b": 0}),
    ],
)
def test_a_pass_of_an_older_process_contests(
    cluster: ClusterState, passes: list[tuple[str, int, float]], contested: dict[str, int]
) -> None:
    advance(cluster, *passes)
    assert {name: clock.contested for name, clock in cluster.collectors.items()} == contested


def test_refused_passes_count_once_each(cluster: ClusterState) -> None:
    note_refused(cluster, "a", 1, 100)
    advance_clock(cluster, "a", 1, pass_at(100.0))
    for collector_epoch, number in ((1, 100), (2, 101), (1, 101), (1, 101), (1, 99), (1, 103)):
        note_refused(cluster, "a", collector_epoch, number)
    advance_clock(cluster, "a", 1, pass_at(104.0))
    assert (cluster.collectors["a"].refused, cluster.collectors["a"].refused_pass) == (2, 103)


def test_a_bounded_number_of_collectors_is_known(cluster: ClusterState) -> None:
    for number in range(MAX_COLLECTORS + 10):
        advance_clock(cluster, f"c{number}", 1, pass_at(100.0 + number))
    assert [*cluster.collectors] == [f"c{number}" for number in range(10, MAX_COLLECTORS + 10)]
    measured = {name for clock in cluster.collectors.values() for name in clock.silent_from}
    assert measured <= cluster.collectors.keys()


def test_collectors_of_shares_take_turns_at_the_cluster(cluster: ClusterState) -> None:
    turns = [
        (is_due(cluster, name, pass_at(at)), cluster.judged_by, cluster.judged_at)
        for name, at in (("a", 100.0), ("b", 100.5), ("a", 101.0), ("b", 101.5))
    ]
    assert turns == [
        (True, "a", 100.0),
        (False, "a", 100.0),
        (True, "a", 101.0),
        (False, "a", 101.0),
    ]
    assert is_due(cluster, "a", pass_at(101.1)), "its own passes may follow closely"
    assert not is_due(cluster, "b", pass_at(101.8495))
    assert is_due(cluster, "b", pass_at(101.85 + 1e-9)), "the other one is late"
    assert is_due(cluster, "a", pass_at(60.0)), "clocks that differ so much keep no one waiting"
    cluster = ClusterState(judged_at=100.0, judged_by="a")
    assert is_due(cluster, "b", pass_at(100.75)), "three quarters of a period"


ONE_SHARE = ("a", "0/2", 100.0, (10, 10))


@pytest.mark.parametrize(
    ("shares", "broker", "at", "expected"),
    [
        ([], 1, 0.0, None),
        ([ONE_SHARE, ("b", "1/2", 101.0, (12, 2))], 1, 102.0, (22, 12)),
        # A silent collector does not count.
        ([ONE_SHARE, ("b", "1/2", 101.0, (12, 2))], 1, 161.5, (12, 2)),
        ([ONE_SHARE, ("b", "1/2", 101.0, (12, 2))], 2, 102.0, None),
        # A collector of the whole cluster counts alone.
        ([ONE_SHARE, ("b", None, 101.0, (22, 12))], 1, 102.0, (22, 12)),
    ],
)
def test_preferred_leaders_of_all_shares_are_added_up(
    cluster: ClusterState,
    shares: list[tuple[str, str | None, float, tuple[int, int]]],
    broker: int,
    at: float,
    expected: tuple[int, int] | None,
) -> None:
    for name, shard, reported_at, (owned, led) in shares:
        answers = [preferred(1, owned, led)]
        advance_clock(cluster, name, 1, pass_at(reported_at, shard=shard, brokers=answers))
    if shares:
        answers = [preferred(1, *shares[-1][3])]
        advance_clock(cluster, "b", 1, pass_at(at, shard=shares[-1][1], brokers=answers))
        cluster.judged_by = "b"
    assert cluster.preferred_of(broker) == expected


def test_a_pass_reports_the_cluster_and_its_quorum(cluster: ClusterState) -> None:
    whole = {"cluster_id": "x", "partitions": 7, "quorum_leader": 1, "quorum_epoch": 5}
    apply_pass(cluster, pass_at(1.0, **whole))
    apply_pass(cluster, pass_at(2.0))
    assert (cluster.cluster_id, cluster.partitions) == ("x", 7), "unknown: as before"
    assert (cluster.quorum_leader, cluster.quorum_epoch) == (None, None), "not asked"
    apply_pass(cluster, pass_at(3.0, **whole | {"partitions": 0, "cluster_id": "y"}))
    assert (cluster.cluster_id, cluster.partitions) == ("y", 0)
    assert (cluster.quorum_leader, cluster.quorum_epoch) == (1, 5)


REFUSES = BrokerAnswer(broker=1, outcome=REFUSED)


@pytest.mark.parametrize(
    ("fields", "blind"),
    [
        ({"missed": "all"}, True),
        ({"brokers": [REFUSES, BrokerAnswer(broker=2, outcome=TIMED_OUT)]}, True),
        ({"brokers": [REFUSES, BrokerAnswer(broker=2, outcome=OK)]}, False),
        ({"missed": {"orders": [(0, 3)]}}, False),
        ({}, False),
    ],
)
def test_a_pass_is_blind_when_it_saw_nothing(fields: dict[str, Any], blind: bool) -> None:
    cluster = ClusterState(blind_passes=2)
    apply_pass(cluster, pass_at(1.0, **fields))
    assert cluster.blind_passes == (3 if blind else 0)


def passed(cluster: ClusterState, name: str, event: Pass) -> None:
    assert advance_clock(cluster, name, 1, event)
    apply_pass(cluster, event)


def test_blind_passes_are_counted_until_one_sees_the_group() -> None:
    cluster, blind = ClusterState(), {"missed": "all"}
    found = []
    for at, fields in ((100.0, blind), (101.0, blind), (102.0, {}), (103.0, blind)):
        passed(cluster, "a", pass_at(at, **fields))
        found.append((cluster.collectors["a"].blind_passes, cluster.blind_passes))
    assert found == [(1, 1), (2, 2), (0, 0), (1, 1)]


def test_the_partitions_are_those_of_all_shares_that_are_watched(cluster: ClusterState) -> None:
    passed(cluster, "a", pass_at(100.0, shard="0/2", partitions=7, reassigning=3))
    assert (cluster.partitions, cluster.reassigning) == (7, 3)
    passed(cluster, "b", pass_at(100.0, shard="1/2", partitions=5, reassigning=4))
    assert (cluster.partitions, cluster.reassigning) == (12, 4)
    later = 100.0 + 2 * OWNER_SILENT_SECONDS + 2.0
    passed(cluster, "b", pass_at(later, shard="1/2", partitions=5))
    assert (cluster.partitions, cluster.reassigning) == (5, None), "the other one is silent"


def test_a_collector_that_is_forgotten_measures_no_silence() -> None:
    """Its clock is behind, so that its pass is the oldest of all."""
    cluster, names = ClusterState(), [f"c{number}" for number in range(MAX_COLLECTORS)]
    for at, name in enumerate(names):
        passed(cluster, name, pass_at(100.0 + at))
    assert advance_clock(cluster, "behind", 1, pass_at(50.0))
    assert set(cluster.collectors) == set(names)
    measured = {name for clock in cluster.collectors.values() for name in clock.silent_from}
    assert measured == set(names[1:])
