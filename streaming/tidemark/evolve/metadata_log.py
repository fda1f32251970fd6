"""The state of a partition after a record of the metadata log, which is exact."""

from __future__ import annotations

import copy

from tidemark.core.cluster import ClusterState
from tidemark.core.events import MetadataChange
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import MetadataPosition, copy_of
from tidemark.evolve.elections import note_election
from tidemark.evolve.in_sync import apply_in_sync, limit_minimum, recorded_cause
from tidemark.evolve.leadership import begin_leadership, is_new_leadership
from tidemark.evolve.recreation import is_other_topic


def is_new_record(state: PartitionState | None, event: MetadataChange) -> bool:
    """Whether a record is newer than the state: by its offset, and never of a lower epoch."""
    if state is None:
        return True
    if is_other_topic(state, event.topic_id):
        # Either the topic was created again, or the record is late and of the deleted topic.
        return event.observed_at > state.observed_at
    if state.leader_epoch is not None and event.leader_epoch < state.leader_epoch:
        return False
    known = state.sparse.metadata if state.sparse is not None else None
    return known is None or event.metadata_offset > known.offset


def evolve_change(
    state: PartitionState | None, event: MetadataChange, cluster: ClusterState | None = None
) -> PartitionState:
    """The state after a record that `is_new_record` accepted.

    A record without a leader proves that no replica leads.
    """
    if state is None or is_other_topic(state, event.topic_id):
        state = PartitionState()
    after = copy.copy(state)
    after.topic_id = event.topic_id or state.topic_id
    at = event.observed_at if event.record_at is None else event.record_at
    after.leader, after.leader_epoch = event.leader, event.leader_epoch
    after.leaderless = event.leader is None
    if event.replicas:
        after.assigned = event.replicas
        limit_minimum(after)
    after.adding, after.removing = event.adding, event.removing
    if event.eligible_leader_replicas is not None:
        after.eligible_leader_replicas = event.eligible_leader_replicas
        after.last_known_eligible_leader_replicas = event.last_known_eligible_leader_replicas
    members = event.in_sync_replicas
    apply_in_sync(after, state, members, at, lambda b: recorded_cause(event, b, cluster))
    if is_new_leadership(state, after):
        begin_leadership(after, state, event.observed_at, at)
    sparse = copy_of(after.sparse)
    known = state.sparse.metadata if state.sparse is not None else None
    sparse.metadata = MetadataPosition(
        event.metadata_offset,
        event.partition_epoch,
        event.observed_at,
        event.recovering,
        adjacent=known is not None and event.partition_epoch == known.partition_epoch + 1,
        in_sync_replicas=members,
    )
    after.sparse = sparse
    note_election(after, state)
    return after
