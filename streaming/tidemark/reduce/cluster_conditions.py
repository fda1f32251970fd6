"""Conditions of a cluster as a whole, raised in its home group."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.cluster import ClusterState
from tidemark.core.conditions import Condition, Detector
from tidemark.detect import DETECTORS
from tidemark.detect.thresholds import Thresholds


def cluster_conditions(cluster: ClusterState, name: str, thresholds: Thresholds) -> Iterator[tuple[Detector, Condition]]:
    """COLLECTOR_GAP when a whole pass saw nothing: one alert instead of one a partition."""
    if cluster.blind_passes >= thresholds.gap_passes:
        outcomes = {str(broker): seen.outcome for broker, seen in sorted(cluster.brokers.items())}
        yield (
            DETECTORS["COLLECTOR_GAP"],
            Condition(
                severity="info",
                description=f"No broker of {name} was seen in {cluster.blind_passes} passes; every alert stands as it was.",
                evidence={"missed_passes": cluster.blind_passes, "brokers": outcomes},
            ),
        )
