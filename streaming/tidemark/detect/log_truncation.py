"""LOG_TRUNCATION: a replica cut records off the end of its log.

Above the high watermark that is routine. Two signs show it. The log end offset fell; or the
records of an epoch now end before the log end offset of the last sample under that epoch
(UnifiedLog.truncateTo between two samples, and new records since). The second sign needs the
replica's lineage, or the leader's while the replica is in sync.
"""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.leader_epochs import NO_EPOCH, Committed, end_offset_for
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.text import counted, duration
from tidemark.detect import committed_data_loss
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import is_in_sync
from tidemark.evolve.loss_proof import keeps_committed
from tidemark.evolve.truncation_proof import Cut, CutVerdict, judge_cut


def evaluate(before: PartitionState, after: PartitionState, context: Context) -> Conditions:
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
        if replica.leader_epoch is not None and replica.leader_epoch < (known.leader_epoch or 0):
            # Its metadata is that of a backup, or of another topic. A follower gives the end of its
            # leader epoch, which then is not the end of its log.
            continue
        # Either sign gives the offset at which the log was cut, or an upper bound.
        by_lineage = _end_of_known_epoch(known, replica, after)
        cut = min(end for end in (replica.log_end_offset, by_lineage) if end is not None)
        if cut < known.log_end_offset:
            judged = judge_cut(before, after, known, cut)
            yield _condition(known, replica, cut, judged, after, context)


def _end_of_known_epoch(
    known: ReplicaState, replica: ReplicaState, after: PartitionState
) -> int | None:
    """Where the records end that the last sample knew the epoch of; None when unknown."""
    if (
        known.leader_epoch is None
        or replica.leader_epoch is None
        or replica.leader_epoch <= known.leader_epoch
    ):
        return None
    if replica.lineage and replica.lineage is not known.lineage:
        complete_from = replica.lineage[0][0]
        answer = end_offset_for(replica.lineage, complete_from, known.leader_epoch)
    elif replica.log_end_offset == known.log_end_offset:
        # It may not have cut its log yet.
        return None
    elif is_in_sync(after, replica.broker) and after.lineage:
        if known.leader_epoch >= (after.leader_epoch or 0):
            # The leader is not known to have begun a later one: its log may have grown since.
            return None
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
    judged: Cut,
    after: PartitionState,
    context: Context,
) -> Condition:
    count = (known.log_end_offset or 0) - cut
    # A cut at the log start leaves nothing. No truncation reaches that far; a new or emptied log
    # directory does.
    starts = (known.log_start_offset or 0, replica.log_start_offset or 0)
    began_anew = cut <= max(starts)
    what = (
        f"cut at least {counted(count, 'record')} off its log of {context.name}, from "
        f"{known.log_end_offset} to {cut}"
    )
    if began_anew:
        what = (
            f"started its log of {context.name} from scratch (it ended at "
            f"{known.log_end_offset} before and ends at {replica.log_end_offset} now; a new disk, "
            "an emptied folder or a reset by its leader)"
        )
    entry = judged.committed
    holders = _holders(replica, judged, after)
    is_last = holders == [] or _was_last_holder(replica.broker, cut, context)
    save = ""
    if is_last:
        save = (
            f"Copy the log of {context.name} on every broker before anything else is written, and "
            "send the records again from a backup or from upstream. "
        )
    return Condition(
        severity="critical" if is_last else "info",
        subject=replica.broker,
        broker=replica.broker,
        epochs=(known.leader_epoch, after.leader_epoch),
        description=f"{save}Broker {replica.broker} {what}{_meaning(holders, cut, judged, after)}."
        f"{context.at_risk}",
        evidence={
            "log_end_offset_before": known.log_end_offset,
            "cut_at": cut,
            "log_end_offset_after": replica.log_end_offset,
            "records": count,
            "began_anew": began_anew,
            "committed_records_cut": judged.verdict,
            "held_by": holders,
            "highest_high_watermark": None if entry is None else entry.high_watermark,
            "high_watermark_read_at": None if entry is None else _read_at(entry, after),
            "high_watermark_age_ms": None if entry is None else _age_ms(entry, after),
            "leader_epoch_before": known.leader_epoch,
            "leader_epoch_after": after.leader_epoch,
            "sampled_at": [known.sampled_at, replica.sampled_at],
            "lineage_before": known.lineage,
            "lineage_after": replica.lineage,
        },
        revision=str(cut),
    )


def _age_ms(entry: Committed, after: PartitionState) -> float:
    """The time after the last reading in which the leader may have committed more unseen."""
    over_at = after.observed_at if entry.over_at is None else entry.over_at
    return round(max(0.0, over_at - _read_at(entry, after)) * 1000.0, 3)


def _read_at(entry: Committed, after: PartitionState) -> float:
    """When the entry's high watermark was read last under its fence."""
    if entry.epoch == after.leader_epoch and after.high_watermark_read_at:
        return after.high_watermark_read_at
    return entry.at if entry.read_at is None else entry.read_at


def _holders(replica: ReplicaState, judged: Cut, after: PartitionState) -> list[int] | None:
    """The brokers that are known to hold the committed records that it cut.

    None: some may. Empty: all other replicas answered, and their logs end below the records.
    """
    if judged.verdict is not CutVerdict.PROVEN or judged.below is None:
        return None
    if replica.broker != after.leader and keeps_committed(after) and after.leader is not None:
        return [after.leader]
    others = [after.replica(broker) for broker in after.assigned if broker != replica.broker]
    ends = [None if r is None or r.error is not None else r.log_end_offset for r in others]
    lack = all(end is not None and end < judged.below for end in ends)
    return [] if lack and (replica.log_end_offset or 0) < judged.below else None


def _was_last_holder(broker: int, cut: int, context: Context) -> bool:
    """Whether an open loss named this replica alone as one that had the records, and it cut some.

    What it cuts above them is no part of the loss.
    """
    for alert in context.alerts:
        if alert.detector == committed_data_loss.ID:
            held = {
                each.broker: each.held_to or 0
                for each in alert.evidence_as(committed_data_loss.LossEvidence).records_held_by
                if each.state == "held"
            }
            if [*held] == [broker] and cut < held[broker]:
                return True
    return False


def _meaning(holders: list[int] | None, cut: int, judged: Cut, after: PartitionState) -> str:
    entry = judged.committed
    if entry is None:
        if judged.verdict is CutVerdict.EXCLUDED:
            return "; it had no record"
        return ", and it is unknown what of it was committed"
    high_watermark = entry.high_watermark
    if judged.verdict is CutVerdict.PROVEN:
        others = "; no other replica is known to hold them"
        if holders:
            others = f" (leader {holders[0]} has them)"
        elif holders is not None:
            others = "; no replica holds the last of them any more"
        return f", below {judged.below}, which was committed{others}"
    if judged.verdict is CutVerdict.EXCLUDED:
        return (
            ". No committed record is among them: it had led them, and all were above its high "
            "watermark after its leadership was over. Producers with acks=1 may have an "
            "acknowledgement for them"
        )
    if cut < high_watermark:
        return (
            f". {high_watermark} was committed; it is unknown whether the records that it cut were "
            "the committed ones"
        )
    return (
        f", above the high watermark {high_watermark} that was read last, "
        f"{duration(_age_ms(entry, after))} before that leadership was seen to be over. "
        "Records that were committed in between may be among them"
    )


DETECTOR = Detector(
    "LOG_TRUNCATION",
    "event",
    "A replica cut records off the end of its log.",
    severities=("critical", "info"),
    wakes_on=activity.LOG_FELL | activity.ELECTION,
    event=evaluate,
)
