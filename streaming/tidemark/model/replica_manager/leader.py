"""What a leader does by itself: appends, moves the high watermark, wakes what waits. Mirrors Partition and ReplicaManager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidemark.model.log import Record
from tidemark.model.replica_manager.state import (
    PRODUCE_WAIT_MS,
    Broker,
    Cluster,
    DelayedFetch,
    DelayedProduce,
    FetchAnswer,
    named,
)


def append_records_to_leader(cluster: Cluster, leader: int, acks: str) -> Cluster:
    """Partition.appendRecordsToLeader for one record. acks=0 and acks=1 are never refused for want of in-sync replicas."""
    believed = cluster.broker(leader)
    if not believed.leads:
        return cluster.noting(f"refused: {leader} does not lead")
    members = believed.in_sync_replicas
    if acks == "all" and len(members) < cluster.effective_min_in_sync_replicas:
        return cluster.noting(
            f"refused, NOT_ENOUGH_REPLICAS: {len(members)} in sync, min ISR {cluster.min_in_sync_replicas}"
        )
    record = Record(believed.leader_epoch, cluster.next_record)
    after = replace(believed, log=(*believed.log, record))
    if acks == "all":
        waiting = DelayedProduce(record.id, after.log_end_offset, cluster.now_ms + PRODUCE_WAIT_MS)
        after = replace(after, produce_purgatory=(*after.produce_purgatory, waiting))
    cluster = replace(cluster.having(after), next_record=cluster.next_record + 1)
    if acks != "all":
        told = "acknowledged at once" if acks == "1" else "the producer does not ask for an answer"
        served = (*cluster.acked_by_one, record) if acks == "1" else cluster.acked_by_one
        cluster = replace(cluster, acked_by_one=served).noting(
            f"{told}: m{record.id} is in one log"
        )
    cluster = maybe_increment_leader_hw(cluster, leader)
    if any(each.record == record.id for each in cluster.broker(leader).produce_purgatory):
        cluster = cluster.noting(
            f"the producer of m{record.id} waits for HW {after.log_end_offset}"
        )
    return complete_fetches(cluster, leader, lambda parked: parked.offset < after.log_end_offset)


def maybe_increment_leader_hw(cluster: Cluster, leader: int) -> Cluster:
    """Partition.maybeIncrementLeaderHW: max(current, min(LEO of the leader and of every remote that counts)).

    Counts who is, or may soon be, in sync, and who is caught up and so about to join. Since 3.7 the high watermark does
    not move at all below min ISR.
    """
    believed = cluster.broker(leader)
    if (
        cluster.protocol.kraft
        and len(believed.in_sync_replicas) < cluster.effective_min_in_sync_replicas
    ):
        return cluster
    ends = [believed.log_end_offset]
    for follower, remote in believed.remotes.items():
        if follower in believed.maximal_in_sync_replicas or _may_join(cluster, believed, follower):
            # None: it has not fetched in this epoch, so nothing is known and nothing may be concluded.
            ends.append(-1 if remote.log_end_offset is None else remote.log_end_offset)
    candidate = min(ends)
    if candidate > believed.high_watermark:
        newly = believed.log[believed.high_watermark : candidate]
        cluster = cluster.having(replace(believed, high_watermark=candidate))
        cluster = replace(
            cluster,
            committed=(*cluster.committed, *believed.log[len(cluster.committed) : candidate]),
        )
        cluster = cluster.noting(
            f"HW of {leader} {believed.high_watermark}→{candidate} ({named(newly)})"
        )
    return complete_produces(cluster, leader)


def _may_join(cluster: Cluster, believed: Broker, follower: int) -> bool:
    """ReplicaState.isCaughtUp of a broker that the controller would let in: at the leader's end, or lately so."""
    remote = believed.remotes[follower]
    if remote.log_end_offset is None or (
        cluster.protocol.kraft and follower not in cluster.controller.alive
    ):
        return False
    if remote.log_end_offset == believed.log_end_offset:
        return True
    return (
        remote.last_caught_up_ms is not None
        and cluster.now_ms - remote.last_caught_up_ms <= cluster.lag_time_max_ms
    )


def complete_produces(cluster: Cluster, leader: int) -> Cluster:
    """DelayedProduce.tryComplete. If the in-sync set fell below min ISR meanwhile the producer is told so, though its record stays."""
    believed = cluster.broker(leader)
    done = tuple(
        waiting
        for waiting in believed.produce_purgatory
        if waiting.required_offset <= believed.high_watermark
    )
    if not done:
        return cluster
    rest = tuple(waiting for waiting in believed.produce_purgatory if waiting not in done)
    cluster = cluster.having(replace(believed, produce_purgatory=rest))
    records = tuple(waiting.record for waiting in done)
    if len(believed.maximal_in_sync_replicas) < cluster.effective_min_in_sync_replicas:
        return cluster.noting(f"{named(records)}: NOT_ENOUGH_REPLICAS_AFTER_APPEND")
    acked = tuple(
        sorted({*cluster.acked, *(record for record in believed.log if record.id in records)})
    )
    return replace(cluster, acked=acked).noting(f"{named(records)} acknowledged")


def expire_produces(cluster: Cluster, leader: int) -> Cluster:
    """DelayedProduce.onExpiration: who waited too long is told so. What it wrote stays, and may be committed yet."""
    believed = cluster.broker(leader)
    late = tuple(
        waiting.record
        for waiting in believed.produce_purgatory
        if waiting.deadline_ms <= cluster.now_ms
    )
    if not late:
        return cluster
    rest = tuple(waiting for waiting in believed.produce_purgatory if waiting.record not in late)
    return cluster.having(replace(believed, produce_purgatory=rest)).noting(
        f"{named(late)}: REQUEST_TIMED_OUT"
    )


def complete_fetches(
    cluster: Cluster, leader: int, is_done: Callable[[DelayedFetch], bool]
) -> Cluster:
    """DelayedFetch.onComplete: what waits is read again, with the high watermark of now."""
    for parked in cluster.broker(leader).fetch_purgatory:
        if is_done(parked):
            believed = cluster.broker(leader)
            rest = tuple(each for each in believed.fetch_purgatory if each != parked)
            cluster = cluster.having(replace(believed, fetch_purgatory=rest))
            answer = read(believed, parked.offset)
            cluster = cluster.having(replace(cluster.broker(parked.follower), answer=answer))
            cluster = cluster.noting(
                f"the waiting fetch of {parked.follower} is answered: {spoken(answer)}"
            )
    return cluster


def read(believed: Broker, offset: int) -> FetchAnswer:
    """What the leader's log has from `offset` on, and its high watermark."""
    return FetchAnswer(believed.id, offset, believed.log[offset:], believed.high_watermark)


def spoken(answer: FetchAnswer) -> str:
    """An answer in words."""
    return f"{named(answer.records) or 'no record'}, HW {answer.high_watermark}"
