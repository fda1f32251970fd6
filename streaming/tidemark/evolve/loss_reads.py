"""Reads of a loss, which two passes confirm, after an observation."""

from __future__ import annotations

from tidemark.core.leader_epochs import NO_EPOCH, Committed
from tidemark.core.partition import LossCandidate, PartitionState
from tidemark.core.sparse_state import Suspicion, copy_of
from tidemark.evolve.loss_proof import find_loss, serving_leader, shows_lineage
from tidemark.evolve.recreation import is_renumbered, may_be_recreated


def apply_loss(after: PartitionState, before: PartitionState, *, is_legitimate: bool) -> None:
    """Two reads of different passes prove a loss; then the table notes where it begins.

    `is_legitimate`: whether the leader is known to be no deposed one; leader epochs show that.
    """
    read = before.loss_candidate
    if read is not None and read.confirmed:
        for entry in after.committed:
            if entry.epoch <= read.epoch_before or _is_same_loss(entry, read, after):
                entry.lost_from = min(entry.surviving, read.start)
                entry.lost_under = read.epoch_after
        read = None
    committed = max((entry.surviving for entry in before.committed), default=0)
    found = find_loss(after) if is_legitimate else None
    leader = serving_leader(after)
    if leader is not None and may_be_recreated(after, leader, committed, found):
        _suspect_recreation(after, committed, found)
        return
    if after.leader_epoch is None and before.leader_epoch is None and before.leader != after.leader:
        # Without epochs only the leader shows that both reads are of one leadership.
        read = None
    if found is not None and is_renumbered(after):
        found = None
    after.loss_candidate = found
    if found is not None:
        if read is not None and _is_second_read(read, found):
            # If the proof is the log end offset, the leader may have written between the reads:
            # only offsets above both ends are proven lost.
            found.start = max(read.start, found.start)
            # Another collector process counts its passes from the start.
            found.pass_number = read.pass_number
            found.confirmed = read.pass_number != after.pass_number
    elif read is not None and _keeps_first_read(after, read, is_legitimate=is_legitimate):
        # A pass without a verdict keeps the first read; one that shows the records refutes it.
        after.loss_candidate = read


def _is_same_loss(entry: Committed, read: LossCandidate, after: PartitionState) -> bool:
    """Whether a loss that no lineage dated is of this entry too, which has an epoch."""
    return (
        read.epoch_before == NO_EPOCH
        and after.leader_epoch is None
        and entry.leader != after.leader
    )


def _is_second_read(read: LossCandidate, found: LossCandidate) -> bool:
    # Where metadata has no epochs, the leader may have begun to write under its own in between.
    is_under_same = read.epoch_after in (found.epoch_after, NO_EPOCH)
    return is_under_same and read.epoch_before == found.epoch_before


def _keeps_first_read(after: PartitionState, read: LossCandidate, *, is_legitimate: bool) -> bool:
    """Whether a pass has no verdict. One that shows the records refutes the first read."""
    if after.leader_epoch is not None:
        return read.epoch_after == after.leader_epoch and not shows_lineage(after)
    if serving_leader(after) is None:
        return after.leader is not None
    return not is_legitimate


def _suspect_recreation(after: PartitionState, committed: int, found: LossCandidate | None) -> None:
    """Starts over: nothing that was committed in the old topic proves a loss in the new one."""
    assert after.leader is not None
    answers = (replica for replica in after.replicas if replica.error is None)
    start = max(replica.log_end_offset or 0 for replica in answers)
    if found is not None and start >= committed:
        start, committed = found.start, found.end
    after.sparse = copy_of(after.sparse)
    after.sparse.suspicion = Suspicion(
        start, committed, after.leader, after.observed_at, recreated=True
    )
    after.loss_candidate, after.committed = None, []
    after.high_watermark, after.offset_history = None, []
