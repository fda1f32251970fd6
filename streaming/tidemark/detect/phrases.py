"""Phrases that the descriptions of several alerts share."""

from __future__ import annotations

from collections.abc import Collection

from tidemark.core.partition import PartitionState
from tidemark.core.shrink_causes import ShrinkExplanation
from tidemark.core.text import answer_text


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


def describe_replicas(
    state: PartitionState, brokers: list[int], explained: Collection[int] = ()
) -> str:
    """Each replica's broker, with its error or else the cause of its last shrink.

    The text says more of those `explained`.
    """
    texts = {s.broker: f" (answers; {cause_text(s.explanation)})" for s in state.shrinks}
    texts |= dict.fromkeys(explained, " (answers)")
    texts |= {
        replica.broker: f" ({answer_text(replica.error)}: {replica.error})"
        for replica in state.replicas
        if replica.error is not None
    }
    return ", ".join(f"broker {broker}{texts.get(broker, '')}" for broker in brokers)
