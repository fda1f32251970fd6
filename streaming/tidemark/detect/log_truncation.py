"""LOG_TRUNCATION: a replica cut records off the end of its log.

Above the high watermark that is routine. Two signs show it. The log end offset fell; or the
records of an epoch now end before the log end offset of the last sample under that epoch
(UnifiedLog.truncateTo between two samples, and new records since). The second sign needs the
replica's lineage, or the leader's while the replica is in sync.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core import activity
from tidemark.core.leader_epochs import NO_EPOCH, end_offset_for, highest_committed
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.text import counted
from tidemark.detect.detector import Condition, Context, Detector
from tidemark.detect.measures import is_in_sync
from tidemark.evolve.loss_proof import keeps_committed


def evaluate(
    before: PartitionState, after: PartitionState, context: Context
) -> Iterator[Condition]:
    """One condition per replica whose records [cut, old log end offset) are gone."""
    if before.topic_id != after.topic_id:
        return
    if before.collector_epoch not in (after.collector_epoch, 0):
        # Samples of two collectors have no order.
        return
    for replica in after.replicas:
        known = before.replica(replica.broker)
        if known is None or known.log_end_offset is None:
            continue
        if replica.error is not None or replica.log_end_offset is None:
            continue
        cut = _cut(known, known.log_end_offset, replica, replica.log_end_offset, after)
        if cut is not None and cut < known.log_end_offset:
            yield _condition(known, replica, cut, known.log_end_offset - cut, after, context)


def _cut(
    known: ReplicaState,
    known_end: int,
    replica: ReplicaState,
    end: int,
    after: PartitionState,
) -> int | None:
    """The offset at which the log was cut, or an upper bound; None when nothing shows a cut."""
    by_lineage = _end_of_known_epoch(known, replica, after)
    if end >= known_end:
        return by_lineage
    return end if by_lineage is None else min(end, by_lineage)


def _end_of_known_epoch(
    known: ReplicaState, replica: ReplicaState, after: PartitionState
) -> int | None:
    """Where the records end that the last sample knew the epoch of; None when unknown."""
    if known.leader_epoch is None or replica.leader_epoch is None:
        return None
    if replica.leader_epoch <= known.leader_epoch:
        return None
    if replica.lineage and replica.lineage is not known.lineage:
        complete_from = replica.lineage[0][0]
        answer = end_offset_for(replica.lineage, complete_from, known.leader_epoch)
    elif is_in_sync(after, replica.broker) and after.lineage:
        answer = end_offset_for(after.lineage, after.lineage_complete_from, known.leader_epoch)
    else:
        return None
    if answer is None or answer[0] == NO_EPOCH:
        return None
    return answer[1] if answer[1] > (replica.log_start_offset or 0) else None


def _condition(
    known: ReplicaState,
    replica: ReplicaState,
    cut: int,
    count: int,
    after: PartitionState,
    context: Context,
) -> Condition:
    committed = highest_committed(after.committed, up_to=known.leader_epoch)
    # A cut at the log start leaves nothing. No truncation reaches that far; a new or emptied log
    # directory does.
    starts = (known.log_start_offset or 0, replica.log_start_offset or 0)
    began_anew = cut <= max(starts)
    what = (
        f"cut {counted(count, 'record')} off its log of {context.name}, from "
        f"{known.log_end_offset} to {cut}"
    )
    if began_anew:
        what = (
            f"started its log of {context.name} from scratch (it ended at "
            f"{known.log_end_offset} before and ends at {replica.log_end_offset} now; a new disk, "
            "an emptied folder or a reset by its leader)"
        )
    return Condition(
        severity="info",
        subject=replica.broker,
        broker=replica.broker,
        epochs=(known.leader_epoch, after.leader_epoch),
        description=f"Broker {replica.broker} {what}, "
        f"{_meaning(replica, cut, committed, after)}.{context.at_risk}",
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


def _meaning(replica: ReplicaState, cut: int, committed: int | None, after: PartitionState) -> str:
    if committed is None:
        return "and it is unknown what of it was committed"
    if cut >= committed:
        return "above the high watermark: acknowledged with acks=1 at most"
    kept = replica.broker != after.leader and keeps_committed(after)
    leader = f" (leader {after.leader} has them)" if kept else ""
    return f"below {committed}, which was committed{leader}"


DETECTOR = Detector(
    "LOG_TRUNCATION",
    "event",
    "A replica cut records off the end of its log.",
    wakes_on=activity.LOG_FELL | activity.ELECTION,
    event=evaluate,
)
