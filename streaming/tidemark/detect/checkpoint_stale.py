"""CHECKPOINT_STALE: a running broker does not write its checkpoint files, or they are wrong.

After a crash the broker starts from these files: from an old high watermark, or from one that it
never had. ReplicaManager writes replication-offset-checkpoint every 5 s; CheckpointFile replaces
the file as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidemark.core import activity
from tidemark.core.events import OK
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import CheckpointSeen
from tidemark.detect.detector import Condition, Context, Detector

# An older reading proves nothing about the present: its reader stopped, not the broker's writer.
READING_SECONDS: Final = 60.0


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """One condition per broker that answers and has been up long enough to write the files."""
    limit_ms = context.thresholds.checkpoint_stale_ms
    for seen in state.sparse.checkpoints if state.sparse is not None else []:
        replica = state.replica(seen.broker)
        broker = context.cluster.brokers.get(seen.broker)
        if replica is None or replica.error is not None:
            continue
        if broker is None or broker.outcome != OK:
            continue
        up_ms = (seen.observed_at - broker.since) * 1000.0
        if context.now - seen.observed_at > READING_SECONDS or up_ms < limit_ms:
            continue
        age_ms = _age_ms(seen)
        if age_ms >= limit_ms:
            yield _old(seen, age_ms, replica, context)
        elif _is_above(seen, replica):
            yield _above(seen, replica, context)


def _age_ms(seen: CheckpointSeen) -> float:
    """The age of the files when they were read; 0 where that is unknown."""
    if seen.modified_at is None:
        return 0.0
    return max(0.0, (seen.observed_at - seen.modified_at) * 1000.0)


def _is_above(seen: CheckpointSeen, replica: ReplicaState) -> bool:
    """Whether the broker, sampled after the file was read, reports less than the file.

    A sample before the reading proves nothing: the high watermark may have moved in between.
    """
    shown, at = replica.high_watermark, replica.sampled_at
    if seen.high_watermark is None or shown is None or at is None:
        return False
    return at > seen.observed_at and seen.high_watermark > shown


def _old(seen: CheckpointSeen, age_ms: float, replica: ReplicaState, context: Context) -> Condition:
    return Condition(
        severity="info",
        subject=seen.broker,
        broker=seen.broker,
        description=f"Broker {seen.broker} answers but has not written its high watermark "
        f"checkpoint for {age_ms / 1000:.0f} s ({context.name}: {seen.high_watermark} on disk, "
        f"{replica.high_watermark} live). After a crash it starts from the old value. "
        "Check for a full or failing disk.",
        evidence=_evidence(seen, replica),
    )


def _above(seen: CheckpointSeen, replica: ReplicaState, context: Context) -> Condition:
    return Condition(
        severity="info",
        subject=seen.broker,
        broker=seen.broker,
        description=f"Broker {seen.broker} has high watermark {seen.high_watermark} of "
        f"{context.name} on disk and reported {replica.high_watermark} afterwards. The file is "
        "old or of another log directory, or the broker does not write it.",
        evidence=_evidence(seen, replica),
        # The high watermark may have fallen (a new leader, a truncation); the next file shows it.
        hold_ms=context.thresholds.checkpoint_stale_ms,
    )


def _evidence(seen: CheckpointSeen, replica: ReplicaState) -> dict[str, object]:
    return {
        "checkpoint_high_watermark": seen.high_watermark,
        "high_watermark": replica.high_watermark,
        "modified_at": seen.modified_at,
        "read_at": seen.observed_at,
        "sampled_at": replica.sampled_at,
    }


DETECTOR = Detector(
    "CHECKPOINT_STALE",
    "state",
    "The checkpoint files of a running broker are old or wrong.",
    wakes_on=activity.CHECKPOINT,
    state=evaluate,
)
