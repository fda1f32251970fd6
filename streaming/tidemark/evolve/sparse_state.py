"""The rare parts of a partition's state, kept up to date by each observation.

Most observations need none of them; `take_rare` finds that out first.
"""

from __future__ import annotations

from itertools import pairwise

from tidemark.core.events import Observation
from tidemark.core.leader_epochs import NO_EPOCH, LineageEntries, is_ordered
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import (
    MAX_ANOMALIES,
    SUSPICION_SECONDS,
    Adding,
    Anomaly,
    Rare,
    Regression,
    Suspicion,
    rare_of,
)
from tidemark.evolve.divergences import find_divergences


def take_rare(after: PartitionState, before: PartitionState, event: Observation) -> None:
    """Sets `after.rare`: None while there is nothing to remember."""
    if after.rare is None and not _needs_rare(after, before, event):
        return
    rare = rare_of(after.rare)
    rare.bumps = rare.fresh_bumps(event.observed_at)
    rare.adding = _adding(after, rare, event.observed_at)
    rare.last_stable = _last_stable(after, rare, event.observed_at)
    rare.regression = _regression(after, rare, event)
    rare.anomalies = _anomalies(after, rare, event)
    rare.short = _short(after, before)
    rare.suspicion = _suspicion(after, before, rare, event.observed_at)
    rare.divergences = find_divergences(after, before, event, rare.divergences)
    after.rare = None if rare.is_empty else rare


def _needs_rare(after: PartitionState, before: PartitionState, event: Observation) -> bool:
    if after.adding or before.loss_read is not None:
        return True
    if event.lineage and (
        len(event.lineage) > 1
        or (event.leader_epoch is not None and event.lineage[-1][0] > event.leader_epoch)
    ):
        return True
    committed = before.high_watermark
    if any(sample.lineage is not None for sample in event.samples):
        return True
    for replica in after.replicas:
        if (
            replica.last_stable_offset is not None
            and after.high_watermark is not None
            and replica.last_stable_offset < after.high_watermark
        ):
            return True
        if (
            committed is not None
            and replica.log_end_offset is not None
            and replica.log_end_offset < committed
        ):
            return True
    return (
        event.committed is not None
        and after.high_watermark is not None
        and event.committed < after.high_watermark
    )


def _adding(after: PartitionState, rare: Rare, now: float) -> list[Adding]:
    """Progress of the replicas that a reassignment adds; silence is no progress."""
    known = {item.broker: item for item in rare.adding}
    result = []
    for broker in after.adding:
        replica, old = after.replica(broker), known.get(broker)
        log_end = replica.log_end_offset if replica is not None and replica.error is None else None
        # A copy that begins anew, lower, moves too.
        if old is None or (log_end is not None and log_end != old.log_end_offset):
            result.append(Adding(broker, log_end, now))
        else:
            result.append(old)
    return result


def _last_stable(after: PartitionState, rare: Rare, now: float) -> tuple[int, float] | None:
    """Where the leader's last stable offset stands below the high watermark; a leader that is not seen changes nothing."""
    leader = after.replica(after.leader)
    if (
        leader is None
        or leader.error is not None
        or leader.last_stable_offset is None
        or after.high_watermark is None
    ):
        return rare.last_stable
    offset = leader.last_stable_offset
    if offset >= after.high_watermark:
        return None
    if rare.last_stable is not None and rare.last_stable[0] == offset:
        return rare.last_stable
    return offset, now


def _regression(after: PartitionState, rare: Rare, event: Observation) -> Regression | None:
    """A fenced high watermark below one of the same leader and epoch: UnifiedLog never lowers it within a leadership."""
    if (
        event.leader_epoch != after.leader_epoch
        or event.leader != after.leader
        or event.committed is None
    ):
        return rare.regression
    # The first reading of a leadership is its highest.
    if after.high_watermark is None or event.committed >= after.high_watermark:
        return None
    since = rare.regression.since if rare.regression is not None else event.observed_at
    return Regression(event.committed, after.high_watermark, since)


