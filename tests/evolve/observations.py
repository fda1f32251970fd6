"""A healthy partition of two replicas, seen each second; tests name only what is otherwise."""

from __future__ import annotations

from typing import Any

from tidemark.core.cluster import ClusterState
from tidemark.core.events import Observation, Replica
from tidemark.core.partition import PartitionState
from tidemark.evolve.observation import evolve

# What a replica answers, and what a pass sees: leader 1 of epoch 4 at 100, 90 of them committed.
ANSWER: dict[str, Any] = {
    "log_end_offset": 100,
    "high_watermark": 90,
    "log_start_offset": 0,
    "leader_epoch": 4,
}
SEEN: dict[str, Any] = {
    "topic": "orders",
    "partition": 0,
    "observed_at": 10.0,
    "topic_id": "a",
    "leader": 1,
    "leader_epoch": 4,
    "replicas": [1, 2],
    "in_sync_replicas": [1, 2],
    "effective_min_in_sync_replicas": 1,
    "leader_log_end_offset_before": 100,
    "leader_log_end_offset_after": 100,
    "committed": 90,
}


def answer(broker: int, **fields: Any) -> Replica:
    """One replica's answer."""
    return Replica(**{"broker": broker, "leads": broker == 1, **ANSWER, **fields})


def silent(broker: int, error: str = "timed_out") -> Replica:
    """A broker that does not answer."""
    return Replica(broker=broker, error=error)


def observation(**fields: Any) -> Observation:
    """One look at the partition."""
    return Observation(**{**SEEN, "samples": [answer(1), answer(2)], **fields})


def fold(
    state: PartitionState | None,
    *events: Observation,
    number: int | None = None,
    cluster: ClusterState | None = None,
) -> PartitionState:
    """The state after observations of passes that count up, all by one collector."""
    for event in events:
        following = (0 if state is None else state.pass_number + 1) if number is None else number
        state = evolve(state, event, "c1", 1, following, cluster)
    assert state is not None
    return state
