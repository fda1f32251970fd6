"""Error codes in the answers of brokers (Errors.java)."""

from __future__ import annotations

from typing import Final

from kafka import errors as kafka_errors

NOT_LEADER: Final = 6
FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 75
OFFSET_NOT_AVAILABLE: Final = 78
# The broker knows another leader or epoch: metadata is read again at once.
STALE_CODES: Final = frozenset({NOT_LEADER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH})


def error_name(code: int) -> str:
    """Kafka's name of an error code (Errors.java)."""
    if code == NOT_LEADER:
        return "NOT_LEADER_OR_FOLLOWER"
    name = getattr(kafka_errors.for_code(code), "message", None)
    return str(name or f"ERROR_{code}")
