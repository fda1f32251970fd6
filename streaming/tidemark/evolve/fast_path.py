"""The fast path of the reducer: an observation that moves offsets forward and changes nothing else.

Most observations of most partitions are of this kind. `fold_offsets` folds one in place, with the
result of `evolve` (a property test compares them) at a third of its cost: it copies nothing and
judges no election, loss or membership.
"""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.activity import Activity
from tidemark.core.events import Observation, Replica
from tidemark.core.leader_epochs import LineageEntries
from tidemark.core.offset_history import add_sample
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import SparseState
from tidemark.evolve.sparse_state import recent_epoch_starts

Pairs = list[tuple[ReplicaState, Replica]]


def fold_offsets(
    state: PartitionState, event: Observation, pass_number: int, flags: Activity
) -> Activity | None:
    """Folds the observation into `state` and returns the new flags.

    `flags` are those of the state. None, and no change at all, when `evolve` must fold it.
    """
    if flags & activity.NEEDS_WHOLE_FOLD or not _is_same_partition(state, event):
        return None
    committed, newest = event.committed, event.leader_log_end_offset_after
    if committed is None or newest is None or not _is_plain(state, event, committed):
        return None
    pairs = _paired(state, event, committed, newest)
    if pairs is None:
        return None
    lineage = _renewed_lineage(state, event)
    if lineage is None and event.lineage is not None:
        return None
    state.pass_number = pass_number
    if lineage is not None:
        state.lineage = lineage
    lags = _apply_offsets(state, event, pairs, committed, newest)
    return flags | activity.LAG if lags else flags & ~activity.LAG


def _is_same_partition(state: PartitionState, event: Observation) -> bool:
    """Whether leadership and membership are known and unchanged."""
    eligible, last_known = (
        event.eligible_leader_replicas,
        event.last_known_eligible_leader_replicas,
    )
    return (
        event.leader == state.leader
        and event.leader_epoch == state.leader_epoch is not None
        and event.in_sync_replicas == state.in_sync_replicas is not None
        and event.replicas == state.assigned
        and (event.topic_id is None or event.topic_id == state.topic_id)
        and not (event.leaderless or event.adding or state.adding)
        and not (event.removing or state.removing)
        and event.effective_min_in_sync_replicas in (None, state.effective_min_in_sync_replicas)
        and (eligible is None or eligible == state.eligible_leader_replicas)
        and (last_known is None or last_known == state.last_known_eligible_leader_replicas)
    )


def _is_plain(state: PartitionState, event: Observation, committed: int) -> bool:
    """Whether the leader reported all of itself, and no history is to be dropped or completed."""
    sparse, high_watermark = state.sparse, state.high_watermark
    unclean, throttled = event.unclean_leader_election, event.throttled_replicas
    return (
        (sparse is None or _is_at_rest(sparse, event))
        and not state.previous_offset_history
        and high_watermark is not None
        and committed >= high_watermark
        and event.leader_log_end_offset_before is not None
        and bool(state.committed)
        and state.committed[-1].epoch == state.leader_epoch
        and (state.committed[-1].dated or not state.lineage)
        and (len(state.committed) == 1 or _covers_earlier(state))
        and (event.compacted is None or event.compacted == state.compacted)
        and (unclean is None or unclean == state.unclean_leader_election)
        and (throttled is None or throttled == state.throttled_replicas)
    )


def _is_at_rest(sparse: SparseState, event: Observation) -> bool:
    starts = recent_epoch_starts(sparse, event.observed_at)
    is_settled = sparse.mixed_since is None and sparse.open_election is None
    return starts is sparse.epoch_starts and is_settled and not sparse.resets


def _covers_earlier(state: PartitionState) -> bool:
    """Whether the newest epoch has committed as much as every earlier one."""
    *earlier, newest = state.committed
    return all(entry.surviving <= newest.high_watermark for entry in earlier)


def _paired(state: PartitionState, event: Observation, committed: int, newest: int) -> Pairs | None:
    """Every replica with its sample; None unless all answered and no log got shorter."""
    high_watermark, several = state.high_watermark or 0, len(state.committed) > 1
    has_checkpoints = state.sparse is not None and bool(state.sparse.checkpoints)
    replicas = {replica.broker: replica for replica in state.replicas}
    if len(replicas) != len(event.samples):
        return None
    pairs = []
    for sample in event.samples:
        replica = replicas.pop(sample.broker, None)
        if replica is None or sample.error is not None or sample.lineage is not None:
            return None
        log_end, known = sample.log_end_offset, replica.log_end_offset
        stable = sample.last_stable_offset
        if log_end is None or known is None or log_end < known or log_end < high_watermark:
            return None
        if several and log_end > newest:
            # A former leader may be back, with more than its successor has.
            return None
        if stable is not None and stable < committed:
            return None
        if sample.leader_epoch != replica.leader_epoch or sample.leads != replica.leads:
            return None
        if sample.broker == state.leader and not _leads(state, sample):
            return None
        if has_checkpoints and _high_watermark_fell(replica, sample):
            # It may be below its checkpoint now.
            return None
        pairs.append((replica, sample))
    return pairs


def _high_watermark_fell(replica: ReplicaState, sample: Replica) -> bool:
    before, now = replica.high_watermark, sample.high_watermark
    return now is not None and (before is None or now < before)


def _leads(state: PartitionState, sample: Replica) -> bool:
    return sample.leads is not False and sample.leader_epoch == state.leader_epoch


def _renewed_lineage(state: PartitionState, event: Observation) -> LineageEntries | None:
    """The lineage with a new end of its newest epoch; None for no lineage, or another one."""
    known, read = state.lineage, event.lineage
    if read is None or not known or len(read) != 1 or state.lineage_complete_from is None:
        return None
    ((epoch, end),) = read
    if epoch != known[-1][0] or event.lineage_complete_from != epoch or end < known[-1][1]:
        return None
    return [*known[:-1], (epoch, end)]


def _apply_offsets(
    state: PartitionState, event: Observation, pairs: Pairs, committed: int, newest: int
) -> bool:
    """Moves the offsets; whether a log ends elsewhere than at the high watermark."""
    at, before = event.observed_at, event.leader_log_end_offset_before
    lags = newest != committed
    for replica, sample in pairs:
        replica.log_end_offset = sample.log_end_offset
        replica.high_watermark = sample.high_watermark
        replica.log_start_offset = sample.log_start_offset
        replica.last_stable_offset = sample.last_stable_offset
        replica.sampled_at = at
        if sample.size_bytes is not None:
            replica.size_bytes = sample.size_bytes
        if sample.log_end_offset != committed:
            lags = True
        if sample.log_start_offset:
            _apply_log_start(state, sample.log_start_offset)
    assert before is not None
    assert state.high_watermark is not None
    state.observed_at = at
    state.leader_end_before, state.leader_end_after = before, newest
    read_at = at if event.leader_before_at is None else event.leader_before_at
    state.offset_history = add_sample(state.offset_history, read_at, before)
    if committed > state.high_watermark:
        state.high_watermark, state.high_watermark_moved_at = committed, read_at
    entry = state.committed[-1]
    if committed > entry.high_watermark:
        entry.high_watermark, entry.at = committed, at
    entry.log_end_offset = max(entry.log_end_offset, committed, newest)
    state.high_watermark_read_at = at
    return lags


def _apply_log_start(state: PartitionState, log_start: int) -> None:
    for entry in state.committed:
        entry.log_start_offset = max(entry.log_start_offset, log_start)
