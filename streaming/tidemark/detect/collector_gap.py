"""COLLECTOR_GAP: the partition was not seen. Blind is neither healthy nor lost, and it mutes what needs sight."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.cluster import ClusterState
from tidemark.core.partition import PartitionState
from tidemark.detect.context import ClusterContext, Context
from tidemark.detect.detector import Condition, Detector


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Counts the passes that missed the partition, by their own list."""
    if state.missed_passes < context.thresholds.gap_passes:
        return
    yield Condition(
        severity="info",
        description=f"{context.topic}-{context.partition} was not seen in {state.missed_passes} passes; its other alerts stand as they were.",
        evidence={
            "missed_passes": state.missed_passes,
            "last_seen_at": state.observed_at,
            "collector": state.collector,
        },
    )


def evaluate_cluster(cluster: ClusterState, context: ClusterContext) -> Iterator[Condition]:
    """When a whole pass saw nothing: one alert instead of one a partition."""
    if cluster.blind_passes < context.thresholds.gap_passes:
        return
    outcomes = {str(broker): seen.outcome for broker, seen in sorted(cluster.brokers.items())}
    yield Condition(
        severity="info",
        description=f"No broker of {context.kafka_cluster} was seen in {cluster.blind_passes} passes; every alert stands as it was.",
        evidence={"missed_passes": cluster.blind_passes, "brokers": outcomes},
    )


COLLECTOR_GAP = Detector(
    "COLLECTOR_GAP",
    "state",
    "The collector does not see the partition.",
    state=evaluate,
    cluster=evaluate_cluster,
    fire_passes=1,
    clear_passes=1,
    while_blind=True,
)
