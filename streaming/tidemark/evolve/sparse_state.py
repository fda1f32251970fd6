"""The sparse parts of a partition's state after an observation."""

from __future__ import annotations

from itertools import pairwise

from tidemark.assess.reassignment_progress import (
    MAX_SAMPLES,
    SAMPLE_SECONDS,
    remaining_records,
)
from tidemark.core.events import OpenTransaction
from tidemark.core.leader_epochs import NO_EPOCH, LineageEntries, is_ordered
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import (
    EMPTY,
    EPOCH_START_SECONDS,
    MAX_ANOMALIES,
    SUSPICION_SECONDS,
    Adding,
    Anomaly,
    BehindCommitted,
    EpochStart,
    LastStable,
    Regression,
    SparseState,
    Suspicion,
    copy_of,
)
from tidemark.evolve.divergences import find_divergences
from tidemark.evolve.elections import is_open, judge_election
from tidemark.evolve.recreation import recent_former_topic
from tidemark.evolve.sampled_leadership import Shown, missing_of


def apply_sparse(after: PartitionState, before: PartitionState, shown: Shown) -> None:
    """Sets `after.sparse`; None when nothing of it is left."""
    sparse, now = copy_of(after.sparse), after.observed_at
    sparse.mixed_since, sparse.former_topic = None, recent_former_topic(after)
    sparse.epoch_starts = recent_epoch_starts(sparse, now)
    sparse.adding = _adding(after, sparse, now)
    sparse.last_stable = _last_stable(after, sparse, shown.open_transaction, now)
    sparse.regression = _regression(after, sparse, shown.committed)
    sparse.anomalies = _anomalies(after, sparse, shown)
    sparse.behind_committed = _behind_committed(after, before)
    sparse.suspicion = _suspicion(after, before, sparse, now)
    sparse.divergences = find_divergences(after, before, shown, sparse.divergences)
    after.sparse = None if sparse == EMPTY else sparse


def recent_epoch_starts(sparse: SparseState, now: float) -> list[EpochStart]:
    """The epoch starts that are not too old; the same list object if none is."""
    starts = sparse.epoch_starts
    if not starts or starts[0].at > now - EPOCH_START_SECONDS:
        return starts
    return [start for start in starts if start.at > now - EPOCH_START_SECONDS]


def _adding(after: PartitionState, sparse: SparseState, now: float) -> list[Adding]:
    """Progress of the replicas that a reassignment adds; silence is no progress."""
    known = {item.broker: item for item in sparse.adding}
    result = []
    for broker in after.adding:
        replica, old = after.replica(broker), known.get(broker)
        answers = replica is not None and replica.error is None
        log_end = replica.log_end_offset if replica is not None and answers else None
        left = _remaining(after, log_end, old.remaining if old is not None else [], now)
        # A copy that starts over moves too, although its log end offset falls.
        if old is None or (log_end is not None and log_end != old.log_end_offset):
            result.append(Adding(broker, log_end, now, left))
        elif left is old.remaining:
            result.append(old)
        else:
            result.append(Adding(broker, old.log_end_offset, old.advanced_at, left))
    return result


def _remaining(
    after: PartitionState, log_end: int | None, known: list[tuple[float, int]], now: float
) -> list[tuple[float, int]]:
    """The samples with a new one; the same list when it is too early, or the sample is unknown."""
    if log_end is None or (known and 0.0 <= now - known[-1][0] < SAMPLE_SECONDS):
        return known
    leader = after.replica(after.leader)
    log_start = None if leader is None else leader.log_start_offset
    left = remaining_records(after.leader_end_before, log_start, log_end)
    if left is None:
        return known
    return [*(sample for sample in known if sample[0] < now), (now, left)][-MAX_SAMPLES:]


def _last_stable(
    after: PartitionState, sparse: SparseState, found: OpenTransaction | None, now: float
) -> LastStable | None:
    """The leader's last stable offset below its high watermark.

    A leader without an answer changes nothing.
    """
    leader, high_watermark = after.replica(after.leader), after.high_watermark
    if leader is None or leader.error is not None or high_watermark is None:
        return sparse.last_stable
    offset = leader.last_stable_offset
    if offset is None:
        return sparse.last_stable
    if offset >= high_watermark:
        return None
    known = sparse.last_stable
    if known is None or known.offset != offset:
        known = LastStable(offset, now)
    if found is None or found.start_offset > offset or found == known.transaction:
        return known
    return LastStable(offset, known.since, found)


