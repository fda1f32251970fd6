"""Phrases that the descriptions of several alerts share."""

from __future__ import annotations

from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.shrink_causes import ShrinkExplanation


def cause_text(shrink: ShrinkExplanation) -> str:
    """A cause with its certainty."""
    if shrink.recorded:
        return f"cause: {shrink.cause}, by the metadata log"
    return f"suspected cause: {shrink.cause}"


def leader_text(leader: int | None) -> str:
    """Under which leader a broker left the in-sync set."""
    return "without a leader" if leader is None else f"under leader {leader}"


def count_in_sync(state: PartitionState) -> str:
    """`2 of 3 replicas in sync`; replicas that a reassignment adds are counted apart."""
    members = state.assigned_in_sync
    settled = sum(broker not in state.adding for broker in members)
    text = f"{settled} of {len(state.settled)} replicas in sync"
    added = len(members) - settled
    return f"{text} (and {added} of {len(state.adding)} being added)" if added else text


def describe_replicas(state: PartitionState, brokers: list[int]) -> str:
    """Each replica's broker, with its error or else the cause of its last shrink."""
    causes = {shrink.broker: shrink.explanation for shrink in state.shrinks}
    return ", ".join(
        f"broker {broker}{_absence(state.replica(broker), causes.get(broker))}"
        for broker in brokers
    )


def _absence(replica: ReplicaState | None, cause: ShrinkExplanation | None) -> str:
    if replica is not None and replica.error is not None:
        return f" (does not answer: {replica.error})"
    return "" if cause is None else f" (answers; {cause_text(cause)})"
