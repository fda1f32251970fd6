"""The configuration of Tidemark's topics."""

from __future__ import annotations

from tidemark.kafka.topics import topic_specifications
from tidemark.settings import Topics


def test_topic_specifications() -> None:
    made = topic_specifications(Topics(partitions=8, replication_factor=3, min_in_sync_replicas=2))
    assert {name: partitions for name, (partitions, _) in made.items()} == {
        "tidemark.replica-state": 8,
        "tidemark.partition-views": 8,
        "tidemark.alerts": 1,
        "tidemark.dead-letters": 1,
    }
    assert {configuration["min.insync.replicas"] for _, configuration in made.values()} == {"2"}
    assert made["tidemark.replica-state"][1]["retention.ms"] == "86400000"
    views = made["tidemark.partition-views"][1]
    assert (views["cleanup.policy"], views["segment.ms"], views["min.cleanable.dirty.ratio"]) == (
        "compact",
        "600000",
        "0.1",
    )
    assert made["tidemark.alerts"][1]["retention.ms"] == "604800000"
