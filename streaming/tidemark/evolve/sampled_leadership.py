"""Leaderships and elections where metadata has no leader epochs (Kafka before 2.1).

A leadership counts once its leader answers as such: an old image may name any former leader. The
newest one is kept, with the in-sync set that was shown since, and judged against the next leader.
An election between two samples may have been clean, so the verdict is a suspicion at most.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tidemark.core.events import REFUSED, TIMED_OUT, UNREACHABLE, OpenTransaction
from tidemark.core.leader_epochs import NO_EPOCH, LineageEntries, committed_under
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import (
    MAX_EPOCH_STARTS,
    EpochStart,
    LeftInSync,
    SampledLeadership,
    copy_of,
)

# A broker that led this shortly before was not dead for the controller: its session with ZooKeeper
# lasts longer (zookeeper.session.timeout.ms, 6 s). It handed over in order.
HANDOVER_SECONDS: Final = 3.0
# A new leader's lineage is read within a few passes.
UNDECIDED_SECONDS: Final = 10.0
# What a connection gives in place of an answer; other errors are answers of the broker.
_SILENT: Final = frozenset((REFUSED, TIMED_OUT, UNREACHABLE))


class Shown(NamedTuple):
    """Of one observation alone; a state also remembers earlier ones."""

    # The leader that the metadata names, and the brokers that gave this metadata.
    leader: int | None
    metadata_from: list[int]
    in_sync_replicas: list[int] | None
    # A high watermark that the leader of the state reported under the fence of its epoch.
    committed: int | None
    # Lineages that were read in this pass, also impossible ones: of replicas, and of the leader.
    lineages: dict[int, LineageEntries]
    leader_lineage: LineageEntries | None
    compacted: bool | None
    open_transaction: OpenTransaction | None


def is_led_anew(before: PartitionState, after: PartitionState) -> bool:
    """Whether another broker than the last leader answers as such."""
    old, new = before.sampled_leadership, after.sampled_leadership
    return old is not None and new is not None and old.leader != new.leader


def note_leadership(after: PartitionState, before: PartitionState, shown: Shown) -> None:
    """Notes the leadership of an observation, or the in-sync set while no leader answers."""
    known = before.sampled_leadership
    newest = None if after.leader_epoch is not None else _newest(after, known, shown)
    if newest != known:
        after.sparse = copy_of(after.sparse)
        after.sparse.leadership = newest
    if is_led_anew(before, after):
        assert after.sparse is not None
        starts = [*after.sparse.epoch_starts, EpochStart(after.observed_at, NO_EPOCH)]
        after.sparse.epoch_starts = starts[-MAX_EPOCH_STARTS:]


def _newest(
    after: PartitionState, known: SampledLeadership | None, shown: Shown
) -> SampledLeadership | None:
    members = shown.in_sync_replicas
    is_known = known is not None and known.leader == after.leader
    answers = answers_as_leader(after) and (is_known or is_confirmed(after, shown))
    if after.leader is None or not answers:
        if known is None or not members or after.leader not in (None, known.leader):
            return known
        return SampledLeadership(
            known.leader,
            known.began_at,
            known.served_at,
            members,
            known.assigned,
            known.answering,
            known.committed,
            _left(known, members),
            known.former_leader,
            known.former_served_at,
        )
    if not members:
        members = known.in_sync_replicas if known and known.leader == after.leader else []
    entry = committed_under(after.committed, NO_EPOCH)
    began_at, former, former_at = after.observed_at, None, None
    if known is not None:
        former, former_at = known.leader, known.served_at
    if known is not None and known.leader == after.leader:
        began_at, former, former_at = known.began_at, known.former_leader, known.former_served_at
    return SampledLeadership(
        after.leader,
        began_at,
        after.observed_at,
        members,
        after.assigned,
        [replica.broker for replica in after.replicas if is_up(replica)],
        0 if entry is None else entry.high_watermark,
        [] if known is None else _left(known, members),
        former,
        former_at,
    )


def _left(known: SampledLeadership, members: list[int]) -> list[LeftInSync]:
    """Brokers outside of the in-sync set, and what was committed when they were last in it."""
    left = [item for item in known.left if item.broker not in members]
    gone = [broker for broker in known.in_sync_replicas if broker not in members]
    return [*left, *(LeftInSync(broker, known.committed) for broker in gone)]


def answers_as_leader(state: PartitionState) -> bool:
    """Whether the broker that metadata names leader says so itself, in the newest observation."""
    leader = state.replica(state.leader)
    return (
        leader is not None
        and leader.error is None
        and leader.leads is True
        and leader.sampled_at == state.observed_at
    )


def is_up(replica: ReplicaState) -> bool:
    """Whether the broker answered, be it with an error."""
    return replica.error not in _SILENT


def is_confirmed(after: PartitionState, shown: Shown) -> bool:
    """Whether the leader of an observation without epochs is no deposed one.

    A deposed leader names itself, with the in-sync set of its time; so do brokers with old images.
    Another broker names the leader too; or none is left to ask, and the controller took all others
    out of the set. A broker that led before it or acts as leader beside it must be among those.
    """
    if not shown.metadata_from:
        # Only a bootstrap server, which may be any broker.
        return True
    others = [replica for replica in after.replicas if replica.broker != after.leader]
    former = _former_leader(after)
    must_agree = {
        replica.broker
        for replica in others
        if (replica.leads and replica.error is None)
        or (replica.broker == former and is_up(replica))
    }
    if not must_agree <= set(shown.metadata_from):
        return False
    if any(broker != after.leader for broker in shown.metadata_from):
        return True
    return after.in_sync_replicas == [after.leader] and not any(map(is_up, others))


def _former_leader(state: PartitionState) -> int | None:
    known = state.sampled_leadership
    if known is None:
        return None
    return known.former_leader if known.leader == state.leader else known.leader


def is_outside_election(before: PartitionState, after: PartitionState) -> bool:
    """Whether a broker leads now that was outside of the in-sync set of the leadership before.

    The controller leaves the elected replica alone in the set. A replica that was not assigned
    came with a reassignment, or with a new topic of this name.
    """
    known, leader = before.sampled_leadership, after.leader
    if known is None or leader is None or leader == known.leader:
        return False
    if (before.collector, before.collector_epoch) != (after.collector, after.collector_epoch):
        # Nobody watched while one collector took over from the other.
        return False
    if not is_led_anew(before, after) or after.in_sync_replicas != [leader]:
        return False
    if leader in known.in_sync_replicas or not known.in_sync_replicas:
        return False
    if set(known.assigned) != set(after.assigned):
        return False
    if any(replica.leads for replica in after.replicas if replica.broker != leader):
        return False
    in_order = after.observed_at - known.served_at <= HANDOVER_SECONDS
    return not (in_order and leader in known.answering)


def before_election(before: PartitionState) -> PartitionState:
    """What an election without epochs is judged by, in place of the state before it."""
    known = before.sampled_leadership
    if before.leader_epoch is not None or known is None:
        return before
    return PartitionState(
        leader=known.leader,
        in_sync_replicas=known.in_sync_replicas,
        observed_at=known.served_at,
    )


def missing_of(before: PartitionState, leader: int) -> tuple[int, int] | None:
    """[start, end): committed while the broker was outside of the in-sync set; None: unknown."""
    known = before.sampled_leadership
    if known is None:
        return None
    start = next((item.high_watermark for item in known.left if item.broker == leader), None)
    entry = committed_under(before.committed, NO_EPOCH)
    end = 0 if entry is None else entry.surviving
    return None if start is None or start >= end else (start, end)
