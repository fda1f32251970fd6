"""Names that must be the same everywhere: placement, keys, alert names, fingerprints, incidents."""

from __future__ import annotations

import hashlib
from zlib import crc32


def group_of(cluster: str, topic: str, partition: int, groups: int) -> int:
    """The Kafka partition of `replica-state` (0 … groups-1) for the events of a partition."""
    return crc32(partition_key(cluster, topic, partition).encode()) % groups


def home_group(cluster: str, groups: int) -> int:
    """The group that raises the alerts about a cluster and its brokers."""
    return crc32(cluster.encode()) % groups


def partition_key(cluster: str, topic: str, partition: int) -> str:
    """The key of a partition in its group, and of its view."""
    return f"{cluster}/{topic}/{partition}"


def split_key(key: str) -> tuple[str, str, int]:
    """The inverse of `partition_key`: neither cluster names nor topics contain a slash."""
    cluster, topic, partition = key.split("/")
    return cluster, topic, int(partition)


def alert_name(detector: str) -> str:
    """FOLLOWER_LAG -> KafkaFollowerLag."""
    return "Kafka" + "".join(word.capitalize() for word in detector.split("_"))


def fingerprint(labels: dict[str, str]) -> str:
    """16 hex digits that identify an alert: SHA-256 of its sorted labels."""
    text = "\xff".join(f"{name}\xff{value}" for name, value in sorted(labels.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def transition_id(alert_fingerprint: str, at: float, transition: str) -> str:
    """The id of an alert record. `at` is event time, Unix seconds: every run gives the same id."""
    return f"{alert_fingerprint}.{round(at * 1000):x}.{transition}"


def incident(
    cluster: str,
    topic: str,
    partition: int | None,
    detector: str,
    before: int | None,
    after: int | None,
) -> str:
    """8 hex digits that distinguish events of one detector, the same after any restart.

    `topic` is the topic id where it is known. The event lies between the leader epochs `before`
    and `after`.
    """
    text = f"{cluster}/{topic}/{partition}/{detector}/{before}/{after}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]
