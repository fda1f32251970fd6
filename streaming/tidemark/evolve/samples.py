"""What the brokers answered in a pass: each replica's log, and what the leader reports of its own.

These functions change the state that they are given.
"""

from __future__ import annotations

import copy

from tidemark.core.events import MAX_LINEAGE, Observation, Replica
from tidemark.core.leader_epochs import (
    NO_EPOCH,
    Committed,
    LineageEntries,
    is_ordered,
    record_committed,
)
from tidemark.core.offset_history import add_sample
from tidemark.core.partition import PartitionState, ReplicaState


def apply_samples(after: PartitionState, before: PartitionState, event: Observation) -> None:
    """The samples, and the last answers of assigned replicas that were not sampled."""
    known, replicas = before.by_broker, []
    for sample in event.samples:
        old = known.pop(sample.broker, None)
        replicas.append(ReplicaState(sample.broker) if old is None else copy.copy(old))
        _apply_answer(replicas[-1], sample, event.observed_at)
    replicas += [replica for replica in known.values() if replica.broker in after.assigned]
    after.replicas = sorted(replicas, key=lambda replica: replica.broker)


def _apply_answer(replica: ReplicaState, sample: Replica, at: float) -> None:
    """Changes a replica by its sample. A broker that did not answer keeps its last answer."""
    if sample.size_bytes is not None:
        replica.size_bytes = sample.size_bytes
    replica.error = sample.error
    if sample.error is not None:
        replica.leads = None
        replica.silent_passes += 1
        return
    if sample.lineage is not None and is_ordered(sample.lineage):
        replica.lineage = sample.lineage
    replica.log_end_offset = sample.log_end_offset
    replica.high_watermark = sample.high_watermark
    replica.log_start_offset = sample.log_start_offset
    replica.last_stable_offset = sample.last_stable_offset
    replica.leader_epoch = sample.leader_epoch
    replica.leads = sample.leads
    replica.sampled_at = at
    replica.silent_passes = 0


def note_policy(after: PartitionState, before: PartitionState) -> None:
    """From where on no record was compacted away.

    That is the end of the logs when it was first observed, or when it was seen not to be compacted
    any more. Logs that begin at 0 then, and were never seen to be compacted, are taken for whole.
    """
    if after.compacted:
        after.uncompacted_from = None
    elif after.uncompacted_from is None:
        starts = [replica.log_start_offset or 0 for replica in after.replicas]
        ends = [replica.log_end_offset or 0 for replica in after.replicas]
        is_whole = before.compacted is None and not any(starts)
        known_from = max([after.leader_log_end_offset or 0, *ends])
        after.uncompacted_from = 0 if is_whole else known_from


def apply_leader(after: PartitionState, event: Observation, *, is_legitimate: bool) -> None:
    """What the leader reported: log end offset, lineage, fenced high watermark.

    `is_legitimate`: it is known to be no deposed one, which may have the log of a deleted topic.
    """
    committed, leader, epoch = event.committed, event.leader, event.leader_epoch
    read_at = event.observed_at if event.leader_before_at is None else event.leader_before_at
    after.leader_end_before = event.leader_log_end_offset_before
    after.leader_end_after = event.leader_log_end_offset_after
    if event.lineage is not None and is_ordered(event.lineage):
        _apply_lineage(after, event.lineage, event.lineage_complete_from)
    _apply_high_watermark(after, committed, read_at)
    if (
        committed is not None
        and leader is not None
        and is_legitimate
        and not _is_contradicted(after, committed)
    ):
        log_end = after.leader_log_end_offset or 0
        known_epoch = NO_EPOCH if epoch is None else epoch
        reading = Committed(known_epoch, committed, event.observed_at, log_end, leader)
        after.high_watermark_read_at = event.observed_at
        entry = record_committed(after.committed, reading)
        entry.dated = entry.dated or bool(after.lineage)
        # An impossible lineage is not the known one.
        if (
            epoch is None
            and after.lineage
            and event.lineage
            and after.lineage[-1] == event.lineage[-1]
        ):
            _apply_dated(after, reading, after.lineage)
    if after.leader_epoch is not None:
        _apply_returned_leaders(after)
    _add_offset_sample(after, event, read_at)


def _is_contradicted(after: PartitionState, committed: int) -> bool:
    """Whether an in-sync replica of this leadership was empty when it was read last.

    Then its leader is cut off, and has the log of a deleted topic.
    """
    return committed > 0 and any(
        # Hardly any log is empty: it is asked of every observation.
        replica.log_end_offset == 0
        and replica.leader_epoch == after.leader_epoch is not None
        and replica.broker in (after.in_sync_replicas or [])
        for replica in after.replicas
    )


def apply_former_leader(after: PartitionState, before: PartitionState, event: Observation) -> None:
    """An observation under an older epoch shows nothing of the known leader.

    The request was fenced with the older epoch, so this high watermark is valid for that epoch,
    unless its leader may have moved it after the epoch was over. It cannot without a follower,
    because only the controller shrinks the in-sync set.
    """
    after.leader_end_before = after.leader_end_after = None
    shown, leader, epoch = event.committed, event.leader, event.leader_epoch
    if shown is None or leader is None or epoch is None:
        return
    deposed = before.unclean_epoch is not None and epoch < before.unclean_epoch
    if not deposed and set(event.in_sync_replicas or []) - {leader}:
        record_committed(after.committed, Committed(epoch, shown, event.observed_at, shown, leader))


