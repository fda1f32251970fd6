"""The lag of each replica in a view: unknown is absent, and the leader has none."""

from __future__ import annotations

import pytest

from tidemark.core.offset_history import OffsetHistory, add_sample
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.reduce.life_cycle import Rules, Scope
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
    state = PartitionState(leader=1, leader_end_before=10, observed_at=NOW, offset_history=history)
    state.replicas = [ReplicaState(1, 10), ReplicaState(2, 5), ReplicaState(3)]
    view = partition_view(state, Scope("c", "orders", 0), Rules(3, 2, 86_400_000.0, "", {}), NOW)
    lags = [(replica.broker, replica.lag_records, replica.lag_ms) for replica in view.replicas]
    assert lags == [(1, 0, 0.0), (2, 5, lag_ms), (3, None, None)]
