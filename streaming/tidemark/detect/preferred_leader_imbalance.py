"""PREFERRED_LEADER_IMBALANCE: others lead what a broker should lead (Kafka's leader.imbalance.per.broker.percentage)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidemark.core.cluster import ClusterState
from tidemark.core.events import OK
from tidemark.detect.context import ClusterContext
from tidemark.detect.detector import Condition, Detector

# Of fewer partitions a percentage says little.
MIN_PARTITIONS: Final = 10


def evaluate(cluster: ClusterState, context: ClusterContext) -> Iterator[Condition]:
    """One condition for each broker that answers and leads too few; it must have been so for Kafka to have had its chance."""
    for broker, seen in cluster.brokers.items():
        counted = cluster.preferred_of(broker, context.now)
        if seen.outcome != OK or counted is None or counted[0] < MIN_PARTITIONS:
            continue
        preferred, led = counted
        percent = 100.0 * (1.0 - led / preferred)
        if percent <= context.thresholds.imbalance_percent:
            continue
        yield Condition(
            severity="info",
            subject=broker,
            broker=broker,
            hold_ms=context.thresholds.imbalance_ms,
            description=f"Broker {broker} leads {led} of the {preferred} partitions of {context.kafka_cluster} whose preferred leader it is; others "
            f"carry the load of {percent:.0f} %. It answers, so Kafka should have moved them back (auto.leader.rebalance.enable); if its "
            "replicas are in sync, elect the preferred leaders by hand.",
            evidence={
                "preferred": preferred,
                "preferred_led": led,
                "imbalance_percent": round(percent, 1),
            },
        )


PREFERRED_LEADER_IMBALANCE = Detector(
    "PREFERRED_LEADER_IMBALANCE",
    "state",
    "A broker leads far fewer partitions than it is the preferred leader of.",
    cluster=evaluate,
)
