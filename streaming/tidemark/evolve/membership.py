"""Leader, assignment and in-sync set over time: which broker left, under which leader and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from tidemark.assess.blame import blame
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
from tidemark.core.sparse_state import copy_of

# `MetadataChange.cause` of a shrink; the other values explain none.
_RECORDED: Final = {
    "fenced": ShrinkCause.FENCING,
    "controlled_shutdown": ShrinkCause.CONTROLLED_SHUTDOWN,
    "leader": ShrinkCause.LEADER_SHRINK,
    "reassignment": ShrinkCause.REASSIGNMENT,
}
# So long a record of the metadata log counts more than a broker's image of the same leader epoch.
RECORD_SECONDS: Final = 60.0
# A broker's image shows a record this much before or after the collector reads it, by two clocks.
SAME_SHRINK_SECONDS: Final = 5.0


def apply_metadata(
    after: PartitionState,
    before: PartitionState,
    event: Observation,
    cluster: ClusterState | None,
) -> None:
    """What brokers show of the partition, which may be old."""
    _apply_image(after, before, event, cluster)
    _note_image(after, before, event)


def _apply_image(
    after: PartitionState,
    before: PartitionState,
    event: Observation,
    cluster: ClusterState | None,
) -> None:
    after.leader, after.leader_epoch = event.leader, event.leader_epoch
    after.leaderless = event.leaderless or _has_no_leader(event)
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
    apply_assignment(after, event)
    _apply_eligible(after, before, event)
    members, at = event.in_sync_replicas, event.observed_at
    if members is not None:
        apply_in_sync(
            after, before, members, at, lambda b: sampled_cause(before, event, b, cluster)
        )


def _note_image(after: PartitionState, before: PartitionState, event: Observation) -> None:
    """Notes the brokers whose image has reached the state, where the metadata log is read."""
    record, shown = before.metadata_position, (event.leader_epoch, event.in_sync_replicas)
    if record is None or shown != (after.leader_epoch, after.in_sync_replicas):
        return
    is_same = shown == (before.leader_epoch, before.in_sync_replicas)
    known = {*record.image_from} if is_same else set[int]()
    if not known.issuperset(event.metadata_from):
        after.sparse = copy_of(after.sparse)
        brokers = sorted(known.union(event.metadata_from))
        after.sparse.metadata = replace(record, image_from=brokers)


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
    old image for long, so a record that is not old itself counts more. An image that had reached
    the record, and shows something else now, is newer.
    """
    record = before.metadata_position
    if record is None or event.leader_epoch != before.leader_epoch:
        return False
    if not {*record.image_from}.isdisjoint(event.metadata_from):
        return False
    return event.metadata_read_at <= record.at + RECORD_SECONDS


def _has_no_leader(event: Observation) -> bool:
    """Whether one broker names no leader, where metadata has no epochs, and no replica can lead.

    The brokers of all replicas refuse connections, so no other broker is needed to prove it.
    """
    return (
        event.leader is None
        and event.leader_epoch is None
        and bool(event.metadata_from)
        and {s.broker for s in event.samples if s.error == REFUSED} >= set(event.replicas) > set()
    )


def apply_assignment(after: PartitionState, event: Observation | MetadataChange) -> None:
    """The assigned replicas, and those that a reassignment adds and removes."""
    if event.replicas:
        minimum, known = after.effective_min_in_sync_replicas, after.assigned
        after.assigned = event.replicas
        # Before Kafka 3.7 the replicas do not bound it (KAFKA-15583).
        if minimum is not None and minimum <= len(known):
            after.effective_min_in_sync_replicas = min(minimum, len(after.assigned))
    after.adding, after.removing = event.adding, event.removing


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


def sampled_cause(
    before: PartitionState, event: Observation, broker: int, cluster: ClusterState | None
) -> ShrinkExplanation:
    """Why a broker left, as far as it shows outside of the controller: always a suspicion."""
    cause, at = _suspected(before, event, broker, cluster), event.observed_at
    # The other followers that were in sync, and whether they left with it.
    others = set(before.in_sync_replicas or []) - {broker, before.leader}
    beside = {other: other not in (event.in_sync_replicas or []) for other in others}
    return ShrinkExplanation(
        cause, suspect=_suspect(cause, before.leader, broker, cluster, at, beside)
    )


def _suspect(
    cause: ShrinkCause,
    leader: int | None,
    broker: int,
    cluster: ClusterState | None,
    at: float,
    beside: dict[int, bool] | None = None,
) -> int | None:
    """The broker that made this one late, as the newest pass or this partition shows it.

    A leader that hangs removes followers when it goes on.
    """
    links = {} if cluster is None else cluster.links
    if cause not in (ShrinkCause.LEADER_SHRINK, ShrinkCause.STOPPED_OR_FENCED):
        return None
    if cause is not ShrinkCause.LEADER_SHRINK:
        beside = None
    elif cluster is not None and leader is not None and cluster.is_absent(leader, at):
        return leader
    found = blame(links, leader, broker, beside)
    return None if found is None else found.broker


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
        suspect = _suspect(recorded, event.leader, broker, cluster, event.observed_at)
        return ShrinkExplanation(recorded, recorded=True, suspect=suspect)
    if broker in event.removing or (event.replicas and broker not in event.replicas):
        return ShrinkExplanation(ShrinkCause.REASSIGNMENT)
    node = cluster.nodes.get(broker) if cluster is not None else None
    if node is not None and node.in_controlled_shutdown:
        return ShrinkExplanation(ShrinkCause.CONTROLLED_SHUTDOWN)
    if node is not None and node.fenced:
        return ShrinkExplanation(ShrinkCause.FENCING)
    if event.cause == "unknown":
        return ShrinkExplanation(ShrinkCause.UNKNOWN)
    cause = ShrinkCause.LEADER_SHRINK
    suspect = _suspect(cause, event.leader, broker, cluster, event.observed_at)
    return ShrinkExplanation(cause, suspect=suspect)


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
