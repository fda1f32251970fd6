"""What a leader does: it appends and raises the high watermark.

Mirrors Partition and ReplicaManager.
"""

from __future__ import annotations

from dataclasses import replace

from tidemark_lab.model import epoch_cache
from tidemark_lab.model.log import Record
from tidemark_lab.model.replica_manager.delayed import REQUEST_TIMEOUT_MS, DelayedProduce
from tidemark_lab.model.replica_manager.purgatory import (
    complete_fetches,
    complete_produces,
    try_complete_delayed_requests,
)
from tidemark_lab.model.replica_manager.state import (
    Broker,
    ClusterModel,
    Fact,
    TransactionalRecord,
    record_names,
)


def append_records_to_leader(
    cluster: ClusterModel, leader: int, acks: str, count: int = 1, *, elsewhere: bool = False
) -> ClusterModel:
    """Partition.appendRecordsToLeader for one request. Only acks=all requires min ISR.

    `elsewhere`: the request also has records for a partition that the model does not have.
    """
    local = cluster.broker(leader)
    if not local.leads:
        return cluster.with_notes(f"rejected: {leader} is not the leader")
    in_sync = len(local.in_sync_replicas)
    if acks == "all" and in_sync < cluster.effective_min_in_sync_replicas:
        return cluster.with_notes(
            f"rejected, NOT_ENOUGH_REPLICAS: {in_sync} in sync, "
            f"min ISR {cluster.min_in_sync_replicas}"
        ).with_facts(Fact.WRITE_REFUSED)
    ids = range(cluster.next_record, cluster.next_record + count)
    records = tuple(Record(local.leader_epoch, each) for each in ids)
    names = record_names(records)
    cache = local.epoch_cache
    if cluster.protocol.leader_epochs:
        cache = epoch_cache.assign(cache, local.leader_epoch, local.log_end_offset)
    local = replace(local, log=(*local.log, *records), epoch_cache=cache)
    end = local.log_end_offset
    waiting = DelayedProduce(tuple(ids), end, cluster.now_ms + REQUEST_TIMEOUT_MS, elsewhere)
    if acks == "all":
        local = replace(local, produce_purgatory=(*local.produce_purgatory, waiting))
    cluster = replace(cluster.with_broker(local), next_record=cluster.next_record + count)
    are = "is" if count == 1 else "are"
    if acks == "1":
        cluster = replace(cluster, acked_with_acks_1=(*cluster.acked_with_acks_1, *records))
        cluster = cluster.with_notes(f"acknowledged at once: {names} {are} in one log")
    elif acks == "0":
        cluster = cluster.with_notes(f"the producer gets no response: {names} {are} in one log")
    cluster = maybe_increment_leader_hw(cluster, leader)
    if waiting in cluster.broker(leader).produce_purgatory:
        other = " and for another partition" * elsewhere
        cluster = cluster.with_notes(f"the producer of {names} waits for HW {end}{other}")
    return complete_fetches(cluster, leader)


def append_transactional(
    cluster: ClusterModel, leader: int, producer: str, kind: str
) -> ClusterModel:
    """A record of a transaction, or the marker that its coordinator writes to end it."""
    if not cluster.broker(leader).leads:
        return cluster.with_notes(f"rejected: {leader} is not the leader")
    record = TransactionalRecord(cluster.next_record, producer, kind)
    cluster = replace(cluster, transactional=(*cluster.transactional, record))
    return append_records_to_leader(cluster, leader, "all")


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
        return try_complete_delayed_requests(cluster, leader)
    return complete_produces(cluster, leader)


def _may_join(cluster: ClusterModel, local: Broker, follower: int) -> bool:
    """ReplicaState.isCaughtUp of an alive broker: at the leader's log end, or recently so.

    Until 0.8.2 the in-sync set alone counted.
    """
    remote = local.remotes[follower]
    fenced = cluster.protocol.kraft and follower not in cluster.controller.alive
    if remote.log_end_offset is None or fenced or cluster.lag_max_messages is not None:
        return False
    caught_up = remote.last_caught_up_ms
    return remote.log_end_offset == local.log_end_offset or (
        caught_up is not None and cluster.now_ms - caught_up <= cluster.lag_time_max_ms
    )
