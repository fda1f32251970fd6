"""The fast path of the reducer: an observation that moves offsets forward and changes nothing else.

Most observations of most partitions are such. `take_steady` folds one in place, with the result that `evolve` has (a
property test holds it to that), at a third of the cost: no copies, no election, loss or membership to judge.
"""

from __future__ import annotations

from tidemark.core.events import Observation, Replica
from tidemark.core.leader_epochs import LineageEntries
from tidemark.core.offset_history import push
from tidemark.core.partition import PartitionState, ReplicaState


def take_steady(state: PartitionState, event: Observation, pass_number: int) -> bool:
    """Folds the observation into `state` itself; False, and nothing is touched, when it is not a steady one."""
    if not (_is_same_partition(state, event) and _is_plain(state, event)):
        return False
    pairs = _paired(state, event)
    if pairs is None:
        return False
    lineage = _renewed(state, event)
    if lineage is None and event.lineage is not None:
        return False
    committed, time = event.committed, event.leader_before_at
    assert committed is not None and state.high_watermark is not None
    at = event.observed_at
    for replica, sample in pairs:
        replica.log_end_offset, replica.high_watermark = (
            sample.log_end_offset,
            sample.high_watermark,
        )
        replica.log_start_offset, replica.last_stable_offset = (
            sample.log_start_offset,
            sample.last_stable_offset,
        )
        replica.sampled_at = at
    state.pass_number, state.observed_at = pass_number, at
    state.leader_before, state.leader_after = (
        event.leader_log_end_offset_before,
        event.leader_log_end_offset_after,
    )
    if lineage is not None:
        state.lineage = lineage
    read_at = at if time is None else time
    assert state.leader_before is not None and state.leader_after is not None
    state.ring = push(state.ring, read_at, state.leader_before)
    if committed > state.high_watermark:
        state.high_watermark, state.high_watermark_moved_at = committed, read_at
    entry = state.committed[-1]
    if committed > entry.high_watermark:
        entry.high_watermark, entry.at = committed, at
    entry.log_end_offset = max(entry.log_end_offset, committed, state.leader_after)
    return True


def _is_same_partition(state: PartitionState, event: Observation) -> bool:
    """Leadership and membership are what they were, and known."""
    return (
        event.leader == state.leader is not None
        and event.leader_epoch == state.leader_epoch is not None
        and event.in_sync_replicas == state.in_sync_replicas is not None
        and event.replicas == state.assigned
        and (event.topic_id is None or event.topic_id == state.topic_id)
        and not (
            event.leaderless
            or state.leaderless
            or event.adding
            or state.adding
            or event.removing
            or state.removing
        )
        and event.effective_min_in_sync_replicas in (None, state.effective_min_in_sync_replicas)
        and event.eligible_leader_replicas in (None, state.eligible_leader_replicas)
        and event.last_known_eligible_leader_replicas
        in (None, state.last_known_eligible_leader_replicas)
    )


def _is_plain(state: PartitionState, event: Observation) -> bool:
    """Nothing rare is remembered, and the leader showed all of itself, its high watermark not below the one before."""
    return (
        (state.rare is None or state.rare.is_dormant(event.observed_at))
        and state.loss_read is None
        and not state.missed_passes
        and not state.ring_before
        and state.high_watermark is not None
        and event.committed is not None
        and event.committed >= state.high_watermark
        and event.leader_log_end_offset_before is not None
        and event.leader_log_end_offset_after is not None
        and bool(state.committed)
        and state.committed[-1].epoch == state.leader_epoch
        and (state.committed[-1].dated or not state.lineage)
        # A loss may still be claimed of it: `evolve` decides.
        and (
            len(state.committed) == 1
            or all(
                entry.surviving <= state.committed[-1].high_watermark for entry in state.committed
            )
        )
    )


def _paired(state: PartitionState, event: Observation) -> list[tuple[ReplicaState, Replica]] | None:
    """Every replica with its sample, all answered, none fell; None when any is otherwise."""
    high_watermark, committed, newest = (
        state.high_watermark,
        event.committed,
        event.leader_log_end_offset_after,
    )
    assert high_watermark is not None and committed is not None and newest is not None
    replicas = {replica.broker: replica for replica in state.replicas}
    if len(replicas) != len(event.samples):
        return None
    pairs = []
    for sample in event.samples:
        replica = replicas.pop(sample.broker, None)
        if (
            replica is None
            or replica.error is not None
            or sample.error is not None
            or sample.lineage is not None
        ):
            return None
        log_end, stable = sample.log_end_offset, sample.last_stable_offset
        if (
            log_end is None
            or replica.log_end_offset is None
            or log_end < replica.log_end_offset
            or log_end < high_watermark
        ):
            return None
        if log_end > newest and len(state.committed) > 1:
            # A leader of before may be back, with more than its successor has.
            return None
        if (
            sample.leader_epoch != replica.leader_epoch
            or sample.leads != replica.leads
            or (stable is not None and stable < committed)
        ):
            return None
        pairs.append((replica, sample))
    return pairs


def _renewed(state: PartitionState, event: Observation) -> LineageEntries | None:
    """The lineage with the end of its newest epoch renewed; None when the observation brings none or another one."""
    known, read = state.lineage, event.lineage
    if read is None or not known or len(read) != 1 or state.lineage_complete_from is None:
        return None
    ((epoch, end),) = read
    if epoch != known[-1][0] or event.lineage_complete_from != epoch or end < known[-1][1]:
        return None
    return [*known[:-1], (epoch, end)]
