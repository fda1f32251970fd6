"""Proof that committed records are lost, and proof that they are not.

The leader of epoch E reported the high watermark h under the fence of E: every offset below h was
committed, with an epoch <= E. The leader of a later epoch proves a loss in two ways:

* Its records of epochs <= E end before h. What lies between is no longer in its log.
* An epoch before E ends elsewhere in its log than it ended in the log of the leader of E. One
  leader wrote all records of an epoch, so two logs that differ once differ from there on. That is
  how the return of an old leader with an uncommitted tail shows. A copy of a compacted log dates
  epochs by the records that survived, so this needs records that were written while the topic was
  seen not to be compacted: the present policy proves nothing about the past. Two
  logs that hold a record of one epoch are equal below it: an end that differs there was moved by a
  deletion (LeaderEpochFileCache.truncateFromStart), also where a crash took the log start back. So
  the longer one of two ends must be known, and not be the start of the oldest epoch in the cache.
  An epoch that begins at two offsets is of two leaderships, and proves no difference.

lost = [max(first difference, log start now, log start at h), h). The range is a lower bound. A
lineage that does not reach E, and an end at the log start without a second sign, prove nothing,
neither a loss nor that nothing is lost.

Metadata has no leader epochs before Kafka 2.1. From 0.11 on, the leader's lineage dates what was
committed: by the newest epoch of its log when h was read. Where no lineage is read, one entry of
the table serves all leaders, and only a log that ends below h is a proof.
"""

from __future__ import annotations

from typing import NamedTuple

from tidemark.core.leader_epochs import (
    NO_EPOCH,
    Committed,
    EpochEnd,
    LineageEntries,
    begin_apart,
    certainty_of_end,
    end_offset_for,
    epoch_at,
    equal_below,
)
from tidemark.core.partition import LossCandidate, PartitionState, ReplicaState


def find_loss(state: PartitionState) -> LossCandidate | None:
    """The loss with the highest end in the newest observation; None: none, or no verdict."""
    leader = serving_leader(state)
    if leader is None:
        return None
    reads = (_compare(state, leader, entry) for entry in state.committed)
    found = [read for read in reads if read is not None]
    if state.leader_epoch is None and any(read.epoch_before != NO_EPOCH for read in found):
        # A lineage proves the same, and more once the leader has written past h.
        found = [read for read in found if read.epoch_before != NO_EPOCH]
    return max(found, key=lambda read: (read.end, read.epoch_before), default=None)


def keeps_committed(state: PartitionState) -> bool:
    """Whether the leader's lineage proves that its log has all that earlier epochs committed.

    False after a claimed loss: those records are not in the log.
    """
    leader, epoch = serving_leader(state), state.leader_epoch
    if leader is None or epoch is None or leader.log_end_offset is None:
        return False
    earlier = [entry for entry in state.committed if entry.epoch < epoch]
    highest = max((e.high_watermark for e in earlier if not e.is_deleted), default=0)
    return leader.log_end_offset >= highest and covers(
        state.lineage or [], state.lineage_complete_from, earlier
    )


def keeps_lineage(state: PartitionState) -> bool:
    """The same without leader epochs: what was dated is there, and no log end was higher."""
    leader = serving_leader(state)
    if leader is None or leader.log_end_offset is None:
        return False
    dated = [entry for entry in state.committed if entry.epoch != NO_EPOCH]
    highest = max((e.high_watermark for e in state.committed if not e.is_deleted), default=0)
    return (
        bool(dated)
        and leader.log_end_offset >= highest
        and covers(state.lineage or [], state.lineage_complete_from, dated)
    )


def covers(lineage: LineageEntries, complete_from: int | None, earlier: list[Committed]) -> bool:
    """Whether a lineage proves that its log has all that earlier epochs committed.

    An epoch whose log had those before it covers them, as far as it committed itself.
    """
    covered = 0
    for entry in reversed(earlier):
        if entry.is_deleted or entry.high_watermark <= covered:
            continue
        newest = entry.high_watermark - 1
        epoch = epoch_at(lineage, complete_from, newest)
        if epoch is None or epoch != entry.epoch_of(newest, epoch):
            return False
        if entry.covers_earlier:
            covered = max(covered, entry.high_watermark)
    return True


def serving_leader(state: PartitionState) -> ReplicaState | None:
    """The leader's own answer in the newest observation, under the epoch of its election."""
    leader = state.replica(state.leader)
    if leader is None or leader.error is not None or leader.leads is False:
        return None
    if leader.log_end_offset is None:
        return None
    if leader.sampled_at != state.observed_at:
        # The newest observation has no sample of it: this is an earlier answer, no second one.
        return None
    return leader if leader.leader_epoch == state.leader_epoch else None


def shows_lineage(state: PartitionState) -> bool:
    """Whether the newest observation has the leader's answer, and its lineage is known."""
    return serving_leader(state) is not None and state.lineage_complete_from is not None


