"""The state of a partition after a record of the metadata log, which is exact."""

from __future__ import annotations

import copy
from typing import Final

from tidemark.core.cluster import ClusterState
from tidemark.core.events import MetadataChange
from tidemark.core.partition import PartitionState
from tidemark.core.shrink_causes import ShrinkExplanation
from tidemark.core.sparse_state import MetadataPosition, copy_of
from tidemark.evolve.elections import note_election
from tidemark.evolve.leadership import begin_leadership, is_new_leadership
from tidemark.evolve.membership import (
    apply_assignment,
    apply_in_sync,
    confirm_causes,
    recorded_cause,
)
from tidemark.evolve.recreation import is_other_topic

# A record that was read so much later than others is no news: samples are newer.
LATE_SECONDS: Final = 2.0
# The least delay of two such spans is that of the clocks: one may be set, or drift.
DELAY_SECONDS: Final = 300.0


def note_delay(cluster: ClusterState, event: MetadataChange, read_at: float) -> None:
    """Notes how much later than it was written a record was read, by two clocks."""
    if event.record_at is None:
        return
    delay = read_at - event.record_at
    since, older, newer = cluster.record_delays or (read_at, delay, delay)
    if abs(read_at - since) > DELAY_SECONDS:
        since, older, newer = read_at, newer, delay
    cluster.record_delays = (since, older, min(newer, delay))


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
    state: PartitionState | None,
    event: MetadataChange,
    cluster: ClusterState | None = None,
    read_at: float | None = None,
) -> PartitionState:
    """The state after a record that `is_new_record` accepted.

    A record without a leader proves that no replica leads. `read_at`: when it came, by the clock of
    the passes; null: as the event says, which another process may have written.
    """
    read_at = event.observed_at if read_at is None else read_at
    if state is None or is_other_topic(state, event.topic_id):
        state = PartitionState()
    known = state.metadata_position
    after = copy.copy(state)
    late = _late_by(event, cluster, read_at)
    # The controller's clock may be ahead: never later than it was read.
    written_at = min(event.observed_at, event.record_at or event.observed_at)
    at = read_at - late if late else written_at
    adjacent = known is not None and event.partition_epoch == known.partition_epoch + 1
    is_shown = (event.leader_epoch, event.in_sync_replicas) == (
        state.leader_epoch,
        state.in_sync_replicas,
    )
    after.sparse = copy_of(after.sparse)
    after.sparse.metadata = MetadataPosition(
        event.metadata_offset,
        event.partition_epoch,
        0.0 if late else read_at,
        event.recovering,
        adjacent=adjacent,
        in_sync_replicas=event.in_sync_replicas,
        image_from=known.image_from if known is not None and is_shown else [],
        eligible_leader_replicas=event.eligible_leader_replicas,
        last_known_eligible_leader_replicas=event.last_known_eligible_leader_replicas,
        reassigning=bool(event.adding or event.removing),
    )

    def cause_of(broker: int) -> ShrinkExplanation:
        return recorded_cause(event, broker, cluster)

    members = event.in_sync_replicas
    was = known.in_sync_replicas if known is not None and known.in_sync_replicas else []
    left = [broker for broker in was if broker not in members]
    # Samples show the partition after the record, under the same leadership.
    is_history = event.leader_epoch == state.leader_epoch and at < state.observed_at
    if is_history and (known is None or late):
        confirm_causes(after, left, at, cause_of)
        return after
    after.topic_id = event.topic_id or state.topic_id
    after.leader, after.leader_epoch = event.leader, event.leader_epoch
    after.leaderless = event.leader is None
    apply_assignment(after, event)
    if event.eligible_leader_replicas is not None:
        after.eligible_leader_replicas = event.eligible_leader_replicas
        after.last_known_eligible_leader_replicas = event.last_known_eligible_leader_replicas
    apply_in_sync(after, state, members, at, cause_of)
    confirm_causes(after, left, at, cause_of)
    if is_new_leadership(state, after):
        begin_leadership(after, state, event.observed_at, at)
    note_election(after, state)
    return after


def _late_by(event: MetadataChange, cluster: ClusterState | None, read_at: float) -> float:
    """Seconds that a record was read later than it could be; 0: none that count."""
    if event.record_at is None or cluster is None or cluster.record_delays is None:
        return 0.0
    late = read_at - event.record_at - min(cluster.record_delays[1:])
    return late if late > LATE_SECONDS else 0.0
