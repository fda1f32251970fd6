"""Phrases that the descriptions of several alerts share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tidemark.core.partition import PartitionState
from tidemark.core.shrink_causes import ShrinkExplanation

_HOSTS_NONE: Final = "does not host this partition"
_MEANINGS: Final = {
    "NOT_LEADER_OR_FOLLOWER": _HOSTS_NONE,
    "UNKNOWN_TOPIC_OR_PARTITION": _HOSTS_NONE,
    "REPLICA_NOT_AVAILABLE": _HOSTS_NONE,
    "UNKNOWN_TOPIC_ID": "does not know this topic",
    "INCONSISTENT_TOPIC_ID": "hosts a deleted topic of this name",
    "KAFKA_STORAGE_ERROR": "cannot use the disk of this partition",
    "FENCED_LEADER_EPOCH": "knows a later leader epoch",
    "UNKNOWN_LEADER_EPOCH": "does not know the leader epoch yet",
}


def cause_text(shrink: ShrinkExplanation) -> str:
    """A cause with its certainty."""
    if shrink.recorded:
        return f"cause: {shrink.cause}, by the metadata log"
    return f"suspected cause: {shrink.cause}"


def leader_text(leader: int | None) -> str:
    """Under which leader a broker left the in-sync set."""
    return "without a leader" if leader is None else f"under leader {leader}"


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


def answer_text(error: str) -> str:
    """What a replica's error says of its broker. An error of Kafka's protocol is an answer."""
    if error in _MEANINGS:
        return f"answers, and {_MEANINGS[error]}"
    return "answers with an error" if error.isupper() else "does not answer"
