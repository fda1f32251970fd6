"""What a follower does: learns whom to follow, cuts its log, fetches, appends. Mirrors AbstractFetcherThread and ReplicaManager."""

from __future__ import annotations

from dataclasses import replace

from tidemark.model import kraft
from tidemark.model.replica_manager import epoch_cache
from tidemark.model.replica_manager.in_sync import maybe_expand_isr
from tidemark.model.replica_manager.leader import maybe_increment_leader_hw, read, spoken
from tidemark.model.replica_manager.state import (
    FETCH_WAIT_MS,
    Broker,
    Cluster,
    DelayedFetch,
    FetchAnswer,
    Remote,
    named,
)


def truncate_to(cluster: Cluster, broker: int, end: int) -> Cluster:
    """UnifiedLog.truncateTo: the log, its epochs and its high watermark end no later than `end`."""
    before = cluster.broker(broker)
    cut = before.log[end:]
    after = replace(
        before,
        log=before.log[:end],
        epoch_cache=epoch_cache.truncate_from_end(before.epoch_cache, end),
        high_watermark=min(before.high_watermark, end),
        disk=replace(before.disk, flushed=min(before.disk.flushed, end)),
    )
    cluster = cluster.having(after)
    if not cut:
        return cluster.noting(f"{broker} has nothing to cut")
    below = " BELOW ITS HIGH WATERMARK" if end < before.high_watermark else ""
    return cluster.noting(f"{broker} cuts its log to {end}{below}: {named(cut)} gone from it")


def end_offset_for_leader_epoch(cluster: Cluster, follower: int) -> Cluster:
    """0.11 to 2.6: a new follower asks its leader where to cut (OffsetForLeaderEpoch), and fetches only after the answer."""
    asking = cluster.broker(follower)
    if not asking.truncating or asking.leader is None:
        return cluster.noting(f"{follower} has nothing to ask")
    believed = cluster.broker(asking.leader)
    if not believed.running:
        return cluster.noting(
            f"{asking.leader} does not answer: {follower} keeps its log as it is and asks again"
        )
    if cluster.protocol.fenced and (
        not believed.leads or believed.leader_epoch != asking.leader_epoch
    ):
        return cluster.noting("refused: the epochs of leader and follower differ")
    cluster = cluster.having(replace(asking, truncating=False))
    end = cluster.protocol.truncation(believed.log, asking.log, asking.high_watermark)
    return truncate_to(cluster, follower, end)


def fetch_messages(cluster: Cluster, follower: int) -> Cluster:
    """A follower's fetch reaches its leader: ReplicaManager.fetchMessages.

    The answer carries the high watermark as it was before this very fetch moved it; a fetch that finds no record waits.
    """
    asking = cluster.broker(follower)
    leader = asking.leader
    if leader is None or leader == follower or not asking.running:
        return cluster.noting(f"{follower} follows nobody")
    if asking.truncating:
        return cluster.noting(f"{follower} may not fetch before it knows where to cut its log")
    believed = cluster.broker(leader)
    if not believed.running:
        return cluster.noting(f"{leader} does not answer")
    refused = _refusal(cluster, believed, asking)
    if refused is not None:
        return _send(cluster, follower, refused).noting(_spoken(refused))
    found = read(believed, asking.log_end_offset)
    cluster = _update_follower_fetch_state(cluster, leader, follower, asking.log_end_offset)
    if found.records:
        return _send(cluster, follower, found).noting(f"answer: {spoken(found)}")
    believed = cluster.broker(leader)
    parked = DelayedFetch(follower, asking.log_end_offset, cluster.now_ms + FETCH_WAIT_MS)
    waiting = (*(each for each in believed.fetch_purgatory if each.follower != follower), parked)
    return cluster.having(replace(believed, fetch_purgatory=waiting)).noting(
        "no record to send: the fetch waits"
    )


