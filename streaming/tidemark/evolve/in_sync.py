"""In-sync sets over time: which broker left, under which leader and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidemark.core.cluster import ClusterState
from tidemark.core.events import (
    CONTROLLED_SHUTDOWN,
    OK,
    REFUSED,
    MetadataChange,
    Observation,
    Replica,
)
from tidemark.core.partition import (
    MAX_ISR_HISTORY,
    MAX_SHRINKS,
    IsrChange,
    PartitionState,
    Shrink,
)
from tidemark.core.shrink_causes import ShrinkCause, ShrinkExplanation

# `MetadataChange.cause` of a shrink; the other values explain none.
_RECORDED: Final = {
    "fenced": ShrinkCause.FENCING,
    "controlled_shutdown": ShrinkCause.CONTROLLED_SHUTDOWN,
    "leader": ShrinkCause.LEADER_SHRINK,
    "reassignment": ShrinkCause.REASSIGNMENT,
}

# A broker's image shows a record this much before or after the collector reads it, by two clocks.
SAME_SHRINK_SECONDS: Final = 5.0


def apply_in_sync(
    after: PartitionState,
    before: PartitionState,
    members: list[int],
    at: float,
    cause_of: Callable[[int], ShrinkExplanation],
) -> None:
    """Sets the in-sync set and notes the change; `cause_of` is called for each broker that left."""
    after.in_sync_replicas = members
    known = before.in_sync_replicas
    if known is not None and (members == known or set(members) == set(known)):
        return
    after.isr_history = [*before.isr_history, IsrChange(at, members)][-MAX_ISR_HISTORY:]
    left = [broker for broker in known or [] if broker not in members]
    if left:
        shrinks = [Shrink(at, broker, before.leader, *cause_of(broker)) for broker in left]
        after.shrinks = [*before.shrinks, *shrinks][-MAX_SHRINKS:]


def limit_minimum(after: PartitionState) -> None:
    """No partition needs more replicas in sync than it has (Partition.effectiveMinIsr)."""
    minimum = after.effective_min_in_sync_replicas
    if minimum is not None and after.assigned:
        after.effective_min_in_sync_replicas = min(minimum, len(after.assigned))


def sampled_cause(
    before: PartitionState, event: Observation, broker: int, cluster: ClusterState | None
) -> ShrinkExplanation:
    """Why a broker left, as far as it shows outside of the controller: always a suspicion."""
    return ShrinkExplanation(_suspected(before, event, broker, cluster))


def _suspected(
    before: PartitionState, event: Observation, broker: int, cluster: ClusterState | None
) -> ShrinkCause:
    if broker in event.removing or broker not in event.replicas:
        return ShrinkCause.REASSIGNMENT
    node = cluster.nodes.get(broker) if cluster is not None else None
    seen = cluster.brokers.get(broker) if cluster is not None else None
    sample = next((s for s in event.samples if s.broker == broker), None)
    error = (sample.error if sample else None) or (seen.outcome if seen else OK)
    if error == CONTROLLED_SHUTDOWN or (node is not None and node.in_controlled_shutdown):
        return ShrinkCause.CONTROLLED_SHUTDOWN
    if node is not None and node.fenced:
        return ShrinkCause.FENCING
    if error == REFUSED or (before.leader == broker and event.leader != broker):
        return ShrinkCause.STOPPED_OR_FENCED
    if error != OK:
        return ShrinkCause.NO_ANSWER
    if sample is not None and _is_caught_up(sample, event):
        # A leader never removes a follower that has its whole log (ReplicaState.isCaughtUp): the
        # controller did.
        return ShrinkCause.STOPPED_OR_FENCED
    return ShrinkCause.LEADER_SHRINK


def _is_caught_up(sample: Replica, event: Observation) -> bool:
    end = event.leader_log_end_offset_after
    return end is not None and sample.log_end_offset is not None and sample.log_end_offset >= end


def recorded_cause(
    event: MetadataChange, broker: int, cluster: ClusterState | None
) -> ShrinkExplanation:
    """Why a broker left, by the record; what the record leaves open is a suspicion."""
    recorded = _RECORDED.get(event.cause or "")
    if recorded is not None:
        return ShrinkExplanation(recorded, recorded=True)
    if broker in event.removing or (event.replicas and broker not in event.replicas):
        return ShrinkExplanation(ShrinkCause.REASSIGNMENT)
    node = cluster.nodes.get(broker) if cluster is not None else None
    if node is not None and node.in_controlled_shutdown:
        return ShrinkExplanation(ShrinkCause.CONTROLLED_SHUTDOWN)
    if node is not None and node.fenced:
        return ShrinkExplanation(ShrinkCause.FENCING)
    if event.cause == "unknown":
        return ShrinkExplanation(ShrinkCause.UNKNOWN)
    return ShrinkExplanation(ShrinkCause.LEADER_SHRINK)


def confirm_causes(
    after: PartitionState,
    left: list[int],
    at: float,
    cause_of: Callable[[int], ShrinkExplanation],
) -> None:
    """Records the causes of shrinks at `at` that a sample has shown before: until now suspicions.

    `left`: the brokers that the record removed.
    """
    confirmed = {broker: cause for broker in left if (cause := cause_of(broker)).recorded}
    after.shrinks = [
        Shrink(shrink.at, shrink.broker, shrink.leader, *confirmed[shrink.broker])
        if shrink.broker in confirmed
        and not shrink.recorded
        and abs(shrink.at - at) <= SAME_SHRINK_SECONDS
        else shrink
        for shrink in after.shrinks
    ]
