"""Do two logs part below their ends? Compared epoch by epoch, leader and follower (KIP-101, KIP-279, Log Matching).

Two kinds of difference count:

* Closed: below a later epoch of which both logs hold records. Before a replica takes the first record of an epoch it
  has cut its log to that of the epoch's leader, so below it both logs are that leader's log, and no truncation that
  is still to come can explain a difference. Two reads of different passes settle it.
* Open: the follower's newest epoch runs further than the leader's records of it do, or the leader has no record of it
  at all, while the follower knows the present leader epoch. It may be about to truncate, so only time tells, and only time in which it was watched.

No verdict where a log's beginning moved (retention, DeleteRecords: what a lineage says at or below a log start is no
end of an epoch), and none on closed or absent epochs of a compacted topic: a replica that was copied anew dates an
epoch's beginning by the first batch that survived the cleaner, and lacks an epoch of which none did.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from tidemark.core.events import MAX_LINEAGE, MAX_REPLICAS, Observation
from tidemark.core.leader_epochs import NO_EPOCH, LineageEntries, end_offset_for
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import Divergence

# Unwatched for longer, the time that an open difference stood begins anew.
MAX_GAP_SECONDS: Final = 15.0


def find_divergences(
    after: PartitionState, before: PartitionState, event: Observation, known: list[Divergence]
) -> list[Divergence]:
    """The differences that stand after this observation, at most one a follower; reads of an earlier pass confirm."""
    watched = event.observed_at - before.observed_at <= MAX_GAP_SECONDS
    leader = after.replica(after.leader)
    if (
        leader is None
        or leader.error is not None
        or not after.lineage
        or after.lineage_complete_from is None
    ):
        # No verdict without the leader: what was read stands, what only time can settle starts over.
        return [item for item in known if item.closed]
    fresh = {sample.broker for sample in event.samples if sample.lineage is not None}
    found: list[Divergence] = []
    for replica in after.replicas:
        if replica.broker == after.leader or replica.broker not in after.settled:
            continue
        old = next((item for item in known if item.broker == replica.broker), None)
        new = _compare(
            after, replica, leader, fresh=replica.broker in fresh, compacted=event.compacted
        )
        if new is not None and old is not None and _same(old, new) and (new.closed or watched):
            new.since, new.pass_number = old.since, old.pass_number
            new.confirmed = old.confirmed or (new.closed and old.pass_number != after.pass_number)
        elif (
            new is None
            and old is not None
            and old.closed
            and not _refuted(replica, fresh=replica.broker in fresh)
        ):
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
    floor = max(replica.log_start_offset, leader.log_start_offset)
    if fresh and compacted is False:
        shared = _newest_shared(
            replica.lineage,
            after.lineage or [],
            whole=floor == 0 and after.lineage_complete_from == 0,
        )
        for epoch, end in replica.lineage:
            found = (
                _differs(after, replica, epoch, end, closed=True)
                if shared is not None and epoch < shared
                else None
            )
            if (
                found is not None
                and found.follower_end != found.leader_end
                and min(found.follower_end, found.leader_end) > floor
            ):
                return found
            found = _absent(after, replica, found, floor) if found is not None else None
            if found is not None:
                return found
    epoch, end = replica.lineage[-1]
    # An unchanged log end that is not the leader's shows that the lineage still tells of this very log.
    if not fresh and not (replica.log_end_offset == end and end != leader.log_end_offset):
        return None
    found = _differs(after, replica, epoch, end, closed=False)
    if found is not None and found.follower_end > found.leader_end > floor:
        return found
    return (
        _absent(after, replica, found, floor) if found is not None and compacted is False else None
    )


def _absent(
    after: PartitionState, replica: ReplicaState, found: Divergence, floor: int
) -> Divergence | None:
    """The follower has records of an epoch and the leader's log none: they part where older epochs end in both."""
    assert after.lineage is not None
    assert replica.lineage is not None
    answer = end_offset_for(after.lineage, after.lineage_complete_from, found.epoch)
    if answer is None or answer[0] == found.epoch:
        return None
    whole_from = 0 if len(replica.lineage) < MAX_LINEAGE else replica.lineage[0][0]
    # From logs that never lost their beginning nothing is missing below their first epochs.
    own = (
        end_offset_for(replica.lineage, whole_from, answer[0]) if answer[0] != NO_EPOCH else answer
    )
    if own is None:
        return None
    start = max((end for epoch, end in replica.lineage if epoch < found.epoch), default=0)
    if found.follower_end <= start:
        # An epoch that it led and wrote nothing in.
        return None
    found.leader_end, found.absent = min(own[1], answer[1]), True
    return found if found.leader_end > floor or floor == 0 else None


def _newest_shared(follower: LineageEntries, leader: LineageEntries, *, whole: bool) -> int | None:
    """The newest epoch of which both logs hold records, above an older epoch's or, the leader's being `whole`, from 0 on."""
    led = _with_records(leader)
    if whole and leader and leader[0][1] > 0:
        # In a log that never lost its beginning the first epoch's records begin at 0.
        led.add(leader[0][0])
    return max(_with_records(follower) & led, default=None)


def _with_records(lineage: LineageEntries) -> set[int]:
    return {later[0] for earlier, later in pairwise(lineage) if later[1] > earlier[1]}


def _differs(
    after: PartitionState, replica: ReplicaState, epoch: int, end: int, *, closed: bool
) -> Divergence | None:
    """Both ends of an epoch that is over in the leader's log; None where its lineage does not tell."""
    assert after.lineage is not None
    answer = end_offset_for(after.lineage, after.lineage_complete_from, epoch)
    later = next((entry[0] for entry in after.lineage if entry[0] > epoch), None)
    if answer is None or later is None:
        return None
    return Divergence(
        replica.broker, epoch, later, end, answer[1], closed, after.observed_at, after.pass_number
    )


def _same(old: Divergence, new: Divergence) -> bool:
    return (old.epoch, old.follower_end, old.leader_end, old.closed) == (
        new.epoch,
        new.follower_end,
        new.leader_end,
        new.closed,
    )


def _refuted(replica: ReplicaState, *, fresh: bool) -> bool:
    """A new lineage without the difference, or a log end that went back, ends it; silence does not."""
    return replica.error is None and (
        fresh or not _is_same_log(replica.lineage, replica.log_end_offset)
    )


def _is_same_log(lineage: LineageEntries | None, log_end_offset: int | None) -> bool:
    if not lineage or log_end_offset is None:
        return False
    return lineage[-1][1] <= log_end_offset
