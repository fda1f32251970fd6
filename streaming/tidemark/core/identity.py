"""Names that must come out the same everywhere: placement of partitions, alert names, fingerprints, incidents."""

from __future__ import annotations

import hashlib
from zlib import crc32


def group_of(cluster: str, topic: str, partition: int, groups: int) -> int:
    """The Kafka partition of `replica-state` (0 … groups-1) that carries the events of a watched partition."""
    return crc32(f"{cluster}/{topic}/{partition}".encode()) % groups


def home_group(cluster: str, groups: int) -> int:
    """The group that raises broker- and cluster-wide alerts of a cluster."""
    return crc32(cluster.encode()) % groups


def alert_name(detector: str) -> str:
    """FOLLOWER_LAG -> KafkaFollowerLag."""
    return "Kafka" + "".join(word.capitalize() for word in detector.split("_"))


def fingerprint(labels: dict[str, str]) -> str:
    """16 hex digits that identify an alert: SHA-256 over its sorted labels."""
    text = "\xff".join(f"{name}\xff{value}" for name, value in sorted(labels.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def incident(
    cluster: str,
    topic: str,
    partition: int | None,
    detector: str,
    before: int | None,
    after: int | None,
) -> str:
    """8 hex digits that tell two events of one kind apart: the same fault has the same incident after any restart.

    `topic` is the topic id where one is known; `before` and `after` are the leader epochs the event lies between.
    """
    text = f"{cluster}/{topic}/{partition}/{detector}/{before}/{after}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]
