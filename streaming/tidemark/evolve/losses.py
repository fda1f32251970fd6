"""Proof that committed records are gone.

The leader of epoch E once reported high watermark h under the fence of E: every offset below h was committed, with an
epoch <= E. If the leader of a later epoch says that its records of epochs <= E end before h, what lies between is not
in its log any more: lost = [max(end, log start), h). A lower bound, never wrong; a lineage that does not reach E, a
log start past h and an end at the log start without a second sign prove nothing.
"""

from __future__ import annotations

from tidemark.core.leader_epochs import NO_EPOCH, Committed, end_offset_for
from tidemark.core.partition import LossRead, PartitionState, ReplicaState


def find_loss(state: PartitionState) -> LossRead | None:
    """What the newest observation shows to be lost: the range with the highest end. None: nothing, or it cannot tell."""
    leader = serving_leader(state)
    if leader is None:
        return None
    found = [
        read for entry in state.committed if (read := _compare(state, leader, entry)) is not None
    ]
    return max(found, key=lambda read: (read.end, read.epoch_before), default=None)


def keeps_committed(state: PartitionState) -> bool:
    """Whether the leader's lineage shows that its log holds all that was seen to be committed under earlier epochs.

    What was claimed as lost is not there any more: then it does not.
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
    """The leader's own answer in the newest observation, given under the epoch it was elected for."""
    leader = state.replica(state.leader)
    if (
        leader is None
        or leader.error is not None
        or leader.leads is False
        or leader.log_end_offset is None
    ):
        return None
    if leader.sampled_at != state.observed_at:
        # The observation did not bring its sample: what stands here is an earlier answer, no second one.
        return None
    return leader if leader.leader_epoch == state.leader_epoch else None


def _compare(state: PartitionState, leader: ReplicaState, entry: Committed) -> LossRead | None:
    assert leader.log_end_offset is not None
    after = NO_EPOCH if state.leader_epoch is None else state.leader_epoch
    if entry.epoch > after or (entry.epoch == after and after != NO_EPOCH):
        return None
    if after == NO_EPOCH and entry.at >= state.observed_at:
        return None
    answer = end_offset_for(state.lineage or [], state.lineage_complete_from, entry.epoch)
    if answer is None:
        # Its log ends before h: then h - 1 is missing whatever the epochs say.
        start = leader.log_end_offset
    else:
        log_start = leader.log_start_offset
        if log_start is None or log_start >= entry.surviving:
            return None
        unclean = state.unclean_epoch is not None and entry.epoch < state.unclean_epoch <= after
        # An end at the log start is what a rebuilt epoch cache shows too, so it takes a second sign; else only the log end
        # counts. One sign: nothing was ever deleted from this log, and the records were dated with epochs when they were
        # committed; then its first record is the first of all, and of a later epoch.
        conclusive = answer[1] > log_start or unclean or (log_start == 0 and entry.dated)
        start = max(answer[1], log_start) if conclusive else leader.log_end_offset
    if start >= entry.surviving:
        return None
    if entry.lost_from is None or entry.lost_under == after != NO_EPOCH:
        # What was claimed under this very leadership is a part of the same loss.
        return LossRead(
            entry.epoch, after, start, entry.high_watermark, entry.log_end_offset, state.pass_number
        )
    return LossRead(entry.epoch, after, start, entry.surviving, entry.surviving, state.pass_number)
