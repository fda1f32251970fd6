"""What a view shows of the lag of its replicas, and when it is refreshed."""

from __future__ import annotations

from collections import Counter

import pytest

from tidemark.core.cluster import ClusterState
from tidemark.core.offset_history import OffsetHistory, add_sample
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.reduce.life_cycle import Rules, Scope
from tidemark.reduce.schedule import refresh_at
from tidemark.reduce.views import partition_view

NOW = 1_000.0


@pytest.mark.parametrize(
    ("history", "lag_ms"),
    [
        ([], None),
        # A lag is at least as old as the first record that the replica lacks.
        (add_sample(add_sample([], NOW - 4.0, 5), NOW - 3.0, 10), 3_000.0),
    ],
)
def test_lags(history: OffsetHistory, lag_ms: float | None) -> None:
    """An unknown lag is absent. The leader has none."""
    state = PartitionState(leader=1, leader_end_before=10, observed_at=NOW, offset_history=history)
    state.replicas = [ReplicaState(1, 10), ReplicaState(2, 5), ReplicaState(3)]
    rules = Rules(3, 2, 86_400_000.0, "", {})
    view = partition_view(state, ClusterState(), Scope("c", "orders", 0), rules, NOW)
    lags = [(replica.broker, replica.lag_records, replica.lag_ms) for replica in view.replicas]
    assert lags == [(1, 0, 0.0), (2, 5, lag_ms), (3, None, None)]


@pytest.mark.parametrize("period", [1.0, 2.0, 5.0])
def test_refreshes_are_ten_seconds_apart_and_spread_over_the_passes(period: float) -> None:
    """Views are not refreshed all in one pass."""
    keys = [f"main/orders/{number}" for number in range(500)]
    published = dict.fromkeys(keys, 1000.0)
    intervals: list[float] = []
    load: Counter[float] = Counter()
    now = 1000.0
    while now < 1100.0:
        now += period
        for key in keys:
            if now >= refresh_at(key, published[key]):
                if published[key] > 1000.0:
                    intervals.append(now - published[key])
                published[key] = now
                load[now] += 1
    assert set(intervals) == {10.0}
    assert max(load.values()) <= 1.5 * len(keys) * period / 10.0
