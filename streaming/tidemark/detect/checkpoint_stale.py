"""CHECKPOINT_STALE: a running broker does not write its checkpoint files, or they are wrong.

After a crash the broker starts from these files: from an old high watermark, or from one that it
never had. A write that fails takes the log directory out of service, and with the last one the
broker; a write that never returns leaves no other sign than the age of the file.

ReplicaManager writes the replication-offset-checkpoint of each log directory every 5 s,
also when nothing changed; CheckpointFile replaces the file as a whole.
"""

from __future__ import annotations

from typing import Final

from tidemark.core import activity
from tidemark.core.cluster import CheckpointFiles, ClusterState
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import CheckpointSeen
from tidemark.core.text import rfc3339
from tidemark.core.tracked_alert import is_firing
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Context, Detector

# An older reading proves nothing about the present: its reader stopped, not the broker's writer.
READING_SECONDS: Final = 60.0
ID: Final = "CHECKPOINT_STALE"


def evaluate_brokers(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """One condition per broker that answers and has been up long enough to write its files."""
    limit_ms = context.thresholds.checkpoint_stale_ms
    for broker, node in sorted(cluster.nodes.items()):
        files, seen = node.checkpoint, cluster.seen(broker)
        if files is None or not seen.answers:
            continue
        if (files.read_at - seen.since) * 1000.0 < limit_ms:
            continue
        is_old = context.now - files.read_at > READING_SECONDS
        if is_old and not is_firing(context.alerts, ID, broker):
            # A missing reading neither raises the alert nor ends it.
            continue
        age_ms = max(0.0, (files.read_at - files.modified_at) * 1000.0)
        if age_ms >= limit_ms:
            yield _old(broker, files, age_ms)


def evaluate_partition(state: PartitionState, context: Context) -> Conditions:
    """One condition per broker that answers and reports less than its file."""
    limit_ms = context.thresholds.checkpoint_stale_ms
    for seen in state.checkpoints:
        replica = state.replica(seen.broker)
        broker = context.cluster.seen(seen.broker)
        if replica is None or replica.error is not None or not broker.answers:
            continue
        up_ms = (seen.observed_at - broker.since) * 1000.0
        if context.now - seen.observed_at > READING_SECONDS or up_ms < limit_ms:
            continue
        if _is_above(seen, replica):
            yield _above(seen, replica, context)


def _is_above(seen: CheckpointSeen, replica: ReplicaState) -> bool:
    """Whether the broker, sampled after the file was read, reports less than the file.

    A sample before the reading proves nothing: the high watermark may have moved in between.
    """
    shown, at = replica.high_watermark, replica.sampled_at
    if seen.high_watermark is None or shown is None or at is None:
        return False
    return at > seen.observed_at and seen.high_watermark > shown


def _old(broker: int, files: CheckpointFiles, age_ms: float) -> Condition:
    where = "" if files.directory is None else f" in {files.directory}"
    return Condition(
        severity="info",
        subject=broker,
        broker=broker,
        description=f"Broker {broker} answers but has not written its high watermark checkpoint"
        f"{where} for {age_ms / 1000:.0f} s, as read at {rfc3339(files.read_at)}. After a crash "
        "it starts from the old values. Check for a blocked or failed disk.",
        evidence={
            "directory": files.directory,
            "modified_at": files.modified_at,
            "read_at": files.read_at,
        },
    )


def _above(seen: CheckpointSeen, replica: ReplicaState, context: Context) -> Condition:
    return Condition(
        severity="info",
        subject=seen.broker,
        broker=seen.broker,
        description=f"Broker {seen.broker} has high watermark {seen.high_watermark} of "
        f"{context.name} on disk and reported {replica.high_watermark} afterwards. The file is "
        "old or of another log directory, or the broker does not write it.",
        evidence={
            "checkpoint_high_watermark": seen.high_watermark,
            "high_watermark": replica.high_watermark,
            "modified_at": seen.modified_at,
            "read_at": seen.observed_at,
            "sampled_at": replica.sampled_at,
        },
        # The high watermark may have fallen (a new leader, a truncation); the next file shows it.
        hold_ms=context.thresholds.checkpoint_stale_ms,
    )


DETECTOR = Detector(
    ID,
    "state",
    "The checkpoint files of a running broker are old or wrong.",
    severities=("info",),
    wakes_on=activity.CHECKPOINT,
    state=evaluate_partition,
    cluster=evaluate_brokers,
)
