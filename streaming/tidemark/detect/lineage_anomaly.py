"""LINEAGE_ANOMALY: the leader epochs of a log are in an impossible order (LeaderEpochFileCache).

One read may come from a log that changed meanwhile, or from a cache that is not flushed yet; a
second read decides.
"""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.detect.detector import Condition, Conditions, Context, Detector


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """One condition per broker whose lineage was read again, long enough after the first read."""
    reported: set[int] = set()
    for anomaly in state.sparse.anomalies if state.sparse is not None else []:
        held_ms = (anomaly.seen_at - anomaly.since) * 1000.0
        if anomaly.broker in reported or anomaly.seen_at <= anomaly.since:
            continue
        if held_ms < context.thresholds.lineage_anomaly_ms:
            continue
        reported.add(anomaly.broker)
        replica = state.replica(anomaly.broker)
        yield Condition(
            severity="warning",
            subject=anomaly.broker,
            broker=anomaly.broker,
            description=f"The leader epochs in the log of {context.name} on broker "
            f"{anomaly.broker} are impossible: {anomaly.what}. Truncation follows them, so the "
            "next one may cut too much or too little.",
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


# The anomaly has lasted by its own times.
DETECTOR = Detector(
    "LINEAGE_ANOMALY",
    "state",
    "The leader epochs of a log are impossible.",
    severities=("warning",),
    wakes_on=activity.SPARSE,
    state=evaluate,
    fire_passes=1,
)
