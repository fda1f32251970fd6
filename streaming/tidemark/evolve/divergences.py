"""Do two logs differ below their ends? Leader and follower are compared epoch by epoch.

See KIP-101, KIP-279 and the Log Matching invariant. Two kinds of difference count:

* Closed: below a later epoch of which both logs hold records. A replica cuts its log to that of
  an epoch's leader before it takes the first record of the epoch. Below it both logs are therefore
  that leader's log, and no truncation that is still to come explains a difference. Two reads of
  different passes settle it.
* Open: the follower's newest epoch runs further than the leader's records of it, or the leader
  has no record of it, while the follower knows the present leader epoch. The follower may be about
  to truncate, so only time decides, and only time in which it was watched.

There is no verdict where the beginning of a log moved (retention, DeleteRecords): an end at or
below the log start offset is no end of an epoch, also where a crash took the log start back and not
the epoch cache. An end that may only be the start of the oldest epoch in a cache proves nothing
where the other log's records of the epoch end below it. In a compacted topic, closed and absent
epochs prove nothing: a new copy of the log has only the batches that the cleaner kept. There, an
epoch starts at its first kept batch, and an epoch without one is missing. A topic that is not
compacted may have been: below what was written since, a difference is a suspicion.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from tidemark.core.events import MAX_LINEAGE, MAX_REPLICAS
from tidemark.core.leader_epochs import (
    NO_EPOCH,
    EpochEnd,
    LineageEntries,
    certainty_of_end,
    end_offset_for,
)
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import Divergence
from tidemark.evolve.sampled_leadership import Shown

# After a longer time without observation, the time that an open difference has held starts over.
MAX_GAP_SECONDS: Final = 15.0


def find_divergences(
    after: PartitionState, before: PartitionState, shown: Shown, known: list[Divergence]
) -> list[Divergence]:
    """The differences after this observation, at most one per follower.

    A read in a later pass confirms a closed one.
    """
    watched = after.observed_at - before.observed_at <= MAX_GAP_SECONDS
    leader = after.replica(after.leader)
    if (
        leader is None
        or leader.error is not None
        or not after.lineage
        or after.lineage_complete_from is None
    ):
        # No verdict without the leader. A closed difference remains, an open one starts over.
        return [item for item in known if item.closed]
    if after.is_restored:
        return []
    found: list[Divergence] = []
    for replica in after.replicas:
        if replica.broker == after.leader or replica.broker not in after.settled:
            continue
        old = next((item for item in known if item.broker == replica.broker), None)
        is_fresh = replica.broker in shown.lineages
        new = _compare(after, replica, leader, fresh=is_fresh, compacted=shown.compacted)
        if new is not None and (new.closed or new.absent):
            parted = min(new.follower_end, new.leader_end)
            new.suspected |= parted < (after.uncompacted_from or 0)
        if new is not None and old is not None and _same(old, new) and (new.closed or watched):
            new.since, new.pass_number = old.since, old.pass_number
            second_read = new.closed and old.pass_number != after.pass_number
            new.confirmed = old.confirmed or second_read
        elif new is None and old is not None and old.closed and not _refuted(replica, is_fresh):
            new = old
        if new is not None:
            found.append(new)
    return found[:MAX_REPLICAS]


def _compare(
    after: PartitionState,
    replica: ReplicaState,
    leader: ReplicaState,
    *,
    fresh: bool,
    compacted: bool | None,
) -> Divergence | None:
    """The lowest closed difference, else an open one."""
    if (
        replica.error is not None
        or not replica.lineage
        or replica.leader_epoch != after.leader_epoch
    ):
        return None
    if replica.log_start_offset is None or leader.log_start_offset is None:
        return None
    deleted_to = max((entry.log_start_offset for entry in after.committed), default=0)
    floor = max(replica.log_start_offset, leader.log_start_offset, deleted_to)
    if fresh and compacted is False:
        found = _lowest_closed(after, replica, floor)
        if found is not None:
            return found
    epoch, end = replica.lineage[-1]
    # An unchanged log end offset that is not the leader's proves that the lineage is still that
    # of this log.
    if not fresh and not (replica.log_end_offset == end and end != leader.log_end_offset):
        return None
    open_difference = _difference(after, replica, epoch, end, closed=False)
    if open_difference is None:
        return None
    if open_difference.follower_end > open_difference.leader_end > floor:
        return open_difference
    return _absent(after, replica, open_difference, floor) if compacted is False else None


def _lowest_closed(after: PartitionState, replica: ReplicaState, floor: int) -> Divergence | None:
    assert replica.lineage is not None
    whole = floor == 0 and after.lineage_complete_from == 0
    shared = _newest_shared(replica.lineage, after.lineage or [], whole=whole)
    suspected: Divergence | None = None
    for epoch, end in replica.lineage:
        if shared is None or epoch >= shared:
            return suspected
        found = _difference(after, replica, epoch, end, closed=True)
        if found is None:
            continue
        ends = (found.follower_end, found.leader_end)
        if ends[0] != ends[1] and min(ends) > floor:
            longer = replica.lineage if ends[0] > ends[1] else after.lineage or []
            certainty = certainty_of_end(longer, epoch)
            if certainty is EpochEnd.KNOWN:
                return found
            found.suspected = True
            if certainty is EpochEnd.UNSURE:
                suspected = suspected or found
            continue
        absent = _absent(after, replica, found, floor)
        if absent is not None:
            return absent
    return suspected


def _absent(
    after: PartitionState, replica: ReplicaState, found: Divergence, floor: int
) -> Divergence | None:
    """The follower has records of an epoch, the leader's log none.

    The logs part where the older epochs end in both.
    """
    assert after.lineage is not None
    assert replica.lineage is not None
    answer = end_offset_for(after.lineage, after.lineage_complete_from, found.epoch)
    if answer is None or answer[0] == found.epoch:
        return None
    whole_from = 0 if len(replica.lineage) < MAX_LINEAGE else replica.lineage[0][0]
    # A log that never lost its beginning has no record below its first epoch.
    older = answer[0] != NO_EPOCH
    own = end_offset_for(replica.lineage, whole_from, answer[0]) if older else answer
    if own is None:
        return None
    start = max((end for epoch, end in replica.lineage if epoch < found.epoch), default=0)
    if found.follower_end <= start:
        # The follower led this epoch and wrote no record in it.
        return None
    if certainty_of_end(replica.lineage, found.epoch) is EpochEnd.AT_MOST:
        # The follower may hold none either: its cache begins above this epoch.
        return None
    found.leader_end, found.absent = min(own[1], answer[1]), True
    return found if found.leader_end > floor or floor == 0 else None


def _newest_shared(follower: LineageEntries, leader: LineageEntries, *, whole: bool) -> int | None:
    """The newest epoch of which both logs hold records.

    They lie above an older epoch's records, or above 0 when the leader's log is `whole`.
    """
    led = _with_records(leader)
    if whole and leader and leader[0][1] > 0:
        # In a log that never lost its beginning, the records of the first epoch begin at 0.
        led.add(leader[0][0])
    return max(_with_records(follower) & led, default=None)


def _with_records(lineage: LineageEntries) -> set[int]:
    return {later[0] for earlier, later in pairwise(lineage) if later[1] > earlier[1]}


def _difference(
    after: PartitionState, replica: ReplicaState, epoch: int, end: int, *, closed: bool
) -> Divergence | None:
    """Both ends of an epoch that is over in the leader's log; None when it has no answer."""
    assert after.lineage is not None
    answer = end_offset_for(after.lineage, after.lineage_complete_from, epoch)
    later = next((entry[0] for entry in after.lineage if entry[0] > epoch), None)
    if answer is None or later is None:
        return None
    return Divergence(
        replica.broker,
        epoch,
        later,
        end,
        answer[1],
        closed,
        after.observed_at,
        after.pass_number,
    )


def _same(old: Divergence, new: Divergence) -> bool:
    return (old.epoch, old.follower_end, old.leader_end, old.closed) == (
        new.epoch,
        new.follower_end,
        new.leader_end,
        new.closed,
    )


def _refuted(replica: ReplicaState, fresh: bool) -> bool:
    """Whether a new lineage without the difference, or a shorter log, ends it."""
    if replica.error is not None:
        return False
    return fresh or not _is_same_log(replica.lineage, replica.log_end_offset)


def _is_same_log(lineage: LineageEntries | None, log_end_offset: int | None) -> bool:
    if not lineage or log_end_offset is None:
        return False
    return lineage[-1][1] <= log_end_offset