def _regression(after: PartitionState, sparse: SparseState, shown: int | None) -> Regression | None:
    """A fenced high watermark below an earlier one of the same leader and epoch.

    Kafka never lowers it within a leadership (UnifiedLog.maybeIncrementHighWatermark).
    """
    if shown is None:
        return sparse.regression
    # The first reading of a leadership is its highest.
    if after.high_watermark is None or shown >= after.high_watermark:
        return None
    since = after.observed_at if sparse.regression is None else sparse.regression.since
    return Regression(shown, after.high_watermark, since)


def _anomalies(after: PartitionState, sparse: SparseState, shown: Shown) -> list[Anomaly]:
    """Impossible lineages. A broker whose lineage was not read in this pass keeps its anomaly."""
    read = [*shown.lineages.items()]
    if shown.leader_lineage is not None and shown.leader is not None:
        read.append((shown.leader, shown.leader_lineage))
    if not read and not sparse.anomalies:
        return sparse.anomalies
    # Each pass reads the newest entry of a leader. It refutes only what the newest entry shows.
    whole = {broker for broker, lineage in read if len(lineage) > 1}
    single = {broker for broker, _ in read} - whole
    kept = [
        item
        for item in sparse.anomalies
        if item.broker in after.assigned
        and item.broker not in whole
        and not (item.broker in single and item.of_newest)
    ]
    since = {(item.broker, item.what): item.since for item in sparse.anomalies}
    now = after.observed_at
    for broker, lineage in read:
        is_leader = broker == shown.leader == after.leader
        found = _anomaly(lineage, after, after.replica(broker), is_leader=is_leader)
        if found is not None:
            what, of_newest = found
            kept.append(Anomaly(broker, what, since.get((broker, what), now), now, of_newest))
    return kept[:MAX_ANOMALIES]


def _anomaly(
    lineage: LineageEntries,
    after: PartitionState,
    replica: ReplicaState | None,
    *,
    is_leader: bool,
) -> tuple[str, bool] | None:
    """(what is impossible, whether the newest entry alone shows it)"""
    if not is_ordered(lineage):
        a, b = next((a, b) for a, b in pairwise(lineage) if not (a[0] < b[0] and a[1] <= b[1]))
        return f"epoch {b[0]} ends at {b[1]} after epoch {a[0]} ended at {a[1]}", False
    newest = lineage[-1][0] if lineage else None
    if newest is None:
        return None
    if is_leader and after.leader_epoch is not None and newest > after.leader_epoch:
        return f"epoch {newest} is above the leader epoch {after.leader_epoch}", True
    known = replica.leader_epoch if replica is not None and replica.error is None else None
    if known is not None and newest > known:
        return f"epoch {newest} is above the leader epoch {known} that the broker knows", True
    return None


def _suspicion(
    after: PartitionState, before: PartitionState, sparse: SparseState, now: float
) -> Suspicion | None:
    """A first read of a loss that no second read confirmed, where brokers know no epochs; or what
    a leader from outside of the in-sync set may lack.

    With epochs, a later read that shows the records refutes the first. Without epochs, other
    records may be at these offsets by then.
    """
    read, known = before.loss_candidate, sparse.suspicion
    if before.topic_id != after.topic_id:
        return None
    if after.loss_candidate is not None and after.loss_candidate.confirmed:
        return None
    outside = _committed_outside(after, before)
    if outside is not None:
        return Suspicion(*outside, now, outside=True)
    if read is None or read.confirmed or read.epoch_after != NO_EPOCH or after.leader is None:
        return known if known is not None and now - known.at < SUSPICION_SECONDS else None
    start = read.start
    if known is not None and known.end == read.end:
        start = min(start, known.start)
    return Suspicion(start, read.end, after.leader, now if known is None else known.at)


def _committed_outside(
    after: PartitionState, before: PartitionState
) -> tuple[int, int, int] | None:
    """(start, end, leader): committed while it was outside of the in-sync set, at its election."""
    election = judge_election(before, after)
    if election is None or election.epoch_after is not None or is_open(before, after, election):
        return None
    missing = missing_of(before, election.leader)
    return None if missing is None else (*missing, election.leader)


def _behind_committed(after: PartitionState, before: PartitionState) -> list[BehindCommitted]:
    """In-sync replicas whose log ends below what was committed before they were sampled.

    See the invariant LeaderCandidateCompleteness.
    """
    committed = max((entry.surviving for entry in before.committed), default=None)
    if committed is None or before.topic_id != after.topic_id:
        return []
    members = after.in_sync_replicas or []
    return [
        BehindCommitted(replica.broker, replica.log_end_offset, committed)
        for replica in after.replicas
        if replica.broker in members
        and replica.error is None
        and replica.log_end_offset is not None
        and replica.log_end_offset < committed
    ]