def _add_offset_sample(after: PartitionState, event: Observation, read_at: float) -> None:
    """One sample per observation: the one before the followers, which dates an offset earliest.

    None while the broker does not lead under the epoch: the records may be at its predecessor. The
    first one is from after the sample that shows that it leads.
    """
    for leader in event.samples:
        if leader.broker == event.leader:
            break
    else:
        return
    if leader.leads is False or leader.leader_epoch != event.leader_epoch:
        return
    time, log_end = read_at, event.leader_log_end_offset_before
    is_first = after.previous_offset_history and not after.offset_history
    if log_end is None or (is_first and event.leader_after_at is not None):
        log_end = event.leader_log_end_offset_after
        time = event.observed_at if event.leader_after_at is None else event.leader_after_at
    if log_end is not None:
        after.offset_history = add_sample(after.offset_history, time, log_end)


def _apply_lineage(
    after: PartitionState, read: list[tuple[int, int]], complete_from: int | None
) -> None:
    """A lineage that reaches further back replaces the known one.

    A shorter one replaces the newest epochs of the known one.
    """
    if complete_from is None:
        return
    known, known_from = after.lineage, after.lineage_complete_from
    if (
        known is None
        or known_from is None
        or complete_from <= known_from
        # Without epochs a leader may be elected again unseen, or go on with metadata of a backup,
        # which gives epochs again. What it wrote before is not known.
        or (
            after.leader_epoch is None
            and not (read and complete_from <= known[-1][0] <= read[-1][0])
        )
    ):
        after.lineage, after.lineage_complete_from = read, complete_from
        return
    older = [entry for entry in known if entry[0] < complete_from]
    after.lineage = [*older, *read][-MAX_LINEAGE:]
    if len(older) + len(read) > MAX_LINEAGE:
        after.lineage_complete_from = after.lineage[0][0]


def _apply_high_watermark(after: PartitionState, shown: int | None, read_at: float) -> None:
    """`read_at`: when the leader was read; a broker that hangs stretches passes.

    One that knows another epoch may still have the log of a deleted topic.
    """
    if shown is None:
        leader = after.replica(after.leader)
        if (
            leader is not None
            and leader.error is None
            and leader.leads is not False
            and leader.leader_epoch in (None, after.leader_epoch)
        ):
            shown = leader.high_watermark
    if shown is not None and (after.high_watermark is None or shown > after.high_watermark):
        after.high_watermark, after.high_watermark_moved_at = shown, read_at


def _apply_dated(after: PartitionState, reading: Committed, lineage: LineageEntries) -> None:
    """Dates a reading by the leader's lineage, where metadata has no leader epochs.

    The records below the end of the newest epoch are of that epoch or older. The lineage may have
    been read before the high watermark, which then covers records of a newer one.
    """
    epoch, end = lineage[-1]
    newest = after.committed[-1]
    if (
        epoch < newest.epoch
        and reading.leader == newest.leader
        and reading.high_watermark >= newest.high_watermark
    ):
        # The log goes on under an older epoch than its leader led: with metadata of a backup, which
        # gives epochs again. They date nothing, and where earlier ones ended shows no difference.
        for entry in after.committed:
            if entry.epoch >= epoch:
                entry.lineage_complete_from = None
        return
    high_watermark = min(reading.high_watermark, end)
    dated = Committed(epoch, high_watermark, reading.at, high_watermark, reading.leader)
    entry, complete_from = record_committed(after.committed, dated), after.lineage_complete_from
    if entry.leader != reading.leader or complete_from is None:
        return
    entry.dated, entry.read_at = True, reading.at
    known_from = entry.lineage_complete_from
    if known_from is None or complete_from <= known_from:
        entry.lineage, entry.lineage_complete_from = lineage, complete_from


def apply_log_start(after: PartitionState) -> None:
    """Notes what a log no longer has because it was deleted.

    Replicas take over the leader's log start, and one that is not in sync any more, or whose leader
    is not known to be deposed yet, may still show what was deleted before.
    """
    for replica in after.replicas:
        start = replica.log_start_offset
        if start and replica.error is None and replica.sampled_at == after.observed_at:
            for entry in after.committed:
                entry.log_start_offset = max(entry.log_start_offset, start)


def _apply_returned_leaders(after: PartitionState) -> None:
    """A former leader that returns with more than its successor shows what its own epoch had."""
    if after.leader_end_after is None:
        return
    for entry in after.committed:
        former = None if entry.leader == after.leader else after.replica(entry.leader)
        if former is None or former.log_end_offset is None:
            continue
        if (
            former.sampled_at == after.observed_at
            and former.log_end_offset > after.leader_end_after
        ):
            entry.log_end_offset = max(entry.log_end_offset, former.log_end_offset)
