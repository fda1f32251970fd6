"""The state of a partition after an observation. It draws no conclusion.

Order: passes of one collector process count up, so a late or repeated observation is dropped. A
lower leader epoch never overwrites a higher one of the same topic id; a new topic id is a new
partition. What a leader reported under the fence of its epoch merges by maximum and may be late.
"""

from __future__ import annotations

import copy
from typing import Final

from msgspec import structs

from tidemark.core.cluster import ClusterState
from tidemark.core.events import MAX_LINEAGE, Observation, Replica
from tidemark.core.leader_epochs import is_ordered
from tidemark.core.offset_history import add_sample
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import copy_of
from tidemark.evolve.committed_records import (
    apply_committed,
    apply_dated,
    apply_former_leader,
    apply_log_start,
    apply_returned_leaders,
)
from tidemark.evolve.elections import note_election
from tidemark.evolve.in_sync import apply_in_sync, limit_minimum, sampled_cause
from tidemark.evolve.leadership import begin_leadership, is_new_leadership
from tidemark.evolve.loss_reads import apply_loss, apply_resets
from tidemark.evolve.recreation import (
    is_new_topic,
    may_mix_topics,
)
from tidemark.evolve.sampled_leadership import has_no_leader, is_confirmed, note_leadership
from tidemark.evolve.sparse_state import apply_sparse

# So long a record of the metadata log counts more than a broker's image of the same leader epoch.
RECORD_SECONDS: Final = 60.0
# Longer than a collector is silent before another one takes over.
HANDOVER_SECONDS: Final = 60.0


def evolve(
    state: PartitionState | None,
    event: Observation,
    collector: str,
    collector_epoch: int,
    pass_number: int,
    cluster: ClusterState | None = None,
) -> PartitionState:
    """The state after an observation that `is_newer` accepted; the given state does not change.

    `cluster` helps to name the suspected cause of a shrink.
    """
    if state is None or is_new_topic(state, event):
        state = PartitionState()
    after = copy.copy(state)
    if may_mix_topics(state, event):
        # Its samples count once the topic is known to be the same.
        after.pass_number = pass_number
        after.collector, after.collector_epoch = collector, collector_epoch
        after.sparse = copy_of(state.sparse)
        after.sparse.mixed_since = after.sparse.mixed_since or event.observed_at
        return after
    after.topic_id = event.topic_id or state.topic_id
    after.collector, after.collector_epoch = collector, collector_epoch
    after.pass_number = pass_number
    after.observed_at, after.missed_passes = event.observed_at, 0
    after.compacted = state.compacted if event.compacted is None else event.compacted
    if event.unclean_leader_election is not None:
        after.unclean_leader_election = event.unclean_leader_election
    if event.throttled_replicas is not None:
        after.throttled_replicas = event.throttled_replicas
    stale = _is_stale(state, event)
    if not stale:
        _apply_metadata(after, state, event, cluster)
    after.replicas = _replicas(after, state, event)
    if stale:
        apply_former_leader(after, state, event)
    else:
        _apply_leader(after, state, event)
    note_leadership(after, state, event)
    note_election(after, state)
    apply_resets(after, state, event)
    is_legitimate = after.leader_epoch is not None or is_confirmed(after, event)
    apply_loss(after, state, is_legitimate=is_legitimate)
    apply_sparse(after, state, event)
    return after


def is_newer(
    state: PartitionState | None,
    collector: str,
    collector_epoch: int,
    pass_number: int,
    owner_silent: bool,
) -> bool:
    """Whether an observation may be folded.

    Of two collectors, the newer process owns the partition while it is alive.
    """
    if state is None or not state.collector:
        return True
    if (state.collector, state.collector_epoch) == (collector, collector_epoch):
        return pass_number > state.pass_number
    return collector_epoch > state.collector_epoch or owner_silent


