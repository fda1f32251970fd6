"""LOG_TRUNCATION: a replica cut records off the end of its log. Above the high watermark that is routine.

Seen in two ways: its log end fell; or its records of an epoch now end before the log end it had under that epoch
(UnifiedLog.truncateTo between two samples, and new records since). The second needs its lineage, or the leader's when
it is in sync with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.leader_epochs import NO_EPOCH, end_offset_for, highest_committed
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.detect.context import Context, counted
from tidemark.detect.detector import Condition, Detector
from tidemark.evolve.losses import keeps_committed


def evaluate(
    before: PartitionState, after: PartitionState, context: Context
) -> Iterator[Condition]:
    """One condition for each replica whose records [cut, old log end) went."""
    if before.topic_id != after.topic_id or before.collector_epoch not in (
        after.collector_epoch,
        0,
    ):
        # Samples of two collectors have no order among themselves.
        return
    for replica in after.replicas:
        known = before.replica(replica.broker)
        if (
            known is None
            or replica.error is not None
            or known.log_end_offset is None
            or replica.log_end_offset is None
        ):
            continue
        cut = _cut(known, replica, after)
        if cut is None or cut >= known.log_end_offset:
            continue
        yield _condition(known, replica, cut, after, context)


def _cut(known: ReplicaState, replica: ReplicaState, after: PartitionState) -> int | None:
    """The offset at which the log was cut, or an upper bound of it; None when nothing shows that it was."""
    assert known.log_end_offset is not None and replica.log_end_offset is not None
    fell = replica.log_end_offset if replica.log_end_offset < known.log_end_offset else None
    by_lineage = _end_of_known(known, replica, after)
    ends = [end for end in (fell, by_lineage) if end is not None]
    return min(ends, default=None)


def _end_of_known(known: ReplicaState, replica: ReplicaState, after: PartitionState) -> int | None:
    if (
        known.leader_epoch is None
        or replica.leader_epoch is None
        or replica.leader_epoch <= known.leader_epoch
    ):
        return None
    if replica.lineage and replica.lineage is not known.lineage:
        answer = end_offset_for(replica.lineage, replica.lineage[0][0], known.leader_epoch)
    elif replica.broker in (after.in_sync_replicas or []) and after.lineage:
        answer = end_offset_for(after.lineage, after.lineage_complete_from, known.leader_epoch)
    else:
        return None
    start = replica.log_start_offset or 0
    return answer[1] if answer is not None and answer[0] != NO_EPOCH and answer[1] > start else None


def _condition(
    known: ReplicaState, replica: ReplicaState, cut: int, after: PartitionState, context: Context
) -> Condition:
    assert known.log_end_offset is not None
    count = known.log_end_offset - cut
    committed = highest_committed(after.committed, up_to=known.leader_epoch)
    below = committed is not None and cut < committed
    meaning = (
        f"below {committed}, which was committed"
        if below
        else "above the high watermark: promised by acks=1 at most"
    )
    if committed is None:
        meaning = "and what of it was committed was not seen"
    if below and replica.broker != after.leader and keeps_committed(after):
        meaning += f" (leader {after.leader} has them)"
    # Nothing is left of what it had: no truncation reaches so far, a new or emptied log directory does.
    began_anew = cut <= max(known.log_start_offset or 0, replica.log_start_offset or 0)
    what = (
        f"began its log of {context.topic}-{context.partition} anew (it ended at {known.log_end_offset} before and ends at "
        f"{replica.log_end_offset} now; a new disk, an emptied folder or a reset by its leader)"
        if began_anew
        else f"cut {counted(count, 'record')} off its log of {context.topic}-{context.partition}, from {known.log_end_offset} to {cut}"
    )
    return Condition(
        severity="info",
        subject=replica.broker,
        broker=replica.broker,
        epochs=(known.leader_epoch, after.leader_epoch),
        description=f"Broker {replica.broker} {what}, {meaning}.{context.at_risk}",
        evidence={
            "log_end_offset_before": known.log_end_offset,
            "cut_at": cut,
            "log_end_offset_after": replica.log_end_offset,
            "records": count,
            "began_anew": began_anew,
            "highest_high_watermark": committed,
            "leader_epoch_before": known.leader_epoch,
            "leader_epoch_after": after.leader_epoch,
            "sampled_at": [known.sampled_at, replica.sampled_at],
            "lineage_before": known.lineage,
            "lineage_after": replica.lineage,
        },
        revision=str(cut),
    )


LOG_TRUNCATION = Detector(
    "LOG_TRUNCATION", "event", "A replica cut records off the end of its log.", event=evaluate
)
