"""LINEAGE_ANOMALY: the leader epochs of a log are in an order that no log can have (LeaderEpochFileCache).

Read once it may be a log that changed while it was read, or a cache not flushed yet; it must be read again.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context
from tidemark.detect.detector import Condition, Detector


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """One condition a broker. What was not read again, long enough after, shows nothing."""
    told: set[int] = set()
    for anomaly in state.rare.anomalies if state.rare is not None else []:
        held_ms = (anomaly.seen_at - anomaly.since) * 1000.0
        if (
            anomaly.broker in told
            or anomaly.seen_at <= anomaly.since
            or held_ms < context.thresholds.lineage_anomaly_ms
        ):
            continue
        told.add(anomaly.broker)
        replica = state.replica(anomaly.broker)
        yield Condition(
            severity="warning",
            subject=anomaly.broker,
            broker=anomaly.broker,
            description=f"The leader epochs in the log of {context.topic}-{context.partition} on broker {anomaly.broker} cannot be: {anomaly.what}. "
            "Truncation goes by them, so its next one may cut too much or too little.",
            evidence={
                "anomaly": anomaly.what,
                "since": anomaly.since,
                "seen_at": anomaly.seen_at,
                "leader": state.leader,
                "leader_epoch": state.leader_epoch,
                "broker_leader_epoch": None if replica is None else replica.leader_epoch,
                "lineage_before": None if replica is None else replica.lineage,
            },
            revision=anomaly.what,
        )


# It was seen to last by its own times.
LINEAGE_ANOMALY = Detector(
    "LINEAGE_ANOMALY",
    "state",
    "The leader epochs of a log cannot be.",
    state=evaluate,
    fire_passes=1,
)