def take_over(after: PartitionState, last_observed_at: float) -> None:
    """Another collector observes the partition from now on. Changes `after`.

    Where its clock differs, or nothing was observed for long, nothing waits for a time of the other
    clock, and no condition that does not fire yet has held meanwhile.
    """
    now = after.observed_at
    if 0.0 <= now - last_observed_at <= HANDOVER_SECONDS:
        return
    if after.published_at > now:
        after.published_at = 0.0
    after.alerts = [
        alert if alert.firing else structs.replace(alert, since=now) for alert in after.alerts
    ]


def _is_stale(state: PartitionState, event: Observation) -> bool:
    """Whether the observation is of an older leader epoch than the state."""
    known, epoch = state.leader_epoch, event.leader_epoch
    return known is not None and (epoch is None or epoch < known)


def _apply_metadata(
    after: PartitionState,
    before: PartitionState,
    event: Observation,
    cluster: ClusterState | None,
) -> None:
    after.leader, after.leader_epoch = event.leader, event.leader_epoch
    after.leaderless = event.leaderless or has_no_leader(event)
    unnamed = event.leader is None and not event.leaderless
    if unnamed and event.leader_epoch is not None and event.leader_epoch == before.leader_epoch:
        # An epoch has one leader, or none, from its beginning to its end. A pass that cannot name
        # the leader has seen no other.
        after.leader, after.leaderless = before.leader, before.leaderless
    if event.effective_min_in_sync_replicas is not None:
        after.effective_min_in_sync_replicas = event.effective_min_in_sync_replicas
    if _is_outdated(before, event):
        # The metadata log is exact and newer than this image, which has no newer epoch.
        after.leader, after.leaderless = before.leader, before.leaderless
        return
    if event.replicas:
        after.assigned = event.replicas
        limit_minimum(after)
    after.adding, after.removing = event.adding, event.removing
    _apply_eligible(after, before, event)
    members, at = event.in_sync_replicas, event.observed_at
    if members is not None:
        apply_in_sync(
            after, before, members, at, lambda b: sampled_cause(before, event, b, cluster)
        )


def _apply_eligible(after: PartitionState, before: PartitionState, event: Observation) -> None:
    """The eligible leader replicas, which a second request reads.

    They are unknown where an election may lie between the two answers, and remain known as long as
    the leader epoch and the in-sync set that they belong to.
    """
    is_one_moment = not any(
        sample.leader_epoch is not None and sample.leader_epoch > (event.leader_epoch or 0)
        for sample in event.samples
    )
    if event.eligible_leader_replicas is not None and is_one_moment:
        after.eligible_leader_replicas = event.eligible_leader_replicas
        after.last_known_eligible_leader_replicas = event.last_known_eligible_leader_replicas
    elif event.in_sync_replicas is not None and (
        (event.leader_epoch, event.in_sync_replicas)
        != (before.leader_epoch, before.in_sync_replicas)
    ):
        after.eligible_leader_replicas = after.last_known_eligible_leader_replicas = None


def _is_outdated(before: PartitionState, event: Observation) -> bool:
    """Whether a broker's image is older than the newest record of the metadata log.

    Within one leader epoch only time decides. A broker that is cut off from the controller shows an
    old image for long, so a record that is not old itself counts more.
    """
    record = before.metadata_position
    if record is None or event.leader_epoch != before.leader_epoch:
        return False
    read_at = event.observed_at if event.metadata_at is None else event.metadata_at
    return read_at <= record.at + RECORD_SECONDS


def _replicas(
    after: PartitionState, before: PartitionState, event: Observation
) -> list[ReplicaState]:
    """The samples, and the last answers of assigned replicas that were not sampled."""
    sampled = {sample.broker for sample in event.samples}
    kept = (r for r in before.replicas if r.broker in after.assigned and r.broker not in sampled)
    fresh = (
        _replica(before.replica(sample.broker), sample, event.observed_at)
        for sample in event.samples
    )
    return sorted((*fresh, *kept), key=lambda replica: replica.broker)


