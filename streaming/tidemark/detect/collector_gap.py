"""COLLECTOR_GAP: the partition was not seen. Blind is neither healthy nor lost, and it mutes what needs sight."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.conditions import Condition, Detector
from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Counts the passes that missed the partition, by their own list."""
    if state.missed_passes < context.thresholds.gap_passes:
        return
    yield Condition(
        severity="info",
        description=f"{context.topic}-{context.partition} was not seen in {state.missed_passes} passes; its other alerts stand as they were.",
        evidence={"missed_passes": state.missed_passes, "last_seen_at": state.observed_at, "collector": state.collector},
    )


COLLECTOR_GAP = Detector(
    "COLLECTOR_GAP", "state", "The collector does not see the partition.", state=evaluate, fire_passes=1, clear_passes=1, while_blind=True
)
