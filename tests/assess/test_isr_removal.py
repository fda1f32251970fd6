"""When a lagging follower leaves the in-sync set: from 1 to 1.5 times the leader's limit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.assess.thresholds import LAG_MS
from tidemark.assess.isr_removal import Removal, expect_removal, replica_lag_time_max_ms
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