def _compare(state: PartitionState, leader: ReplicaState, entry: Committed) -> LossCandidate | None:
    """What the leader's log lacks of one epoch's committed records."""
    epoch = _epoch_of_read(state, entry)
    if state.leader_epoch is not None and entry.epoch >= state.leader_epoch:
        return None
    if state.leader_epoch is None and (leader.leads is not True or entry.at >= state.observed_at):
        # No fence shows who leads: the metadata and the broker itself must say so.
        return None
    end_of_epoch = _end_of_epoch(state, leader, entry, epoch)
    # Without epochs in metadata, only the leader's own records show that it led later.
    known = epoch != NO_EPOCH
    difference = _first_difference(state, leader, entry) if known else _Difference()
    starts = [offset for offset in (end_of_epoch, difference.offset) if offset is not None]
    # What any leader had deleted was not lost, although an older replica may still have it.
    deleted_to = max(known.log_start_offset for known in state.committed)
    start = max(min(starts, default=entry.surviving), deleted_to)
    if start >= entry.surviving:
        return None
    if entry.lost_from is None or entry.lost_under == epoch != NO_EPOCH:
        # A claim under this very leadership is a part of the same loss.
        end, exposed_to = entry.high_watermark, entry.log_end_offset
    else:
        end = exposed_to = entry.surviving
    return LossCandidate(
        entry.epoch,
        epoch,
        start,
        end,
        exposed_to,
        state.pass_number,
        diverged=difference.is_longer,
    )


def _epoch_of_read(state: PartitionState, entry: Committed) -> int:
    """The leader epoch; without one, the newest epoch of a log that went on after the entry's."""
    if state.leader_epoch is not None:
        return state.leader_epoch
    newest = state.lineage[-1][0] if state.lineage else NO_EPOCH
    return newest if newest > entry.epoch != NO_EPOCH else NO_EPOCH


def _end_of_epoch(
    state: PartitionState, leader: ReplicaState, entry: Committed, epoch: int
) -> int | None:
    """Where the records of the entry's epoch and of those before it end in the leader's log."""
    assert leader.log_end_offset is not None
    answer = end_offset_for(state.lineage or [], state.lineage_complete_from, entry.epoch)
    if answer is None or epoch == NO_EPOCH:
        # The log ends before h: h - 1 is missing, whatever the epochs say.
        return leader.log_end_offset
    log_start = leader.log_start_offset
    if log_start is None or log_start >= entry.surviving:
        return None
    # An end at the log start may only mean that the epoch cache was rebuilt. It needs a second
    # sign: an unclean election in between; or a log that still starts at 0, while the missing
    # records had epochs: then the first record of the log is of a later epoch. Before Kafka 2.0 a
    # cache that a deletion cut shows no older epoch either, so there the log end must show it.
    unclean = state.unclean_epoch is not None and entry.epoch < state.unclean_epoch <= epoch
    has_all_epochs = log_start == 0 and entry.dated and state.leader_epoch is not None
    if answer[1] > log_start or unclean or has_all_epochs:
        return max(answer[1], log_start)
    return leader.log_end_offset


class _Difference(NamedTuple):
    """Where two logs part; `is_longer`: the leader's log has more records of an older epoch."""

    offset: int | None = None
    is_longer: bool = False


def _first_difference(state: PartitionState, leader: ReplicaState, entry: Committed) -> _Difference:
    """Where an epoch before the entry's ends in one of the two leaders' logs, but not in both."""
    log_start, lineage = leader.log_start_offset, state.lineage or []
    known_from, read_from = entry.lineage_complete_from, state.lineage_complete_from
    unknown_to = state.uncompacted_from
    if (
        state.is_restored
        or state.compacted is not False
        or unknown_to is None
        or log_start is None
        or known_from is None
        or read_from is None
    ):
        return _Difference()
    equal_to = equal_below(entry.lineage, known_from, lineage, read_from)
    for epoch in sorted({epoch for epoch, _ in (*entry.lineage, *lineage)}):
        if not max(known_from, read_from) <= epoch < entry.epoch:
            continue
        known = end_offset_for(entry.lineage, known_from, epoch)
        read = end_offset_for(lineage, read_from, epoch)
        if known is None or read is None or NO_EPOCH in (known[0], read[0]):
            continue
        is_longer = known[1] < read[1]
        longer = lineage if is_longer else entry.lineage
        if certainty_of_end(longer, epoch) is not EpochEnd.KNOWN:
            # It may end where the other one does. An end above it settles a real difference too.
            continue
        # An end at the log start is no end: records of later epochs may be deleted with it.
        is_real = read[1] > log_start and (is_longer or known[1] > entry.log_start_offset)
        least = max(equal_to, unknown_to)
        differs = known[1] != read[1] and is_real and min(known[1], read[1]) >= least
        if differs and not begin_apart(entry.lineage, lineage):
            return _Difference(max(min(known[1], read[1]), log_start), is_longer)
    return _Difference()
