"""CHECKPOINT_STALE: a running broker does not write its checkpoint files, or wrote what it does not show.

After a crash it would start from them: from an old high watermark, or from one that never was (ReplicaManager writes
replication-offset-checkpoint every 5 s, CheckpointFile replaces it whole).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidemark.core.events import OK
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import CheckpointSeen
from tidemark.detect.context import Context
from tidemark.detect.detector import Condition, Detector

# A reading older than this tells nothing of now: the reader is gone, not the broker's writer.
READING_SECONDS: Final = 60.0


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """One condition a broker, while it answers and has answered for long enough to have written the files anew."""
    for seen in state.rare.checkpoints if state.rare is not None else []:
        replica, broker = state.replica(seen.broker), context.cluster.brokers.get(seen.broker)
        if replica is None or replica.error is not None or broker is None or broker.outcome != OK:
            continue
        up_ms = (seen.observed_at - broker.since) * 1000.0
        if (
            context.now - seen.observed_at > READING_SECONDS
            or up_ms < context.thresholds.checkpoint_stale_ms
        ):
            continue
        age_ms = _age_ms(seen)
        if age_ms >= context.thresholds.checkpoint_stale_ms:
            yield _old(seen, age_ms, replica, context)
        elif _is_above(seen, replica):
            yield _above(seen, replica, context)


def is_odd(state: PartitionState, stale_ms: float) -> bool:
    """Whether any checkpoint files of the partition may be worth a word: cheap, for most are as they should be."""
    for seen in state.rare.checkpoints if state.rare is not None else []:
        replica = state.replica(seen.broker)
        if _age_ms(seen) >= stale_ms or (replica is not None and _is_above(seen, replica)):
            return True
    return False


def _age_ms(seen: CheckpointSeen) -> float:
    """How old the files were when they were read, in milliseconds; 0 where nobody knows."""
    return (
        0.0
        if seen.modified_at is None
        else max(0.0, (seen.observed_at - seen.modified_at) * 1000.0)
    )


def _is_above(seen: CheckpointSeen, replica: ReplicaState) -> bool:
    """The broker was asked after the file was read, and shows less; before it, the high watermark may have grown in between."""
    if seen.high_watermark is None or replica.high_watermark is None or replica.sampled_at is None:
        return False
    return replica.sampled_at > seen.observed_at and seen.high_watermark > replica.high_watermark


def _old(seen: CheckpointSeen, age_ms: float, replica: ReplicaState, context: Context) -> Condition:
    return Condition(
        severity="info",
        subject=seen.broker,
        broker=seen.broker,
        description=f"Broker {seen.broker} answers but has not written its high watermark checkpoint for {age_ms / 1000:.0f} s "
        f"({context.topic}-{context.partition}: {seen.high_watermark} on disk, {replica.high_watermark} live). After a crash it starts from "
        "the old one; look for a full or failing disk.",
        evidence=_evidence(seen, replica),
    )


def _above(seen: CheckpointSeen, replica: ReplicaState, context: Context) -> Condition:
    return Condition(
        severity="info",
        subject=seen.broker,
        broker=seen.broker,
        description=f"Broker {seen.broker} has high watermark {seen.high_watermark} of {context.topic}-{context.partition} on disk and shows "
        f"{replica.high_watermark}, read after it. The file is of another log directory or time, or the broker does not write it.",
        evidence=_evidence(seen, replica),
        # Its high watermark may have fallen (a new leader, a truncation): then the next file says so.
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


CHECKPOINT_STALE = Detector(
    "CHECKPOINT_STALE",
    "state",
    "A running broker's checkpoint files are old or untrue.",
    state=evaluate,
)
