"""A healthy partition with two replicas, observed every second. Tests name only what differs."""

from __future__ import annotations

from typing import Any

from tidemark.core.cluster import ClusterState
from tidemark.core.events import Observation, Replica
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import SparseState
from tidemark.evolve.observation import evolve

# Broker 1 leads epoch 4. Both logs end at 100, and 90 records are committed.
SAMPLE: dict[str, Any] = {
    "log_end_offset": 100,
    "high_watermark": 90,
    "log_start_offset": 0,
    "leader_epoch": 4,
}
OBSERVATION: dict[str, Any] = {
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

NO_LEADER_END: dict[str, Any] = {
    "leader_log_end_offset_before": None,
    "leader_log_end_offset_after": None,
}


def answer(broker: int, **fields: Any) -> Replica:
    """The sample of a broker that answers."""
    return Replica(**{"broker": broker, "leads": broker == 1, **SAMPLE, **fields})


def silent(broker: int, error: str = "timed_out") -> Replica:
    """The sample of a broker that does not answer."""
    return Replica(broker=broker, error=error)


def observation(**fields: Any) -> Observation:
    """One observation of the partition."""
    return Observation(**{**OBSERVATION, "samples": [answer(1), answer(2)], **fields})


def fold(
    state: PartitionState | None,
    *events: Observation,
    number: int | None = None,
    cluster: ClusterState | None = None,
) -> PartitionState:
    """The state after observations by one collector; passes count up unless `number` is given."""
    for event in events:
        following = (0 if state is None else state.pass_number + 1) if number is None else number
        state = evolve(state, event, "c1", 1, following, cluster)
    assert state is not None
    return state


def second_ends(log_end: int, **fields: Any) -> Observation:
    return observation(samples=[answer(1), answer(2, log_end_offset=log_end)], **fields)


def sparse_of(state: PartitionState) -> SparseState:
    """The sparse part of a state; an empty one where the state has none."""
    return state.sparse or SparseState()


def sparse_after(*events: Observation) -> SparseState:
    """The sparse state after observations that are one second apart."""
    for second, event in enumerate(events):
        event.observed_at = 10.0 + second
    return sparse_of(fold(None, *events))


# The state after the first observation.
SEEN = fold(None, observation())
