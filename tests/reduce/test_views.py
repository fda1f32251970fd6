"""A view says what is known: a lag whose age nobody can tell has no age, and the leader has no lag."""

from __future__ import annotations

from tidemark.core.offset_history import add_sample
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.reduce.life_cycle import Rules, Scope
from tidemark.reduce.views import partition_view

NOW = 1_000.0


def lags(offset_history: list[int]) -> dict[int, tuple[int | None, float | None]]:
    state = PartitionState(
        leader=1,
        leader_end_before=10,
        assigned=[1, 2, 3],
        observed_at=NOW,
        offset_history=offset_history,
    )
    state.replicas = [
        ReplicaState(broker=1, log_end_offset=10),
        ReplicaState(broker=2, log_end_offset=5),
        ReplicaState(broker=3),
    ]
    view = partition_view(state, Scope("c", "orders", 0), Rules(3, 2, 86_400_000.0, "", {}), NOW)
    return {replica.broker: (replica.lag_records, replica.lag_ms) for replica in view.replicas}


def test_a_lag_of_unknown_age_has_none() -> None:
    assert lags([]) == {1: (0, 0.0), 2: (5, None), 3: (None, None)}


def test_a_lag_is_as_old_as_its_first_record_surely_is() -> None:
    assert lags(add_sample(add_sample([], NOW - 4.0, 5), NOW - 3.0, 10))[2] == (5, 3_000.0)
