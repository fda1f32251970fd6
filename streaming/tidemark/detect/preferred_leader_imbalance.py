"""PREFERRED_LEADER_IMBALANCE: other brokers lead the partitions that prefer a broker as leader.

See leader.imbalance.per.broker.percentage.
"""

from __future__ import annotations

from typing import Final

from tidemark.core.cluster import ClusterState
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Detector

# A percentage of fewer partitions means little.
MIN_PARTITIONS: Final = 10


def evaluate(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """One condition per broker that answers and leads too few partitions for long enough."""
    for broker, seen in cluster.brokers.items():
        known = cluster.preferred_of(broker)
        if not seen.answers or known is None or known[0] < MIN_PARTITIONS:
            continue
        preferred, led = known
        percent = 100.0 * (1.0 - led / preferred)
        if percent <= context.thresholds.imbalance_percent:
            continue
        yield Condition(
            severity="info",
            subject=broker,
            broker=broker,
            # Kafka had its chance to move them back.
            hold_ms=context.thresholds.imbalance_ms,
            description=f"Broker {broker} leads {led} of the {preferred} partitions of "
            f"{context.kafka_cluster} that prefer it as leader. Other brokers carry "
            f"{percent:.0f} % of that load. It answers, so Kafka should have moved them back "
            "(auto.leader.rebalance.enable); if its replicas are in sync, elect the preferred "
            "leaders by hand.",
            evidence={
                "preferred": preferred,
                "preferred_led": led,
                "imbalance_percent": round(percent, 1),
            },
        )


DETECTOR = Detector(
    "PREFERRED_LEADER_IMBALANCE",
    "state",
    "A broker leads far fewer partitions than it is the preferred leader of.",
    severities=("info",),
    cluster=evaluate,
)
