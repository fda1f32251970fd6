"""COLLECTOR_GAP: the partition was not seen. Blind is neither healthy nor lost."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core import activity
from tidemark.core.cluster import ClusterState
from tidemark.core.partition import PartitionState
from tidemark.detect.detector import ClusterContext, Condition, Context, Detector


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Counts the passes that list the partition as missed."""
    if state.missed_passes < context.thresholds.gap_passes:
        return
    yield Condition(
        severity="info",
        description=f"{context.name} was not seen in {state.missed_passes} passes. "
        "Its other alerts do not change meanwhile.",
        evidence={
            "missed_passes": state.missed_passes,
            "last_seen_at": state.observed_at,
            "collector": state.collector,
        },
    )


def evaluate_cluster(cluster: ClusterState, context: ClusterContext) -> Iterator[Condition]:
    """One alert for a pass that saw nothing, instead of one per partition."""
    if cluster.blind_passes < context.thresholds.gap_passes:
        return
    outcomes = {str(broker): seen.outcome for broker, seen in sorted(cluster.brokers.items())}
    yield Condition(
        severity="info",
        description=f"No broker of {context.kafka_cluster} was seen in {cluster.blind_passes} "
        "passes. No alert changes meanwhile.",
        evidence={"missed_passes": cluster.blind_passes, "brokers": outcomes},
    )


DETECTOR = Detector(
    "COLLECTOR_GAP",
    "state",
    "The collector does not see the partition.",
    wakes_on=activity.MISSED,
    state=evaluate,
    cluster=evaluate_cluster,
    fire_passes=1,
    clear_passes=1,
    while_blind=True,
)
