"""The reducer of one partition: `evolve(state, observation) -> state'`. It concludes nothing.

Ordering rules: within one collector process passes count up, so a late or repeated observation is dropped. A lower
leader epoch never overwrites a higher one of the same topic id; a new topic id is a new partition. What a leader
reported under the fence of its epoch is max-merged and may come late.
"""

from __future__ import annotations

import copy

from tidemark.core.cluster import ClusterState
from tidemark.core.events import Observation, Replica
from tidemark.core.leader_epochs import NO_EPOCH, Committed, commit, is_ordered
from tidemark.core.offset_history import push
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.evolve.elections import take_election
from tidemark.evolve.in_sync import sampled_cause, take_members
from tidemark.evolve.leadership import begin_leadership, is_new_leadership
from tidemark.evolve.losses import find_loss, serving_leader
from tidemark.evolve.sparse_state import take_rare


def evolve(
    state: PartitionState | None,
    event: Observation,
    collector: str,
    collector_epoch: int,
    pass_number: int,
    cluster: ClusterState | None = None,
) -> PartitionState:
    """The state after an observation that was accepted (see `is_newer`). The state given is left as it is.

    What `cluster` knows of the brokers serves the suspected cause of an in-sync shrink.
    """
    if state is None or is_recreated(state, event):
        state = PartitionState()
    after = copy.copy(state)
    after.topic_id = event.topic_id or state.topic_id
    after.collector, after.collector_epoch, after.pass_number = (
        collector,
        collector_epoch,
        pass_number,
    )
    after.observed_at, after.missed_passes = event.observed_at, 0
    stale = _is_stale(state, event)
    if not stale:
        _take_metadata(after, state, event, cluster)
    after.replicas = _take_replicas(after, state, event)
    _take_leader(after, state, event, stale)
    take_election(after, state)
    _take_loss(after, state)
    take_rare(after, state, event)
    return after


def is_recreated(state: PartitionState, event: Observation) -> bool:
    """Whether the topic was deleted and created again under its name since the state was made."""
    return (
        event.topic_id is not None
        and state.topic_id is not None
        and event.topic_id != state.topic_id
    )


def is_newer(
    state: PartitionState | None,
    collector: str,
    collector_epoch: int,
    pass_number: int,
    owner_silent: bool,
) -> bool:
    """Whether an observation may be folded: of two collectors the newer process owns the partition while it lives."""
    if state is None or not state.collector:
        return True
    if (state.collector, state.collector_epoch) == (collector, collector_epoch):
        return pass_number > state.pass_number
    return collector_epoch > state.collector_epoch or owner_silent


def _is_stale(state: PartitionState, event: Observation) -> bool:
    return state.leader_epoch is not None and (
        event.leader_epoch is None or event.leader_epoch < state.leader_epoch
    )


def _take_metadata(
    after: PartitionState, before: PartitionState, event: Observation, cluster: ClusterState | None
) -> None:
    after.leader, after.leader_epoch, after.leaderless = (
        event.leader,
        event.leader_epoch,
        event.leaderless,
    )
    if (
        event.leader is None
        and not event.leaderless
        and event.leader_epoch is not None
        and event.leader_epoch == before.leader_epoch
    ):
        # An epoch has one leader or none from its beginning to its end: who cannot name it has seen no other.
        after.leader, after.leaderless = before.leader, before.leaderless
    if event.effective_min_in_sync_replicas is not None:
        after.effective_min_in_sync_replicas = event.effective_min_in_sync_replicas
    if _is_outdated(before, event):
        # The metadata log is exact and already further: of this image only the epoch could be newer, and it is not.
        after.leader, after.leaderless = before.leader, before.leaderless
        return
    if event.replicas:
        after.assigned = event.replicas
    after.adding, after.removing = event.adding, event.removing
    if event.eligible_leader_replicas is not None:
        after.eligible_leader_replicas = event.eligible_leader_replicas
        after.last_known_eligible_leader_replicas = event.last_known_eligible_leader_replicas
    if event.in_sync_replicas is not None:
        take_members(
            after,
            before,
            event.in_sync_replicas,
            event.observed_at,
            lambda broker: sampled_cause(before, event, broker, cluster),
        )


def _is_outdated(before: PartitionState, event: Observation) -> bool:
    """Whether a broker's image is older than the newest record of the metadata log; within one leader epoch only time tells."""
    if (
        before.rare is None
        or before.rare.metadata is None
        or event.leader_epoch != before.leader_epoch
    ):
        return False
    return (
        event.observed_at if event.metadata_at is None else event.metadata_at
    ) <= before.rare.metadata.at


def _take_replicas(
    after: PartitionState, before: PartitionState, event: Observation
) -> list[ReplicaState]:
    sampled = {sample.broker for sample in event.samples}
    kept = [
        replica
        for replica in before.replicas
        if replica.broker in after.assigned and replica.broker not in sampled
    ]
    fresh = [
        _take_replica(before.replica(sample.broker), sample, event.observed_at)
        for sample in event.samples
    ]
    return sorted([*fresh, *kept], key=lambda replica: replica.broker)


def _take_replica(before: ReplicaState | None, sample: Replica, observed_at: float) -> ReplicaState:
    if sample.error is not None:
        after = copy.copy(before) if before is not None else ReplicaState(sample.broker)
        after.error, after.silent_passes, after.leads = sample.error, after.silent_passes + 1, None
        return after
    after = ReplicaState(
        broker=sample.broker,
        log_end_offset=sample.log_end_offset,
        high_watermark=sample.high_watermark,
        log_start_offset=sample.log_start_offset,
        last_stable_offset=sample.last_stable_offset,
        leader_epoch=sample.leader_epoch,
        leads=sample.leads,
        sampled_at=observed_at,
        lineage=before.lineage if before is not None else None,
    )
    if sample.lineage is not None and is_ordered(sample.lineage):
        after.lineage = sample.lineage
    return after


