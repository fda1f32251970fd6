"""In-sync sets over time: who left, under which leader, and what may have caused it."""

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
from tidemark.core.partition import MAX_ISR_HISTORY, MAX_SHRINKS, PartitionState

# What follows a cause that a record of the metadata log itself gives; any other is a suspicion.
RECORDED: Final = ", by the metadata log"
# The words of `MetadataChange.cause` as people read them.
CAUSES: Final = {
    "fenced": "fencing",
    "controlled_shutdown": "controlled shutdown",
    "leader": "the leader's own shrink",
    "reassignment": "reassignment",
}


def take_members(
    after: PartitionState,
    before: PartitionState,
    members: list[int],
    at: float,
    cause_of: Callable[[int], str],
) -> None:
    """Takes a new in-sync set over and notes the change; `cause_of` is asked for each broker that left."""
    after.in_sync_replicas = members
    if before.in_sync_replicas is not None and (
        members == before.in_sync_replicas or set(members) == set(before.in_sync_replicas)
    ):
        return
    after.isr_history = [*before.isr_history, (at, members)][-MAX_ISR_HISTORY:]
    left = [broker for broker in before.in_sync_replicas or [] if broker not in members]
    if left:
        after.shrinks = [
            *before.shrinks,
            *((at, broker, before.leader, cause_of(broker)) for broker in left),
        ][-MAX_SHRINKS:]


def say_cause(cause: str) -> str:
    """The words for a cause as it was noted: known, suspected or unknown."""
    return f"cause: {cause}" if cause.endswith(RECORDED) else f"suspected cause: {cause}"


def sampled_cause(
    before: PartitionState, event: Observation, broker: int, cluster: ClusterState | None
) -> str:
    """Why a broker may have left, from what is seen outside of the controller."""
    if broker in event.removing or broker not in event.replicas:
        return "reassignment"
    node = cluster.nodes.get(broker) if cluster is not None else None
    seen = cluster.brokers.get(broker) if cluster is not None else None
    sample = next((s for s in event.samples if s.broker == broker), None)
    error = (sample.error if sample else None) or (seen.outcome if seen else OK)
    if error == CONTROLLED_SHUTDOWN or (node is not None and node.in_controlled_shutdown):
        return "controlled shutdown"
    if node is not None and node.fenced:
        return "fencing"
    if error == REFUSED or (before.leader == broker and event.leader != broker):
        return "stopped or fenced"
    if error != OK:
        return "does not answer"
    if sample is not None and _is_caught_up(sample, event):
        # No leader puts out who has all that it has (ReplicaState.isCaughtUp): the controller did.
        return "stopped or fenced"
    return "the leader's own shrink"


def _is_caught_up(sample: Replica, event: Observation) -> bool:
    end = event.leader_log_end_offset_after
    return end is not None and sample.log_end_offset is not None and sample.log_end_offset >= end


def recorded_cause(event: MetadataChange, broker: int, cluster: ClusterState | None) -> str:
    """Why a broker left, as the metadata log says; what it leaves open is filled from what is known of the broker."""
    if event.cause is not None and event.cause in CAUSES:
        return CAUSES[event.cause] + RECORDED
    if broker in event.removing or (event.replicas and broker not in event.replicas):
        return "reassignment"
    node = cluster.nodes.get(broker) if cluster is not None else None
    if node is not None and node.in_controlled_shutdown:
        return "controlled shutdown"
    return "fencing" if node is not None and node.fenced else "the leader's own shrink"
