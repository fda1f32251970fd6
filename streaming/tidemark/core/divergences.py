"""Do two logs part below their ends? Compared epoch by epoch, from lineages read in the same pass (KIP-101, KIP-279).

After it truncated, a follower's records of every epoch that both logs hold end where the leader's do. Two kinds of
difference count: an epoch that is closed on both (each log holds a later one), and a follower whose newest epoch ran
further than the leader's did while the follower knows the present leader epoch; the second may be a truncation that is
about to happen and needs time.
"""

from __future__ import annotations

from tidemark.core.epochs import NO_EPOCH, LineageEntries, end_offset_for
from tidemark.core.events import MAX_REPLICAS, Observation
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.rare import Divergence


def find_divergences(after: PartitionState, event: Observation, known: list[Divergence]) -> list[Divergence]:
    """The differences that stand after this observation, at most one a follower; reads of an earlier pass confirm."""
    leader = after.replica(after.leader)
    if leader is None or leader.error is not None or not after.lineage or after.lineage_complete_from is None:
        # No verdict without the leader: what was seen stands as it was.
        return known
    fresh = {sample.broker for sample in event.samples if sample.lineage is not None}
    found: list[Divergence] = []
    for replica in after.replicas:
        if replica.broker == after.leader or replica.broker not in after.settled:
            continue
        old = next((item for item in known if item.broker == replica.broker), None)
        new = _compare(after, replica, leader, fresh=replica.broker in fresh)
        if new is not None and old is not None and _same(old, new):
            new.since, new.pass_number = old.since, old.pass_number
            new.confirmed = old.confirmed or (new.closed and replica.broker in fresh and old.pass_number < after.pass_number)
        elif new is None and old is not None and not _refuted(replica, fresh=replica.broker in fresh):
            new = old
        if new is not None:
            found.append(new)
    return found[:MAX_REPLICAS]


def _compare(after: PartitionState, replica: ReplicaState, leader: ReplicaState, *, fresh: bool) -> Divergence | None:
    if replica.error is not None or not replica.lineage or replica.leader_epoch != after.leader_epoch:
        return None
    assert after.lineage is not None
    floor = max(replica.log_start_offset or 0, leader.log_start_offset or 0)
    if fresh:
        for epoch, end in replica.lineage[:-1]:
            found = _differs(after, replica, epoch, end, closed=True)
            if found is not None and found.follower_end != found.leader_end and min(found.follower_end, found.leader_end) > floor:
                return found
    epoch, end = replica.lineage[-1]
    # An unchanged log end that is not the leader's shows that the lineage still tells of this very log.
    if not fresh and not (replica.log_end_offset == end and end != leader.log_end_offset):
        return None
    found = _differs(after, replica, epoch, end, closed=False)
    return found if found is not None and found.follower_end > found.leader_end > floor else None


def _differs(after: PartitionState, replica: ReplicaState, epoch: int, end: int, *, closed: bool) -> Divergence | None:
    """Both ends of an epoch that is closed in the leader's log; None where its lineage does not tell."""
    assert after.lineage is not None
    answer = end_offset_for(after.lineage, after.lineage_complete_from, epoch)
    later = next((entry[0] for entry in after.lineage if entry[0] > epoch), None)
    if answer is None or answer[0] == NO_EPOCH or later is None:
        return None
    return Divergence(replica.broker, epoch, later, end, answer[1], closed, after.observed_at, after.pass_number)


def _same(old: Divergence, new: Divergence) -> bool:
    return (old.epoch, old.follower_end, old.leader_end, old.closed) == (new.epoch, new.follower_end, new.leader_end, new.closed)


def _refuted(replica: ReplicaState, *, fresh: bool) -> bool:
    """A new lineage without the difference, or a log end that moved, ends it; silence does not."""
    return replica.error is None and (fresh or not _is_same_log(replica.lineage, replica.log_end_offset))


def _is_same_log(lineage: LineageEntries | None, log_end_offset: int | None) -> bool:
    return bool(lineage) and log_end_offset is not None and lineage is not None and lineage[-1][1] <= log_end_offset
