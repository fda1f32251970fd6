"""What a leader does: it appends, raises the high watermark and completes delayed operations.

Mirrors Partition and ReplicaManager.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidemark.model.log import Record
from tidemark.model.replica_manager.state import (
    PRODUCE_WAIT_MS,
    Broker,
    ClusterModel,
    DelayedFetch,
    DelayedProduce,
    FetchResponse,
    record_names,
)


def append_records_to_leader(cluster: ClusterModel, leader: int, acks: str) -> ClusterModel:
    """Partition.appendRecordsToLeader for one record. Only acks=all requires min ISR."""
    local = cluster.broker(leader)
    if not local.leads:
        return cluster.with_notes(f"rejected: {leader} is not the leader")
    in_sync = len(local.in_sync_replicas)
    if acks == "all" and in_sync < cluster.effective_min_in_sync_replicas:
        return cluster.with_notes(
            f"rejected, NOT_ENOUGH_REPLICAS: {in_sync} in sync, "
            f"min ISR {cluster.min_in_sync_replicas}"
        )
    record = Record(local.leader_epoch, cluster.next_record)
    local = replace(local, log=(*local.log, record))
    end = local.log_end_offset
    if acks == "all":
        waiting = DelayedProduce(record.id, end, cluster.now_ms + PRODUCE_WAIT_MS)
        local = replace(local, produce_purgatory=(*local.produce_purgatory, waiting))
    cluster = replace(cluster.with_broker(local), next_record=cluster.next_record + 1)
    if acks == "1":
        cluster = replace(cluster, acked_with_acks_1=(*cluster.acked_with_acks_1, record))
        cluster = cluster.with_notes(f"acknowledged at once: m{record.id} is in one log")
    elif acks == "0":
        cluster = cluster.with_notes(f"the producer gets no response: m{record.id} is in one log")
    cluster = maybe_increment_leader_hw(cluster, leader)
    if any(each.record == record.id for each in cluster.broker(leader).produce_purgatory):
        cluster = cluster.with_notes(f"the producer of m{record.id} waits for HW {end}")
    return complete_fetches(cluster, leader, lambda waiting: waiting.offset < end)


def maybe_increment_leader_hw(cluster: ClusterModel, leader: int) -> ClusterModel:
    """Partition.maybeIncrementLeaderHW: max(current, min(LEO of all replicas that count)).

    The leader counts, every replica that is or may soon be in sync, and every caught-up replica
    that is about to join. Since 3.7 the high watermark does not move below min ISR.
    """
    local = cluster.broker(leader)
    in_sync = len(local.in_sync_replicas)
    if cluster.protocol.kraft and in_sync < cluster.effective_min_in_sync_replicas:
        return cluster
    ends = [local.log_end_offset]
    for follower, remote in local.remotes.items():
        if follower in local.maximal_in_sync_replicas or _may_join(cluster, local, follower):
            # None: it has not fetched in this epoch, so the high watermark cannot move.
            ends.append(-1 if remote.log_end_offset is None else remote.log_end_offset)
    before, after = local.high_watermark, min(ends)
    if after > before:
        committed = (*cluster.committed, *local.log[len(cluster.committed) : after])
        cluster = replace(
            cluster.with_broker(replace(local, high_watermark=after)), committed=committed
        ).with_notes(f"HW of {leader}: {before}→{after} ({record_names(local.log[before:after])})")
    return complete_produces(cluster, leader)


def _may_join(cluster: ClusterModel, local: Broker, follower: int) -> bool:
    """ReplicaState.isCaughtUp of an alive broker: at the leader's log end, or recently so."""
    remote = local.remotes[follower]
    fenced = cluster.protocol.kraft and follower not in cluster.controller.alive
    if remote.log_end_offset is None or fenced:
        return False
    caught_up = remote.last_caught_up_ms
    return remote.log_end_offset == local.log_end_offset or (
        caught_up is not None and cluster.now_ms - caught_up <= cluster.lag_time_max_ms
    )


def complete_produces(cluster: ClusterModel, leader: int) -> ClusterModel:
    """DelayedProduce.tryComplete. The producer gets an error if the ISR is now below min ISR."""
    local = cluster.broker(leader)
    cluster, records = _remove_produces(
        cluster, leader, lambda waiting: waiting.required_offset <= local.high_watermark
    )
    if not records:
        return cluster
    if len(local.maximal_in_sync_replicas) < cluster.effective_min_in_sync_replicas:
        return cluster.with_notes(f"{record_names(records)}: NOT_ENOUGH_REPLICAS_AFTER_APPEND")
    acked = {*cluster.acked, *(record for record in local.log if record.id in records)}
    return replace(cluster, acked=tuple(sorted(acked))).with_notes(
        f"{record_names(records)} acknowledged"
    )


def expire_produces(cluster: ClusterModel, leader: int) -> ClusterModel:
    """DelayedProduce.onExpiration. The record stays in the log and may still be committed."""
    cluster, records = _remove_produces(
        cluster, leader, lambda waiting: waiting.deadline_ms <= cluster.now_ms
    )
    return cluster.with_notes(f"{record_names(records)}: REQUEST_TIMED_OUT") if records else cluster


def _remove_produces(
    cluster: ClusterModel, leader: int, is_done: Callable[[DelayedProduce], bool]
) -> tuple[ClusterModel, tuple[int, ...]]:
    """Removes requests from the produce purgatory. Returns the ids of their records."""
    local = cluster.broker(leader)
    done = tuple(waiting for waiting in local.produce_purgatory if is_done(waiting))
    rest = tuple(waiting for waiting in local.produce_purgatory if waiting not in done)
    cluster = cluster.with_broker(replace(local, produce_purgatory=rest))
    return cluster, tuple(waiting.record for waiting in done)


def complete_fetches(
    cluster: ClusterModel, leader: int, is_done: Callable[[DelayedFetch], bool]
) -> ClusterModel:
    """DelayedFetch.onComplete: reads again, with the current high watermark."""
    for waiting in cluster.broker(leader).fetch_purgatory:
        if is_done(waiting):
            local = cluster.broker(leader)
            rest = tuple(each for each in local.fetch_purgatory if each != waiting)
            cluster = cluster.with_broker(replace(local, fetch_purgatory=rest))
            response = read(local, waiting.offset)
            cluster = cluster.with_broker(
                replace(cluster.broker(waiting.follower), response=response)
            ).with_notes(
                f"the fetch of {waiting.follower} completes: {describe_response(response)}"
            )
    return cluster


def read(local: Broker, offset: int) -> FetchResponse:
    """The leader's records from `offset` on, and its high watermark."""
    return FetchResponse(local.id, offset, local.log[offset:], local.high_watermark)


def describe_response(response: FetchResponse) -> str:
    if response.diverging is not None:
        epoch, end = response.diverging
        return f"the logs diverge, epoch {epoch} ends at {end}"
    if response.error is not None:
        return response.error
    return f"{record_names(response.records) or 'no record'}, HW {response.high_watermark}"
