"""What is known of brokers: their `broker` events, their answers, and restart grace."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tidemark.core.broker_report import BrokerConfiguration, LogDirectory
from tidemark.core.broker_seen import BrokerSeen
from tidemark.core.cluster import (
    MAX_BROKERS,
    MAX_PURGATORY_SAMPLES,
    BrokerStop,
    CheckpointFiles,
    ClusterState,
    CollectorClock,
    NodeState,
    PurgatorySample,
)
from tidemark.core.events import (
    CONTROLLED_SHUTDOWN,
    OK,
    REFUSED,
    TIMED_OUT,
    UNREACHABLE,
    BrokerAnswer,
    BrokerState,
)
from tidemark.evolve.broker_answers import (
    CONTROLLED_SHUTDOWN_SECONDS,
    PAUSE_SECONDS,
    RETURN_SECONDS,
    SLOW_SECONDS,
    STOP_SECONDS,
    apply_answers,
    grant_grace,
    stopping_in_order,
)
from tidemark.evolve.cluster import FIELD_GROUPS, PURGATORY_SECONDS, apply_broker
from tidemark.evolve.departures import count_in_sync


def answer(broker: int, outcome: str = OK, **counts: Any) -> BrokerAnswer:
    return BrokerAnswer(broker=broker, outcome=outcome, **counts)


def passes(cluster: ClusterState, *answers: BrokerAnswer, at: float) -> dict[int, bool]:
    """One pass of the only collector; the brokers that it shows to stop in order."""
    clock = cluster.collectors.setdefault("c", CollectorClock(1, 0, at, at, 1000.0))
    clock.ended_at = at
    apply_answers(cluster, [*answers], at)
    count_in_sync(cluster, "c", [*answers], at)
    stopping = stopping_in_order(cluster, at)
    grant_grace(cluster, stopping, at, 600_000.0)
    return stopping


NODE: dict[str, Any] = {
    "fenced": True,
    "in_controlled_shutdown": False,
    "is_voter": True,
    "metadata_log_end_offset": 90,
    "metadata_lag_ms": 12.0,
    "offline_log_dirs": 1,
    "log_directories": [LogDirectory(path="/a", error="KAFKA_STORAGE_ERROR")],
    "configuration": BrokerConfiguration(replica_lag_time_max_ms=30_000),
}
READ: dict[str, Any] = {"log_directories_at": 10.0, "configuration_at": 10.0}


def test_a_broker_event_replaces_what_it_reports_and_keeps_the_rest(cluster: ClusterState) -> None:
    groups = ("registration", "quorum", "log_directories", "configuration")
    at = dict.fromkeys(groups, 10.0)
    apply_broker(cluster, BrokerState(broker=1, observed_at=10.0, **NODE))
    assert cluster.nodes == {1: NodeState(10.0, **NODE, **READ, reported_at=at)}
    apply_broker(cluster, BrokerState(broker=1, observed_at=11.0, fenced=False))
    at["registration"] = 11.0
    fenced = NODE | READ | {"fenced": False}
    assert cluster.nodes == {1: NodeState(11.0, **fenced, reported_at=at)}
    apply_broker(cluster, BrokerState(broker=1, observed_at=11.0, metadata_log_end_offset=0))
    at["quorum"] = 11.0
    known = NodeState(11.0, **fenced | {"metadata_log_end_offset": 0}, reported_at=at)
    assert cluster.nodes == {1: known}
    apply_broker(cluster, BrokerState(broker=1, observed_at=10.9, fenced=True))
    assert cluster.nodes == {1: known}, "an older event is ignored"


def test_the_log_directories_are_as_old_as_their_own_report(cluster: ClusterState) -> None:
    reported = BrokerState(broker=1, observed_at=9.0, log_directories=[LogDirectory(path="/a")])
    apply_broker(cluster, reported)
    apply_broker(cluster, BrokerState(broker=1, observed_at=12.0, offline_log_dirs=2))
    node = cluster.nodes[1]
    assert (node.offline_log_dirs, node.log_directories_at) == (2, 9.0)


def test_a_reader_of_files_has_another_clock_than_the_collectors() -> None:
    """Neither hides what the other reports, whichever clock is ahead."""
    cluster = ClusterState(cluster_id="abc")
    for ahead in (-3600.0, 3600.0):
        at = 5000.0 + ahead
        files = {"checkpoint_modified_at": at - 2, "checkpoint_directory": "/data"}
        read = BrokerState(broker=1, observed_at=at, cluster_id="abc", **files)  # type: ignore[arg-type]
        apply_broker(cluster, read)
        apply_broker(cluster, BrokerState(broker=1, observed_at=5000.0, fenced=ahead > 0))
        node = cluster.nodes[1]
        assert (node.fenced, node.observed_at) == (ahead > 0, 5000.0)
        assert node.checkpoint == CheckpointFiles(at - 2, at, "/data")
    stopped = BrokerState(broker=1, observed_at=9.0, stopped_clean=True, stopped_at=8.0)
    apply_broker(cluster, stopped)
    assert cluster.nodes[1].last_stop == BrokerStop(clean=True, at=8.0)
    assert cluster.nodes[1].checkpoint is not None, "a field that is left out stays"
    apply_broker(cluster, BrokerState(broker=2, observed_at=9.0, stopped_clean=False))
    assert cluster.nodes[2] == NodeState(0.0, last_stop=BrokerStop(clean=False, at=9.0))


def test_the_files_of_another_cluster_are_not_of_this_broker() -> None:
    cluster = ClusterState(cluster_id="abc")
    other = BrokerState(
        broker=1, observed_at=9.0, checkpoint_modified_at=8.0, stopped_clean=True, cluster_id="x"
    )
    apply_broker(cluster, other)
    assert cluster.nodes == {}
    cluster.cluster_id = None
    apply_broker(cluster, other)
    assert cluster.nodes[1].checkpoint is not None, "the cluster is not known yet"


def test_no_source_makes_the_events_of_another_one_old(cluster: ClusterState) -> None:
    apply_broker(cluster, BrokerState(broker=1, observed_at=12.0, produce_purgatory=7))
    apply_broker(cluster, BrokerState(broker=1, observed_at=11.0, fenced=True))
    apply_broker(cluster, BrokerState(broker=1, observed_at=10.0, is_voter=True, fenced=False))
    apply_broker(cluster, BrokerState(broker=1, observed_at=9.0, offline_log_dirs=1))
    node = cluster.nodes[1]
    assert (node.fenced, node.is_voter, node.offline_log_dirs) == (True, True, 1)
    assert [sample.produce for sample in node.purgatories] == [7]
    assert node.observed_at == 12.0


def test_every_field_of_a_broker_event_is_of_one_group() -> None:
    grouped = [name for names in FIELD_GROUPS.values() for name in names]
    # A reader of files has a clock of its own: its events are not ordered with the others.
    files = {"checkpoint_modified_at", "checkpoint_directory", "stopped_clean", "stopped_at"}
    unused = {"broker", "observed_at", "cluster_id", *files}
    assert sorted(grouped) == sorted({*BrokerState.__struct_fields__} - unused)


@pytest.mark.parametrize(
    ("field", "reported", "shown", "expected"),
    [
        # A new incarnation is a restart.
        ("incarnation", (7, 7, None, 8, 8), "incarnation", [7, 7, 7, 8, 8]),
        ("incarnation", (7, 7, None, 8, 8), "restarted_at", [None, None, None, 3.0, 3.0]),
        # The begin of a controlled shutdown is kept until it ends.
        (
            "in_controlled_shutdown",
            (False, True, True, None, False, True),
            "stopping_since",
            [None, 1.0, 1.0, 1.0, None, 5.0],
        ),
    ],
)
def test_what_a_node_keeps_of_its_events(
    cluster: ClusterState, field: str, reported: tuple[Any, ...], shown: str, expected: list[Any]
) -> None:
    found = []
    for at, value in enumerate(reported):
        event: dict[str, Any] = {"observed_at": float(at), field: value}
        apply_broker(cluster, BrokerState(broker=1, **event))
        found.append(getattr(cluster.nodes[1], shown))
    assert found == expected


def test_a_bounded_number_of_nodes_and_purgatory_samples_is_known(cluster: ClusterState) -> None:
    for broker in range(MAX_BROKERS + 10):
        apply_broker(cluster, BrokerState(broker=broker, observed_at=10.0))
    assert [*cluster.nodes] == [*range(MAX_BROKERS)]
    for step in range(3 * MAX_PURGATORY_SAMPLES):
        at = 10.0 + step * PURGATORY_SECONDS
        apply_broker(cluster, BrokerState(broker=1, observed_at=at, produce_purgatory=step))
    newest = range(2 * MAX_PURGATORY_SAMPLES, 3 * MAX_PURGATORY_SAMPLES)
    samples = [PurgatorySample(10.0 + step * PURGATORY_SECONDS, step, None) for step in newest]
    assert cluster.nodes[1].purgatories == samples


def test_purgatories_are_sampled_at_intervals_and_only_where_reported(
    cluster: ClusterState,
) -> None:
    for at, produce, fetch in ((10.0, None, None), (11.0, None, 3), (19.9, 1, 3), (20.0, 0, None)):
        event = BrokerState(
            broker=1, observed_at=at, produce_purgatory=produce, fetch_purgatory=fetch
        )
        apply_broker(cluster, event)
    samples = [PurgatorySample(11.0, None, 3), PurgatorySample(20.0, 0, None)]
    assert cluster.nodes[1].purgatories == samples


@pytest.mark.parametrize(
    ("before", "outcome", "deserves"),
    [
        (OK, REFUSED, True),
        (OK, UNREACHABLE, True),
        (OK, CONTROLLED_SHUTDOWN, True),
        (OK, TIMED_OUT, False),
        (OK, OK, False),
        # It refused in the last pass too, or was never seen.
        (REFUSED, REFUSED, False),
        (REFUSED, CONTROLLED_SHUTDOWN, False),
        (None, REFUSED, False),
    ],
)
def test_without_counts_the_first_pass_without_a_port_is_a_likely_restart(
    cluster: ClusterState, before: str | None, outcome: str, deserves: bool
) -> None:
    if before is not None:
        passes(cluster, answer(3, before), at=100.0)
    assert passes(cluster, answer(3, outcome), at=101.0) == ({3: False} if deserves else {})


@pytest.mark.parametrize(
    ("outcome", "serving", "after", "deserves"),
    [
        (REFUSED, 0, 0.0, True),
        (UNREACHABLE, 0, 0.0, True),
        # The metadata was read one pass late.
        (REFUSED, 0, STOP_SECONDS, True),
        # Its session has ended: the controller took it out of the sets because it died.
        (REFUSED, 0, STOP_SECONDS + 0.1, False),
        (REFUSED, 3, 0.0, False),
        (TIMED_OUT, 0, 0.0, False),
    ],
)
def test_a_broker_that_handed_over_before_its_port_closed_deserves_grace(
    cluster: ClusterState, outcome: str, serving: int, after: float, deserves: bool
) -> None:
    passes(cluster, answer(3, in_sync=7, serving=7), at=100.0)
    if after:
        assert not passes(cluster, answer(3, outcome, in_sync=7, serving=7), at=101.0)
    closed = answer(3, outcome, in_sync=1, serving=serving)
    assert passes(cluster, closed, at=101.0 + after) == ({3: True} if deserves else {})
    assert cluster.in_grace(3, 101.0 + after) is deserves
    assert cluster.seen(3).in_order is deserves
    # It is granted once.
    assert not passes(cluster, closed, at=102.0 + after)


IDLE: dict[str, Any] = {"in_sync": 0, "serving": 0}
FULL: dict[str, Any] = {"in_sync": 7, "serving": 7}


@pytest.mark.parametrize(
    "answers",
    [
        # A broker that hangs while it stops deserves grace once its port is closed.
        [(100.0, OK, IDLE, False), (101.0, TIMED_OUT, IDLE, False), (111.0, REFUSED, IDLE, True)],
        # One that dies again before it serves has not stopped in order.
        [
            (100.0, OK, FULL, False),
            (101.0, REFUSED, FULL, False),
            (109.0, REFUSED, IDLE, False),
            (110.0, OK, IDLE, False),
            (111.0, REFUSED, IDLE, False),
            (115.0, OK, IDLE, False),
            (116.0, OK, FULL, False),
            (117.0, OK, IDLE, False),
            (118.0, REFUSED, IDLE, True),
        ],
        # An older collector counts in-sync sets only.
        [
            (100.0, OK, {"in_sync": 7}, False),
            (101.0, REFUSED, {"in_sync": 1}, False),
            (102.0, REFUSED, {"in_sync": 0}, True),
        ],
    ],
)
def test_when_a_broker_has_stopped_in_order(
    cluster: ClusterState, answers: list[tuple[float, str, dict[str, Any], bool]]
) -> None:
    for at, outcome, counts, deserves in answers:
        stopping = passes(cluster, answer(3, outcome, **counts), at=at)
        assert stopping == ({3: True} if deserves else {}), at


def test_every_share_counts(cluster: ClusterState) -> None:
    passes(cluster, answer(3, in_sync=0, serving=0), at=100.0)
    other = CollectorClock(1, 0, 100.0, 100.0, 1000.0, "1/2", in_sync={3: 4}, serving={3: 4})
    cluster.collectors["c"].shard = "0/2"
    cluster.collectors["d"] = other
    passes(cluster, answer(3, in_sync=0, serving=0), at=100.5)
    assert not passes(cluster, answer(3, REFUSED, in_sync=0, serving=0), at=101.0)
    assert (cluster.in_sync_of(3), cluster.serving_of(3)) == (4, 4)
    other.serving[3] = 0
    assert passes(cluster, answer(3, REFUSED, in_sync=0, serving=0), at=102.0) == {3: True}


def test_answers_are_counted_while_they_stay_the_same(cluster: ClusterState) -> None:
    for at, outcome in ((10.0, OK), (11.0, OK), (12.0, REFUSED), (13.0, REFUSED)):
        apply_answers(cluster, [answer(1, outcome), answer(2)], at)
    one, two = cluster.brokers[1], cluster.brokers[2]
    assert (one.outcome, one.since, one.passes) == (REFUSED, 12.0, 2)
    assert (one.answered_at, one.absent_since, one.failed_at) == (11.0, 12.0, 13.0)
    assert (two.outcome, two.since, two.passes, two.failed_at) == (OK, 10.0, 4, 0.0)
    apply_answers(cluster, [answer(2)], 14.0)
    assert [*cluster.brokers] == [2], "a broker that the pass does not name is forgotten"


def test_no_broker_has_failed_while_none_answers(cluster: ClusterState) -> None:
    for at, outcome in ((10.0, OK), (11.0, TIMED_OUT), (12.0, OK)):
        apply_answers(cluster, [answer(1, outcome), answer(2, outcome)], at)
        assert not cluster.is_absent(1, at)
    assert cluster.brokers[1].failed_at == 0.0


AWAY: dict[str, Any] = {"absent_since": 50.0}


@pytest.mark.parametrize(
    ("before", "outcome", "fields", "grace_until"),
    [
        # A broker that came back has a minute to join the in-sync sets, or as long as it was away.
        (REFUSED, OK, AWAY, 100.0 + RETURN_SECONDS),
        (
            REFUSED,
            OK,
            {"absent_since": 100.0 - 2 * RETURN_SECONDS},
            100.0 + 2 * RETURN_SECONDS,
        ),
        # The state of an older version does not know since when it was away.
        (REFUSED, OK, {}, 100.0 + RETURN_SECONDS),
        # A new absence needs a new grace, unless the broker is slow after its start.
        (OK, REFUSED, AWAY, 0.0),
        (OK, UNREACHABLE, AWAY, 0.0),
        (OK, TIMED_OUT, AWAY, 900.0),
        (TIMED_OUT, TIMED_OUT, {"absent_since": 100.1 - SLOW_SECONDS}, 900.0),
        (TIMED_OUT, TIMED_OUT, {"absent_since": 100.0 - SLOW_SECONDS}, 0.0),
        (REFUSED, REFUSED, {}, 900.0),
        # A broker that stopped in order keeps its grace however it fails.
        (REFUSED, REFUSED, AWAY | {"in_order": True}, 900.0),
        (REFUSED, TIMED_OUT, AWAY | {"in_order": True}, 900.0),
        (REFUSED, UNREACHABLE, AWAY | {"in_order": True}, 900.0),
        # Grace that has ended does not start again when the broker returns.
        (REFUSED, OK, {"grace_until": 80.0}, 80.0),
    ],
)
def test_how_long_a_grace_lasts(
    before: str, outcome: str, fields: dict[str, Any], grace_until: float
) -> None:
    seen = BrokerSeen(before, 50.0, **{"grace_until": 900.0, **fields})
    cluster = ClusterState(brokers={1: seen})
    apply_answers(cluster, [answer(1, outcome)], 100.0)
    assert cluster.brokers[1].grace_until == grace_until


@pytest.mark.parametrize(
    ("absence", "returning"), [(1.0, PAUSE_SECONDS), (30.0, 30.0), (900.0, RETURN_SECONDS)]
)
def test_a_broker_that_was_absent_is_returning_for_as_long(
    cluster: ClusterState, absence: float, returning: float
) -> None:
    apply_answers(cluster, [answer(1), answer(2)], 10.0)
    apply_answers(cluster, [answer(1, TIMED_OUT), answer(2)], 11.0)
    assert cluster.is_absent(1, 11.0)
    back = 11.0 + absence
    apply_answers(cluster, [answer(1), answer(2)], back)
    assert cluster.is_absent(1, back + returning - 0.1)
    assert not cluster.is_absent(1, back + returning)
    assert not cluster.is_absent(2, back)
    assert not cluster.is_absent(9, back)


def test_without_counts_a_second_absence_ends_the_grace() -> None:
    for outcomes, grace in (
        ({1: REFUSED, 2: OK}, {1: 220.0, 2: 0.0}),
        ({1: REFUSED, 2: TIMED_OUT, 3: OK}, {1: 0.0, 2: 0.0, 3: 0.0}),
    ):
        cluster = ClusterState()
        apply_answers(cluster, [answer(*each) for each in outcomes.items()], 100.0)
        grant_grace(cluster, [1], 100.0, 120_000.0)
        assert {broker: seen.grace_until for broker, seen in cluster.brokers.items()} == grace
        assert cluster.in_grace(1, 219.9) is (grace[1] == 220.0)
        assert cluster.seen(1).in_order is (grace[1] == 220.0)
        assert not cluster.in_grace(1, 220.0)
        assert not cluster.in_grace(9, 100.0)


def test_with_counts_each_absence_has_its_own_explanation(cluster: ClusterState) -> None:
    full: dict[str, Any] = {"in_sync": 4, "serving": 4}
    idle: dict[str, Any] = {"in_sync": 0, "serving": 0}
    passes(cluster, *(answer(b, **full) for b in (1, 2, 3)), at=100.0)
    passes(cluster, answer(1, **idle), answer(2, **full), answer(3, **full), at=101.0)
    passes(cluster, answer(1, REFUSED, **idle), answer(2, REFUSED, **full), answer(3), at=102.0)
    assert cluster.in_grace(1, 102.0)
    assert not cluster.in_grace(2, 102.0)


def test_a_node_in_an_older_checkpoint_decodes_and_takes_the_next_event() -> None:
    older = msgspec.msgpack.encode([10.0, 7, None, False, None, True, 90, 12.0, 0, [[9.0, 1, 2]]])
    node = msgspec.msgpack.decode(older, type=NodeState)
    assert (node.reported_at, node.jmx) == ({}, None)
    cluster = ClusterState(nodes={1: node})
    apply_broker(cluster, BrokerState(broker=1, observed_at=11.0, fenced=True))
    assert (cluster.nodes[1].fenced, cluster.nodes[1].metadata_log_end_offset) == (True, 90)


@pytest.mark.parametrize(
    ("since", "outcome", "stopping"),
    [
        (None, REFUSED, {}),
        (350.0, REFUSED, {3: False}),
        (350.0, UNREACHABLE, {3: False}),
        (350.0, TIMED_OUT, {}),
        # Between the last pass and its own record, by two clocks.
        (400.0 + STOP_SECONDS, REFUSED, {3: False}),
        (400.1 + STOP_SECONDS, REFUSED, {}),
        (400.0 - CONTROLLED_SHUTDOWN_SECONDS, REFUSED, {3: False}),
        (399.9 - CONTROLLED_SHUTDOWN_SECONDS, REFUSED, {}),
    ],
)
@pytest.mark.parametrize("counts", [{}, {"in_sync": 7, "serving": 7}])
def test_a_recorded_controlled_shutdown_ends_in_order_once_nothing_is_served(
    since: float | None, outcome: str, stopping: dict[int, bool], counts: dict[str, Any]
) -> None:
    """False: the group judges by its own partitions whether the broker handed them over."""
    cluster = ClusterState(nodes={3: NodeState(0.0, stopping_since=since)})
    passes(cluster, answer(2), BrokerAnswer(broker=3, outcome=OK, **counts), at=1.0)
    for at in (400.0, 401.0):
        apply_answers(cluster, [answer(2), answer(3, outcome)], at)
    assert stopping_in_order(cluster, 401.0) == stopping


def test_a_broker_that_came_back_is_no_longer_in_the_recorded_shutdown() -> None:
    cluster = ClusterState(nodes={3: NodeState(0.0, stopping_since=50.0)})
    passes(cluster, answer(2), answer(3), at=49.0)
    apply_answers(cluster, [answer(2), answer(3, TIMED_OUT)], 51.0)
    apply_answers(cluster, [answer(2), answer(3)], 52.0)
    for at in (60.0, 61.0):
        apply_answers(cluster, [answer(2), answer(3, REFUSED)], at)
    assert stopping_in_order(cluster, 61.0) == {}
