"""Reads of a loss, which two passes confirm, after an observation."""

from __future__ import annotations

import copy

from tidemark.core.events import Observation
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import Suspicion, copy_of
from tidemark.evolve.loss_proof import find_loss, serving_leader, shows_lineage
from tidemark.evolve.recreation import log_resets, may_be_recreated


def apply_loss(after: PartitionState, before: PartitionState) -> None:
    """Two reads of different passes prove a loss; then the table notes where it begins."""
    read = before.loss_candidate
    if read is not None and read.confirmed:
        after.committed = [copy.copy(entry) for entry in after.committed]
        for entry in after.committed:
            if entry.epoch <= read.epoch_before:
                entry.lost_from = min(entry.surviving, read.start)
                entry.lost_under = read.epoch_after
        read = None
    committed = max((entry.surviving for entry in before.committed), default=0)
    if serving_leader(after) is not None and may_be_recreated(after, committed):
        _suspect_recreation(after, committed)
        return
    found = find_loss(after)
    after.loss_candidate = found
    if found is not None:
        if read is not None and (read.epoch_before, read.epoch_after) == (
            found.epoch_before,
            found.epoch_after,
        ):
            # If the proof is the log end offset, the leader may have written between the reads:
            # only offsets above both ends are proven lost.
            found.start = max(read.start, found.start)
            # Another collector process counts its passes from the start.
            found.pass_number = read.pass_number
            found.confirmed = read.pass_number != after.pass_number
    elif read is not None and read.epoch_after == after.leader_epoch and not shows_lineage(after):
        # A pass without a verdict keeps the first read; one that shows the records refutes it.
        after.loss_candidate = read


def apply_resets(after: PartitionState, before: PartitionState, event: Observation) -> None:
    """Notes the replicas whose logs may be of a new topic."""
    resets = log_resets(before, event)
    if resets or (after.sparse is not None and after.sparse.resets):
        after.sparse = copy_of(after.sparse)
        after.sparse.resets = resets


def _suspect_recreation(after: PartitionState, committed: int) -> None:
    """Starts over: nothing that was committed in the old topic proves a loss in the new one."""
    assert after.leader is not None
    answers = (replica for replica in after.replicas if replica.error is None)
    end = max(replica.log_end_offset or 0 for replica in answers)
    after.sparse = copy_of(after.sparse)
    after.sparse.suspicion = Suspicion(
        end, committed, after.leader, after.observed_at, recreated=True
    )
    after.loss_candidate, after.committed = None, []
    after.high_watermark, after.offset_history = None, []
