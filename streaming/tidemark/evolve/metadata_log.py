"""The state of a partition after a record of the metadata log, which is exact."""

from __future__ import annotations

import copy

from tidemark.core.cluster import ClusterState
from tidemark.core.events import MetadataChange
from tidemark.core.partition import PartitionState
from tidemark.core.shrink_causes import ShrinkExplanation
from tidemark.core.sparse_state import MetadataPosition, SparseState, copy_of
from tidemark.evolve.elections import note_election
from tidemark.evolve.leadership import begin_leadership, is_new_leadership
from tidemark.evolve.membership import (
    apply_assignment,
    apply_in_sync,
    confirm_causes,
    recorded_cause,
)
from tidemark.evolve.recreation import is_other_topic


def is_new_record(state: PartitionState | None, event: MetadataChange) -> bool:
    """Whether a record is newer than the state: by its offset, and never of a lower epoch.

    A collector that starts reads old records again, or a snapshot with an offset of its own: each
    record adds 1 to the partition epoch, so the same epoch is the same state.
    """
    if state is None:
        return True
    known = state.metadata_position
    if is_other_topic(state, event.topic_id):
        # Either the topic was created again, or the record is late and of the deleted topic. The
        # log has an order; where none of its records is known, the next observation shows it.
        return known is not None and event.metadata_offset > known.offset
    if state.leader_epoch is not None and event.leader_epoch < state.leader_epoch:
        return False
    return known is None or (
        event.metadata_offset > known.offset and event.partition_epoch > known.partition_epoch
    )


def evolve_change(
    state: PartitionState | None, event: MetadataChange, cluster: ClusterState | None = None
) -> PartitionState:
    """The state after a record that `is_new_record` accepted.

    A record without a leader proves that no replica leads.
    """
    if state is None or is_other_topic(state, event.topic_id):
        state = PartitionState()
    known = state.metadata_position
    after = copy.copy(state)
    if known is None and _is_history(state, event):
        after.sparse = _with_position(after, event, adjacent=False)
        return after
    after.topic_id = event.topic_id or state.topic_id
    at = _written_at(event)
    after.leader, after.leader_epoch = event.leader, event.leader_epoch
    after.leaderless = event.leader is None
    apply_assignment(after, event)
    if event.eligible_leader_replicas is not None:
        after.eligible_leader_replicas = event.eligible_leader_replicas
        after.last_known_eligible_leader_replicas = event.last_known_eligible_leader_replicas
    members = event.in_sync_replicas

    def cause_of(broker: int) -> ShrinkExplanation:
        return recorded_cause(event, broker, cluster)

    apply_in_sync(after, state, members, at, cause_of)
    if known is not None and known.in_sync_replicas is not None:
        left = [broker for broker in known.in_sync_replicas if broker not in members]
        confirm_causes(after, left, at, cause_of)
    if is_new_leadership(state, after):
        begin_leadership(after, state, event.observed_at, at)
    adjacent = known is not None and event.partition_epoch == known.partition_epoch + 1
    after.sparse = _with_position(after, event, adjacent=adjacent)
    note_election(after, state)
    return after


def _written_at(event: MetadataChange) -> float:
    """By the controller's clock, which may be ahead: never later than it was read."""
    return min(event.observed_at, event.record_at or event.observed_at)


def _is_history(state: PartitionState, event: MetadataChange) -> bool:
    """Whether samples show the partition after the record, under the same leadership.

    So it is where the metadata log is read for the first time.
    """
    return event.leader_epoch == state.leader_epoch and _written_at(event) < state.observed_at


def _with_position(after: PartitionState, event: MetadataChange, *, adjacent: bool) -> SparseState:
    sparse = copy_of(after.sparse)
    sparse.metadata = MetadataPosition(
        event.metadata_offset,
        event.partition_epoch,
        event.observed_at,
        event.recovering,
        adjacent=adjacent,
        in_sync_replicas=event.in_sync_replicas,
    )
    return sparse
