"""When a lagging follower leaves the in-sync set: from 1 to 1.5 times the leader's limit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.assess.thresholds import LAG_MS
from tests.export.make import NOW as VIEWED_AT
from tests.pages.make import healthy_view
from tidemark.assess.isr_removal import (
    Countdown,
    Removal,
    countdown_text,
    countdowns,
    expect_removal,
    replica_lag_time_max_ms,
)
from tidemark.core.broker_report import BrokerConfiguration
from tidemark.core.cluster import ClusterState, NodeState
from tidemark.core.offset_history import add_sample
from tidemark.core.partition import PartitionState, ReplicaState

NOW = 1_000.0


def state(**changes: Any) -> PartitionState:
    """The leader's log ended at 100 20 s ago, at 101 19 s ago, and ends at 500 now."""
    history: list[int] = []
    for at, end in ((NOW - 20, 100), (NOW - 19, 101), (NOW, 500)):
        history = add_sample(history, at, end)
    fields: dict[str, Any] = {
        "leader": 1,
        "in_sync_replicas": [1, 2],
        "offset_history": history,
        "leader_end_before": 500,
    }
    return PartitionState(**{**fields, **changes})


def follower(log_end: int | None = 100, error: str | None = None) -> ReplicaState:
    return ReplicaState(2, log_end_offset=log_end, error=error)


@pytest.mark.parametrize(
    ("log_end", "limit_ms", "caught_up_at", "removal"),
    [
        # It was caught up at the last sample before the first record that it lacks.
        (100, 30_000.0, None, Removal(10_000.0, 26_000.0)),
        # A slow follower may have been behind for longer.
        (100, 30_000.0, NOW - 25, Removal(3_000.0, 26_000.0)),
        (100, 10_000.0, NOW - 25, Removal(0.0, 0.0)),
        # One that was never seen caught up may leave at once.
        (50, 30_000.0, None, Removal(0.0, 25_000.0)),
    ],
)
def test_a_stopped_follower_leaves_within_half_a_limit(
    log_end: int, limit_ms: float, caught_up_at: float | None, removal: Removal
) -> None:
    found = expect_removal(state(), follower(log_end), limit_ms, caught_up_at, LAG_MS, NOW)
    assert found == removal


@pytest.mark.parametrize(
    ("changes", "replica", "limit_ms"),
    [
        ({}, follower(500), 30e3),
        ({}, follower(None), 30e3),
        ({}, follower(error="timed_out"), 30e3),
        ({}, follower(), None),
        ({"in_sync_replicas": [1]}, follower(), 30e3),
        ({"in_sync_replicas": None}, follower(), 30e3),
        ({"leader_end_before": None}, follower(), 30e3),
        ({"leader": 2}, follower(), 30e3),
    ],
)
def test_nothing_is_said_where_it_is_not_behind_or_unknown(
    changes: dict[str, Any], replica: ReplicaState, limit_ms: float | None
) -> None:
    assert expect_removal(state(**changes), replica, limit_ms, None, LAG_MS, NOW) is None


def test_the_limit_is_that_of_the_leader_and_not_too_old() -> None:
    node = NodeState(observed_at=NOW, configuration_at=NOW - 60)
    node.configuration = BrokerConfiguration(replica_lag_time_max_ms=30_000)
    cluster = ClusterState(nodes={1: node})
    assert replica_lag_time_max_ms(cluster, 1, NOW) == 30_000.0
    assert replica_lag_time_max_ms(cluster, 2, NOW) is None
    assert replica_lag_time_max_ms(cluster, None, NOW) is None
    assert replica_lag_time_max_ms(cluster, 1, NOW + 2_000) is None


# The countdown of a view: the soonest first, unknown ones last, silent followers not at all.


def lagging(limit_ms: float | None = None, **second: Any) -> Any:
    """Broker 1 leads; broker 2 lags by 9 s, and broker 3 leaves in 11 to 26 s."""
    view: Any = healthy_view("t", 0, replica_lag_time_max_ms=limit_ms)
    view.replicas[1].lag_records, view.replicas[1].lag_ms = 40, 9_000.0
    for name, value in second.items():
        setattr(view.replicas[1], name, value)
    third = view.replicas[2]
    third.isr_removal_earliest_ms, third.isr_removal_latest_ms = 11_000.0, 26_000.0
    return view


def test_those_that_are_not_known_come_last() -> None:
    assert countdowns(lagging(), VIEWED_AT, LAG_MS) == [
        Countdown(3, 11e3, 26e3),
        Countdown(2, None, None),
    ]
    known = lagging(30e3, isr_removal_earliest_ms=1e3, isr_removal_latest_ms=16e3)
    assert [each.broker for each in countdowns(known, VIEWED_AT, LAG_MS)] == [2, 3]
    # The estimate is that of the view, which is older.
    assert countdowns(known, VIEWED_AT + 10, LAG_MS)[0] == Countdown(2, 0.0, 6e3)


def test_a_follower_without_an_estimate_is_not_named_where_the_limit_is_not_the_reason() -> None:
    assert [each.broker for each in countdowns(lagging(30e3), VIEWED_AT, LAG_MS)] == [3]
    assert [each.broker for each in countdowns(lagging(error="timed_out"), VIEWED_AT, LAG_MS)] == [
        3
    ]
    assert [each.broker for each in countdowns(lagging(in_sync=False), VIEWED_AT, LAG_MS)] == [3]
    assert [each.broker for each in countdowns(lagging(lag_ms=1_500.0), VIEWED_AT, LAG_MS)] == [3]
    leaderless = lagging()
    leaderless.leader = None
    assert [each.broker for each in countdowns(leaderless, VIEWED_AT, LAG_MS)] == [3]


def test_the_sentences() -> None:
    known, unknown = countdowns(lagging(), VIEWED_AT, LAG_MS)
    assert countdown_text(known, 1) == (
        "broker 3 leaves the in-sync set in 11 to 26 s unless it catches up"
    )
    assert countdown_text(unknown, 1).endswith("that needs DescribeConfigs on Cluster")