def _refusal(cluster: Cluster, believed: Broker, asking: Broker) -> FetchAnswer | None:
    """An answer that brings no records; without fencing any leader answers anybody."""
    end = asking.log_end_offset
    if not believed.leads:
        return FetchAnswer(believed.id, end, error="NOT_LEADER_OR_FOLLOWER")
    if cluster.protocol.fenced and asking.leader_epoch != believed.leader_epoch:
        late = asking.leader_epoch < believed.leader_epoch
        return FetchAnswer(
            believed.id, end, error="FENCED_LEADER_EPOCH" if late else "UNKNOWN_LEADER_EPOCH"
        )
    if cluster.protocol.kraft and asking.log:
        # KIP-595: the fetch names the epoch of the follower's last record.
        epoch = asking.log[-1].epoch
        answer = epoch_cache.end_offset_for(believed.epoch_cache, epoch, believed.log_end_offset)
        if answer is not None and (answer[0] != epoch or answer[1] < end):
            return FetchAnswer(believed.id, end, diverging=answer)
    if end > believed.log_end_offset:
        return FetchAnswer(believed.id, end, error="OFFSET_OUT_OF_RANGE")
    return None


def _spoken(answer: FetchAnswer) -> str:
    if answer.diverging is not None:
        return f"answer: the logs part, epoch {answer.diverging[0]} ends at {answer.diverging[1]}"
    return f"answer: {answer.error}"


def _send(cluster: Cluster, follower: int, answer: FetchAnswer) -> Cluster:
    return cluster.having(replace(cluster.broker(follower), answer=answer))


def _update_follower_fetch_state(
    cluster: Cluster, leader: int, follower: int, offset: int
) -> Cluster:
    """Partition.updateFollowerFetchState: a fetch from an offset says that everything below is on the follower's side.

    Caught up is who asks for the leader's end, or for what was its end at the fetch before.
    """
    believed = cluster.broker(leader)
    remote = believed.remotes[follower]
    caught_up = remote.last_caught_up_ms
    if offset >= believed.log_end_offset:
        caught_up = cluster.now_ms
    elif remote.last_fetch_ms is not None and offset >= remote.last_fetch_leader_log_end_offset:
        caught_up = max(caught_up or 0, remote.last_fetch_ms)
    known = Remote(
        offset,
        caught_up,
        cluster.now_ms,
        max(remote.last_fetch_leader_log_end_offset, believed.log_end_offset),
    )
    cluster = cluster.having(replace(believed, remotes={**believed.remotes, follower: known}))
    return maybe_increment_leader_hw(maybe_expand_isr(cluster, leader, follower), leader)


def process_partition_data(cluster: Cluster, follower: int) -> Cluster:
    """The answer arrives: ReplicaFetcherThread.processPartitionData, or a truncation."""
    before = cluster.broker(follower)
    answer = before.answer
    if answer is None or not before.running:
        return cluster.noting(f"{follower} has no answer to read")
    cluster = cluster.having(replace(before, answer=None))
    if answer.leader != before.leader or answer.offset != before.log_end_offset:
        return cluster.noting(
            f"{follower} follows another leader by now and throws the answer away"
        )
    if answer.diverging is not None:
        return truncate_to(cluster, follower, kraft.truncation_offset(answer.diverging, before.log))
    if answer.error == "OFFSET_OUT_OF_RANGE":
        return truncate_to(
            cluster,
            follower,
            min(cluster.broker(answer.leader).log_end_offset, before.log_end_offset),
        )
    if answer.error is not None:
        return cluster.noting(f"{follower} tries again later")
    log, cache = (*before.log, *answer.records), before.epoch_cache
    if cluster.protocol.leader_epochs:
        for offset, record in enumerate(answer.records, before.log_end_offset):
            cache = epoch_cache.assign(cache, record.epoch, offset)
    high_watermark = min(answer.high_watermark, len(log))
    notes = [f"{follower} appends {named(answer.records)}"] if answer.records else []
    if high_watermark != before.high_watermark:
        notes.append(f"HW of {follower} {before.high_watermark}→{high_watermark}")
    after = replace(before, answer=None, log=log, epoch_cache=cache, high_watermark=high_watermark)
    return cluster.having(after).noting(*(notes or [f"{follower} learns nothing new"]))
