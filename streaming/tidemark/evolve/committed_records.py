"""What was committed, after an observation: readings under a fence, deletions, former leaders."""

from __future__ import annotations

import copy

from tidemark.core.events import Observation
from tidemark.core.leader_epochs import NO_EPOCH, Committed, committed_under, record_committed
from tidemark.core.partition import PartitionState


def apply_committed(after: PartitionState, event: Observation, leader: int, committed: int) -> None:
    """A high watermark that the leader reported under the fence of its epoch."""
    after.committed = [copy.copy(entry) for entry in after.committed]
    epoch = NO_EPOCH if event.leader_epoch is None else event.leader_epoch
    log_end = max(committed, after.leader_log_end_offset or 0)
    after.high_watermark_read_at = event.observed_at
    reading = Committed(epoch, committed, event.observed_at, log_end, leader)
    record_committed(after.committed, reading)
    if after.lineage:
        for entry in after.committed:
            entry.dated = entry.dated or entry.epoch == epoch


def apply_dated(after: PartitionState, event: Observation, leader: int, committed: int) -> None:
    """Dates a reading by the leader's lineage, where metadata has no leader epochs.

    The records below the end of the newest epoch are of that epoch or older. The lineage may have
    been read before the high watermark, which then covers records of a newer one.
    """
    if event.leader_epoch is not None or not event.lineage or not after.lineage:
        return
    epoch, end = event.lineage[-1]
    if after.lineage[-1] != (epoch, end):
        # It is impossible.
        return
    high_watermark = min(committed, end)
    reading = Committed(epoch, high_watermark, event.observed_at, high_watermark, leader)
    after.committed = [copy.copy(entry) for entry in after.committed]
    record_committed(after.committed, reading)
    entry = committed_under(after.committed, epoch)
    complete_from = after.lineage_complete_from
    if entry is None or entry.leader != leader or complete_from is None:
        return
    entry.dated, entry.read_at = True, event.observed_at
    known_from = entry.lineage_complete_from
    if known_from is None or complete_from <= known_from:
        entry.lineage, entry.lineage_complete_from = after.lineage, complete_from


def apply_log_start(after: PartitionState) -> None:
    """Notes what a log no longer has because it was deleted.

    Replicas take over the leader's log start, and one that is not in sync any more may still show
    what was deleted before its leader lost the leadership.
    """
    starts = (
        replica.log_start_offset or 0
        for replica in after.replicas
        if replica.error is None and replica.sampled_at == after.observed_at
    )
    log_start = max(starts, default=0)
    if not log_start or all(entry.log_start_offset >= log_start for entry in after.committed):
        return
    after.committed = [copy.copy(entry) for entry in after.committed]
    for entry in after.committed:
        entry.log_start_offset = max(entry.log_start_offset, log_start)


def apply_returned_leaders(after: PartitionState, leader_end: int) -> None:
    """A former leader that returns with more than its successor shows what its own epoch had."""
    for index, entry in enumerate(after.committed):
        former = after.replica(entry.leader)
        if former is None or former.broker == after.leader or former.log_end_offset is None:
            continue
        if former.sampled_at != after.observed_at:
            continue
        if former.log_end_offset > max(leader_end, entry.log_end_offset):
            seen = copy.copy(entry)
            seen.log_end_offset = former.log_end_offset
            after.committed = [*after.committed[:index], seen, *after.committed[index + 1 :]]


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
        after.committed = [copy.copy(entry) for entry in before.committed]
        reading = Committed(epoch, shown, event.observed_at, shown, leader)
        record_committed(after.committed, reading)
