"""LINEAGE_ANOMALY: the leader epochs of a log are in an impossible order (LeaderEpochFileCache).

One read may come from a log that changed meanwhile, or from a cache that is not flushed yet; a
second read decides.
"""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import FORMER_TOPIC_SECONDS
from tidemark.detect.detector import Condition, Conditions, Context, Detector


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """One condition per broker whose lineage was read again, long enough after the first read.

    And one where the epochs went back at all replicas.
    """
    former = state.former_topic
    if (
        former is not None
        and former.restored
        and (state.leader_epoch or 0) < (former.leader_epoch or 0)
        and context.now - former.at <= FORMER_TOPIC_SECONDS
    ):
        yield Condition(
            severity="warning",
            description=f"The leader epochs of {context.name} went back from "
            f"{former.leader_epoch} to {state.leader_epoch} at all brokers that answer, and its "
            f"{'log goes on' if former.topic_id is None else 'topic id is the same'}: its metadata "
            "was restored from a backup. Nothing that was seen before is compared with it. Clients "
            "that know a later epoch fail until they restart.",
            evidence={
                "leader_epoch_before": former.leader_epoch,
                "leader_epoch": state.leader_epoch,
                "restored_at": former.at,
            },
        )
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
