"""COLLECTOR_GAP: the partition was not seen. Blind is neither healthy nor lost."""

from __future__ import annotations

from typing import Final

from tidemark.core import activity
from tidemark.core.cluster import (
    MAX_COLLECTORS,
    OWNER_SILENT_SECONDS,
    ClusterState,
    shares_of,
)
from tidemark.core.partition import PartitionState
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Context, Detector

# After the first pass of a collector, until the collectors of the other shares are expected.
START_SECONDS: Final = 60.0


def evaluate(state: PartitionState, context: Context) -> Conditions:
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


def evaluate_cluster(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """One alert for a pass that saw nothing, or for shares that none sees, instead of many."""
    if cluster.blind_passes < context.thresholds.gap_passes:
        yield from _of_shares(cluster, context)
        return
    outcomes = {str(broker): seen.outcome for broker, seen in sorted(cluster.brokers.items())}
    yield Condition(
        severity="info",
        description=f"No broker of {context.kafka_cluster} was seen in {cluster.blind_passes} "
        "passes. No alert changes meanwhile.",
        evidence={"missed_passes": cluster.blind_passes, "brokers": outcomes},
    )


def _of_shares(cluster: ClusterState, context: ClusterContext) -> Conditions:
    unseen = unseen_shares(cluster, context.now, context.thresholds.gap_passes)
    if not unseen:
        return
    names = ", ".join(unseen)
    yield Condition(
        severity="warning",
        description=f"Of {context.kafka_cluster}, {'share' if len(unseen) == 1 else 'shares'} "
        f"{names} {'is' if len(unseen) == 1 else 'are'} not seen: no collector with it has given "
        f"a pass for {OWNER_SILENT_SECONDS:.0f} s, or no broker answers it. No alert of its "
        "partitions changes meanwhile.",
        evidence={
            "shares": unseen,
            "collectors": {
                clock.shard: {"collector": name, "last_pass_at": clock.ended_at}
                for name, clock in sorted(cluster.collectors.items())
                if clock.shard in unseen
            },
        },
        revision=names,
    )


def unseen_shares(cluster: ClusterState, now: float, gap_passes: int) -> list[str]:
    """The shares, as "1/4", whose collector is silent, was never there, or sees no broker."""
    live = cluster.live_shares(cluster.passed_by)
    division = next((shares_of(shard) for shard in live), None)
    if division is None or not division.isascii() or not division.isdigit():
        return []
    count = int(division)
    began_at = max(clock.began_at for clock in live.values())
    if count > MAX_COLLECTORS or abs(now - began_at) < START_SECONDS:
        return []
    seen = {shard for shard, clock in live.items() if clock.blind_passes < gap_passes}
    return [share for n in range(count) if (share := f"{n}/{count}") not in seen]


DETECTOR = Detector(
    "COLLECTOR_GAP",
    "state",
    "The collector does not see the partition.",
    severities=("warning", "info"),
    wakes_on=activity.MISSED,
    state=evaluate,
    cluster=evaluate_cluster,
    fire_passes=1,
    clear_passes=1,
    while_blind=True,
)