def _anomalies(after: PartitionState, rare: Rare, event: Observation) -> list[Anomaly]:
    """What the lineages read in this pass show that no log can hold; a broker whose lineage was not read keeps its own."""
    read: list[tuple[int, LineageEntries]] = [
        (s.broker, s.lineage) for s in event.samples if s.lineage is not None
    ]
    if event.lineage is not None and event.leader is not None:
        read.append((event.leader, event.lineage))
    # The newest entry alone, as each pass reads it of a leader, refutes only what was said of the newest entry.
    whole = {broker for broker, lineage in read if len(lineage) > 1}
    single = {broker for broker, _ in read} - whole
    there = [item for item in rare.anomalies if item.broker in after.assigned]
    kept = [
        item
        for item in there
        if item.broker not in whole and not (item.broker in single and item.of_newest)
    ]
    since = {(item.broker, item.what): item.since for item in rare.anomalies}
    for broker, lineage in read:
        found = _anomaly(
            lineage, after, after.replica(broker), is_leader=broker == event.leader == after.leader
        )
        if found is not None:
            what, of_newest = found
            kept.append(
                Anomaly(
                    broker,
                    what,
                    since.get((broker, what), event.observed_at),
                    event.observed_at,
                    of_newest,
                )
            )
    return kept[:MAX_ANOMALIES]


def _anomaly(
    lineage: LineageEntries, after: PartitionState, replica: ReplicaState | None, *, is_leader: bool
) -> tuple[str, bool] | None:
    """(what cannot be, whether its newest entry alone shows it)"""
    if not is_ordered(lineage):
        a, b = next((a, b) for a, b in pairwise(lineage) if not (a[0] < b[0] and a[1] <= b[1]))
        return f"epoch {b[0]} ends at {b[1]} after epoch {a[0]} ended at {a[1]}", False
    if (
        is_leader
        and after.leader_epoch is not None
        and lineage
        and lineage[-1][0] > after.leader_epoch
    ):
        return f"epoch {lineage[-1][0]} is above the leader epoch {after.leader_epoch}", True
    known = replica.leader_epoch if replica is not None and replica.error is None else None
    if known is not None and lineage and lineage[-1][0] > known:
        return (
            f"epoch {lineage[-1][0]} is above the leader epoch {known} that the broker knows",
            True,
        )
    return None


def _suspicion(
    after: PartitionState, before: PartitionState, rare: Rare, now: float
) -> Suspicion | None:
    """A first read of a loss that no second one confirmed, where brokers know no epochs: records may have come since.

    With epochs a read that shows the records there refutes the first; without, the offsets may hold others by now.
    """
    read, known = before.loss_read, rare.suspicion
    if before.topic_id != after.topic_id:
        return None
    if after.loss_read is not None and after.loss_read.confirmed:
        return None
    if read is None or read.confirmed or read.epoch_after != NO_EPOCH or after.leader is None:
        return known if known is not None and now - known.at < SUSPICION_SECONDS else None
    start = (
        min(read.start, known.start) if known is not None and known.end == read.end else read.start
    )
    return Suspicion(start, read.end, after.leader, now if known is None else known.at)


def _short(after: PartitionState, before: PartitionState) -> list[tuple[int, int, int]]:
    """In-sync replicas that answered and end below what was committed before they were asked (LeaderCandidateCompleteness)."""
    committed = max((entry.surviving for entry in before.committed), default=None)
    if committed is None or before.topic_id != after.topic_id:
        return []
    members = after.in_sync_replicas or []
    return [
        (replica.broker, replica.log_end_offset, committed)
        for replica in after.replicas
        if replica.broker in members
        and replica.error is None
        and replica.log_end_offset is not None
        and replica.log_end_offset < committed
    ]
