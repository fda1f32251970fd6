"""Proof that committed records are lost.

The leader of epoch E reported the high watermark h under the fence of E: every offset below h was
committed, with an epoch <= E. If the leader of a later epoch says that its records of epochs <= E
end before h, the records between are no longer in its log: lost = [max(end, log start), h).

The range is a lower bound and never wrong. A lineage that does not reach E, a log start offset
past h, and an end at the log start without a second sign prove nothing.
"""

from __future__ import annotations

from tidemark.core.leader_epochs import NO_EPOCH, Committed, end_offset_for
from tidemark.core.partition import LossCandidate, PartitionState, ReplicaState


def find_loss(state: PartitionState) -> LossCandidate | None:
    """The loss with the highest end in the newest observation; None: none, or no verdict."""
    leader = serving_leader(state)
    if leader is None:
        return None
    reads = (_compare(state, leader, entry) for entry in state.committed)
    found = [read for read in reads if read is not None]
    return max(found, key=lambda read: (read.end, read.epoch_before), default=None)


def keeps_committed(state: PartitionState) -> bool:
    """Whether the leader's lineage proves that its log has all that earlier epochs committed.

    False after a claimed loss: those records are not in the log.
    """
    leader, epoch = serving_leader(state), state.leader_epoch
    if leader is None or epoch is None:
        return False
    return all(
        _reaches(state, leader, entry.epoch, entry.high_watermark)
        for entry in state.committed
        if entry.epoch < epoch
    )


def _reaches(state: PartitionState, leader: ReplicaState, epoch: int, offset: int) -> bool:
    assert leader.log_end_offset is not None
    answer = end_offset_for(state.lineage or [], state.lineage_complete_from, epoch)
    return answer is not None and min(answer[1], leader.log_end_offset) >= offset


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


def _compare(state: PartitionState, leader: ReplicaState, entry: Committed) -> LossCandidate | None:
    """What the leader's log lacks of one epoch's committed records."""
    epoch = NO_EPOCH if state.leader_epoch is None else state.leader_epoch
    if entry.epoch > epoch or (entry.epoch == epoch and epoch != NO_EPOCH):
        return None
    if epoch == NO_EPOCH and entry.at >= state.observed_at:
        return None
    start = _first_missing(state, leader, entry, epoch)
    if start is None or start >= entry.surviving:
        return None
    if entry.lost_from is None or entry.lost_under == epoch != NO_EPOCH:
        # A claim under this very leadership is a part of the same loss.
        end, exposed_to = entry.high_watermark, entry.log_end_offset
    else:
        end = exposed_to = entry.surviving
    return LossCandidate(entry.epoch, epoch, start, end, exposed_to, state.pass_number)


def _first_missing(
    state: PartitionState, leader: ReplicaState, entry: Committed, epoch: int
) -> int | None:
    """The first offset that is lost if the entry's records reached it; None: no verdict."""
    assert leader.log_end_offset is not None
    answer = end_offset_for(state.lineage or [], state.lineage_complete_from, entry.epoch)
    if answer is None:
        # The log ends before h: h - 1 is missing, whatever the epochs say.
        return leader.log_end_offset
    log_start = leader.log_start_offset
    if log_start is None or log_start >= entry.surviving:
        return None
    # An end at the log start may only mean that the epoch cache was rebuilt. It needs a second
    # sign: an unclean election in between; or a log that still starts at 0, while the missing
    # records had epochs: then the first record of the log is of a later epoch.
    unclean = state.unclean_epoch is not None and entry.epoch < state.unclean_epoch <= epoch
    if answer[1] > log_start or unclean or (log_start == 0 and entry.dated):
        return max(answer[1], log_start)
    return leader.log_end_offset