def _replica(before: ReplicaState | None, sample: Replica, observed_at: float) -> ReplicaState:
    if sample.error is not None:
        after = copy.copy(before) if before is not None else ReplicaState(sample.broker)
        after.error, after.leads = sample.error, None
        after.silent_passes += 1
        if sample.size_bytes is not None:
            after.size_bytes = sample.size_bytes
        return after
    lineage, size = (None, None) if before is None else (before.lineage, before.size_bytes)
    if sample.lineage is not None and is_ordered(sample.lineage):
        lineage = sample.lineage
    return ReplicaState(
        broker=sample.broker,
        log_end_offset=sample.log_end_offset,
        high_watermark=sample.high_watermark,
        log_start_offset=sample.log_start_offset,
        last_stable_offset=sample.last_stable_offset,
        leader_epoch=sample.leader_epoch,
        leads=sample.leads,
        sampled_at=observed_at,
        lineage=lineage,
        size_bytes=size if sample.size_bytes is None else sample.size_bytes,
    )


def _apply_leader(after: PartitionState, before: PartitionState, event: Observation) -> None:
    """What the leader reported: log end offset, fenced high watermark, lineage."""
    if is_new_leadership(before, after):
        begin_leadership(after, before, event.observed_at)
    elif event.observed_at > after.previous_offset_history_until and not after.leaderless:
        after.previous_offset_history = []
    after.leader_end_before = event.leader_log_end_offset_before
    after.leader_end_after = event.leader_log_end_offset_after
    _add_offset_sample(after, event)
    if event.lineage is not None and is_ordered(event.lineage):
        _apply_lineage(after, event.lineage, event.lineage_complete_from)
    _apply_high_watermark(after, event)
    if event.committed is not None and event.leader is not None:
        apply_committed(after, event, event.leader, event.committed)
        apply_dated(after, event, event.leader, event.committed)
    apply_log_start(after)
    if after.leader_end_after is not None and after.leader_epoch is not None:
        apply_returned_leaders(after, after.leader_end_after)


def _add_offset_sample(after: PartitionState, event: Observation) -> None:
    """One sample per observation: the one before the followers, which dates an offset earliest.

    None while the broker does not lead under the epoch: the records may be at its predecessor. The
    first one is from after the sample that shows that it leads.
    """
    leader = next((sample for sample in event.samples if sample.broker == event.leader), None)
    if leader is None or leader.leads is False or leader.leader_epoch != event.leader_epoch:
        return
    time, log_end = event.leader_before_at, event.leader_log_end_offset_before
    is_first = after.previous_offset_history and not after.offset_history
    if log_end is None or (is_first and event.leader_after_at is not None):
        time, log_end = event.leader_after_at, event.leader_log_end_offset_after
    if log_end is not None:
        at = event.observed_at if time is None else time
        after.offset_history = add_sample(after.offset_history, at, log_end)


def _apply_lineage(
    after: PartitionState, read: list[tuple[int, int]], complete_from: int | None
) -> None:
    """A lineage that reaches further back replaces the known one.

    A shorter one replaces the newest epochs of the known one.
    """
    if complete_from is None:
        return
    known, known_from = after.lineage, after.lineage_complete_from
    if known is None or known_from is None or complete_from <= known_from:
        after.lineage, after.lineage_complete_from = read, complete_from
        return
    if after.leader_epoch is None and complete_from > known[-1][0]:
        # Without epochs a leader may be elected again unseen. What it wrote before is not known.
        after.lineage, after.lineage_complete_from = read, complete_from
        return
    older = [entry for entry in known if entry[0] < complete_from]
    after.lineage = [*older, *read][-MAX_LINEAGE:]
    if len(older) + len(read) > MAX_LINEAGE:
        after.lineage_complete_from = after.lineage[0][0]


def _apply_high_watermark(after: PartitionState, event: Observation) -> None:
    leader = after.replica(after.leader)
    shown = event.committed
    if shown is None and leader is not None and leader.error is None and leader.leads is not False:
        shown = leader.high_watermark
    if shown is not None and (after.high_watermark is None or shown > after.high_watermark):
        # The time at which the leader was read, not the end of the pass: a broker that hangs
        # stretches passes.
        at = event.observed_at if event.leader_before_at is None else event.leader_before_at
        after.high_watermark, after.high_watermark_moved_at = shown, at