def _take_leader(
    after: PartitionState, before: PartitionState, event: Observation, stale: bool
) -> None:
    """What the leader said of itself: log end, fenced high watermark, lineage."""
    if stale:
        # Of the leader that is known nothing was seen; but the fence makes the reading true of its own epoch.
        after.leader_before = after.leader_after = None
        if (
            event.committed is not None
            and event.leader is not None
            and event.leader_epoch is not None
        ):
            after.committed = [copy.copy(entry) for entry in before.committed]
            commit(
                after.committed,
                event.leader_epoch,
                event.committed,
                event.committed,
                event.leader,
                event.observed_at,
            )
        return
    if is_new_leadership(before, after):
        begin_leadership(after, before, event.observed_at)
    elif after.ring_before and event.observed_at > after.ring_before_until:
        after.ring_before = []
    after.leader_before, after.leader_after = (
        event.leader_log_end_offset_before,
        event.leader_log_end_offset_after,
    )
    _take_ring(after, event)
    if (
        event.lineage is not None
        and is_ordered(event.lineage)
        and event.lineage_complete_from is not None
    ):
        _take_lineage(after, event)
    _take_high_watermark(after, event)
    _take_returned(after)


def _take_returned(after: PartitionState) -> None:
    """A leader of before that is back, and shows more than its successor has: the rest is of its own time, or older."""
    end = after.leader_after
    if end is not None and after.leader_epoch is not None:
        after.committed = [_with_returned(after, entry, end) for entry in after.committed]


def _with_returned(after: PartitionState, entry: Committed, end: int) -> Committed:
    former = after.replica(entry.leader)
    if (
        former is None
        or former.broker == after.leader
        or former.sampled_at != after.observed_at
        or former.log_end_offset is None
    ):
        return entry
    if former.log_end_offset <= max(end, entry.log_end_offset):
        return entry
    seen = copy.copy(entry)
    seen.log_end_offset = former.log_end_offset
    return seen


def _take_ring(after: PartitionState, event: Observation) -> None:
    """One sample an observation, the one before the followers were asked: it dates an offset earliest."""
    time, log_end = event.leader_before_at, event.leader_log_end_offset_before
    if log_end is None:
        time, log_end = event.leader_after_at, event.leader_log_end_offset_after
    if log_end is not None:
        after.ring = push(after.ring, event.observed_at if time is None else time, log_end)


def _take_lineage(after: PartitionState, event: Observation) -> None:
    """A walk that reaches further back replaces what is known; one that reads just the newest epoch renews its end."""
    assert event.lineage is not None and event.lineage_complete_from is not None
    known, reach = after.lineage, after.lineage_complete_from
    if known is None or reach is None or event.lineage_complete_from <= reach:
        after.lineage, after.lineage_complete_from = event.lineage, event.lineage_complete_from
        return
    older = [entry for entry in known if entry[0] < event.lineage_complete_from]
    after.lineage = [*older, *event.lineage][-8:]
    after.lineage_complete_from = (
        reach if len(older) + len(event.lineage) <= 8 else after.lineage[0][0]
    )


def _take_high_watermark(after: PartitionState, event: Observation) -> None:
    leader = after.replica(after.leader)
    shown = event.committed
    if shown is None and leader is not None and leader.error is None and leader.leads is not False:
        shown = leader.high_watermark
    if shown is not None and (after.high_watermark is None or shown > after.high_watermark):
        # When the leader was read, not when the pass ended: a hanging broker stretches passes.
        read_at = event.observed_at if event.leader_before_at is None else event.leader_before_at
        after.high_watermark, after.high_watermark_moved_at = shown, read_at
    if event.committed is not None and event.leader is not None:
        after.committed = [copy.copy(entry) for entry in after.committed]
        epoch = NO_EPOCH if event.leader_epoch is None else event.leader_epoch
        log_end = max(event.committed, after.leader_log_end_offset or 0)
        commit(after.committed, epoch, event.committed, log_end, event.leader, event.observed_at)
        if after.lineage:
            for entry in after.committed:
                entry.dated = entry.dated or entry.epoch == epoch


def _take_loss(after: PartitionState, before: PartitionState) -> None:
    """Two reads of different passes make a loss certain; afterwards the committed table says from where it is gone."""
    claimed = before.loss_read
    if claimed is not None and claimed.confirmed:
        after.committed = [copy.copy(entry) for entry in after.committed]
        for entry in after.committed:
            if entry.epoch <= claimed.epoch_before:
                entry.lost_from, entry.lost_under = (
                    min(entry.surviving, claimed.start),
                    claimed.epoch_after,
                )
        claimed = None
    found = find_loss(after)
    if found is not None:
        if claimed is not None and (claimed.epoch_before, claimed.epoch_after) == (
            found.epoch_before,
            found.epoch_after,
        ):
            # A leader whose log end alone is the proof may write on between the reads: both prove what is above both.
            found.start = max(claimed.start, found.start)
            # Another process counts its passes anew.
            found.pass_number, found.confirmed = (
                claimed.pass_number,
                claimed.pass_number != after.pass_number,
            )
        after.loss_read = found
    elif claimed is not None and claimed.epoch_after == after.leader_epoch and not _can_tell(after):
        # A read that could not tell leaves the first one standing; one that shows the records there refutes it.
        after.loss_read = claimed
    else:
        after.loss_read = None


def _can_tell(after: PartitionState) -> bool:
    return serving_leader(after) is not None and after.lineage_complete_from is not None
