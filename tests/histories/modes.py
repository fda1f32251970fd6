"""Generations of Kafka that differ in what replication does and in what a collector can read."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka.protocol.broker_version_data import BrokerVersionData

DESCRIBE_QUORUM: Final = 55


class Mode(NamedTuple):
    """One generation. `kafka`: whose APIs its brokers offer.

    `truncation`: "high_watermark" (0.10), "epoch" (once per leadership, KIP-101), "fetch" (each
    fetch, KIP-595). `fenced`: requests carry the leader epoch, and metadata shows it (KIP-320).
    `late_epochs`: a leader that has not written has no epoch of its own (before 2.0). `strict`:
    below min ISR the high watermark is frozen.
    """

    name: str
    kafka: tuple[int, ...]
    truncation: str
    fenced: bool
    topic_ids: bool
    quorum: bool
    strict: bool = False
    elr: bool = False
    bump_on_shrink: bool = False
    late_epochs: bool = False

    def versions(self) -> BrokerVersionData:
        """kafka-python knows the APIs of each version, but for those of KRaft alone before 4.0."""
        offered = BrokerVersionData(broker_version=self.kafka).api_versions
        if self.quorum:
            offered = {DESCRIBE_QUORUM: (0, 1), **offered}
        return BrokerVersionData(api_versions=offered)


MODES: Final = {
    mode.name: mode
    for mode in (
        Mode(
            "0.10",
            (0, 10, 2),
            "high_watermark",
            False,
            False,
            False,
            bump_on_shrink=True,
            late_epochs=True,
        ),
        Mode("0.11", (0, 11), "epoch", False, False, False, bump_on_shrink=True, late_epochs=True),
        Mode("1.1", (1, 1), "epoch", False, False, False, bump_on_shrink=True, late_epochs=True),
        Mode("2.1", (2, 1), "epoch", True, False, False, bump_on_shrink=True),
        Mode("2.7", (2, 7), "fetch", True, False, False, bump_on_shrink=True),
        Mode("3.3", (3, 3), "fetch", True, True, True, bump_on_shrink=True),
        Mode("3.7", (3, 7), "fetch", True, True, True, strict=True),
        Mode("4.1", (4, 1), "fetch", True, True, True, strict=True, elr=True),
    )
}
