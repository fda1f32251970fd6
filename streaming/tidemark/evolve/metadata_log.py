"""The reducer of a partition for what is no sample: records of the metadata log, checkpoint files, audit findings."""

from __future__ import annotations

import copy

from tidemark.core.cluster import ClusterState
from tidemark.core.events import MAX_REPLICAS, Audit, Checkpoint, MetadataChange
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import AuditFinding, CheckpointSeen, MetadataPosition, rare_of
from tidemark.evolve.elections import take_election
from tidemark.evolve.in_sync import recorded_cause, take_members
from tidemark.evolve.leadership import begin_leadership, is_new_leadership


def is_new_record(state: PartitionState | None, event: MetadataChange) -> bool:
    """Whether a record of the metadata log is further than what is known: by its offset, and never by a lower epoch."""
    if state is None:
        return True
    if _is_other_topic(state, event.topic_id):
        # Of a topic that was created since, or late and of one that was deleted before.
        return event.observed_at > state.observed_at
    if state.leader_epoch is not None and event.leader_epoch < state.leader_epoch:
        return False
    return (
        state.rare is None
        or state.rare.metadata is None
        or event.metadata_offset > state.rare.metadata.offset
    )


def evolve_change(
    state: PartitionState | None, event: MetadataChange, cluster: ClusterState | None = None
) -> PartitionState:
    """The state after a record that `is_new_record` accepted. It is exact: no leader in it means that nobody leads."""
    if state is None or _is_other_topic(state, event.topic_id):
        state = PartitionState()
    after = copy.copy(state)
    after.topic_id = event.topic_id or state.topic_id
    at = event.observed_at if event.record_at is None else event.record_at
    known = state.rare.metadata if state.rare is not None else None
    after.leader, after.leader_epoch, after.leaderless = (
        event.leader,
        event.leader_epoch,
        event.leader is None,
    )
    if event.replicas:
        after.assigned = event.replicas
    after.adding, after.removing = event.adding, event.removing
    if event.eligible_leader_replicas is not None:
        after.eligible_leader_replicas = event.eligible_leader_replicas
        after.last_known_eligible_leader_replicas = event.last_known_eligible_leader_replicas
    take_members(
        after,
        state,
        event.in_sync_replicas,
        at,
        lambda broker: recorded_cause(event, broker, cluster),
    )
    if is_new_leadership(state, after):
        begin_leadership(after, state, event.observed_at, at)
    rare = rare_of(after.rare)
    adjacent = known is not None and event.partition_epoch == known.partition_epoch + 1
    rare.metadata = MetadataPosition(
        event.metadata_offset, event.partition_epoch, event.observed_at, event.recovering, adjacent
    )
    after.rare = rare
    take_election(after, state)
    return after


def evolve_checkpoint(state: PartitionState, event: Checkpoint) -> PartitionState:
    """Notes a broker's checkpoint files; an older reading changes nothing."""
    if not _is_surely_of(state, event.topic_id):
        return state
    rare = rare_of(state.rare)
    known = next((item for item in rare.checkpoints if item.broker == event.broker), None)
    if known is not None and known.observed_at >= event.observed_at:
        return state
    fresh = CheckpointSeen(event.broker, event.high_watermark, event.modified_at, event.observed_at)
    rare.checkpoints = [*(item for item in rare.checkpoints if item.broker != event.broker), fresh][
        -MAX_REPLICAS:
    ]
    after = copy.copy(state)
    after.rare = rare
    return after


def evolve_audit(state: PartitionState, event: Audit) -> PartitionState:
    """Notes the newest finding of an audit."""
    if not _is_surely_of(state, event.topic_id) or len(set(event.crcs)) < 2:
        return state
    known = state.rare.audit if state.rare is not None else None
    if known is not None and known.at >= event.observed_at:
        return state
    after = copy.copy(state)
    after.rare = rare_of(state.rare)
    after.rare.audit = AuditFinding(
        event.offset, event.leader_epoch, event.brokers, event.crcs, event.observed_at
    )
    return after


def _is_other_topic(state: PartitionState, topic_id: str | None) -> bool:
    return topic_id is not None and state.topic_id is not None and topic_id != state.topic_id


def _is_surely_of(state: PartitionState, topic_id: str | None) -> bool:
    """Files and findings have no order among the passes: without the topic's id they may be late and of one deleted since."""
    return state.topic_id is None or topic_id == state.topic_id
