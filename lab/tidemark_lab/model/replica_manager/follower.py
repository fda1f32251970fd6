"""What a follower does: it asks where to truncate, fetches and appends.

Mirrors AbstractFetcherThread and ReplicaManager.
"""

from __future__ import annotations

from dataclasses import replace

from tidemark_lab.model import epoch_cache, kraft
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.replica_manager import log_start
from tidemark_lab.model.replica_manager.delayed import FetchIsolation, FetchResponse
from tidemark_lab.model.replica_manager.in_sync import maybe_expand_isr
from tidemark_lab.model.replica_manager.leader import maybe_increment_leader_hw
from tidemark_lab.model.replica_manager.purgatory import (
    complete_deletes,
    complete_fetches,
    delayed_fetch,
    describe_response,
    first_attempt,
    read,
    watch,
)
from tidemark_lab.model.replica_manager.state import (
    Broker,
    ClusterModel,
    Fact,
    RemoteReplica,
    record_names,
)
from tidemark_lab.model.replica_manager.stopping import kill
from tidemark_lab.model.truncation import Answer, LogEpochs


def truncate_to(cluster: ClusterModel, broker: int, end: int) -> ClusterModel:
    """UnifiedLog.truncateTo: the log, its epochs and its high watermark end at most at `end`."""
    before = cluster.broker(broker)
    removed = before.log[end:]
    cluster = cluster.with_broker(
        replace(
            before,
            log=before.log[:end],
            epoch_cache=epoch_cache.truncate_from_end(before.epoch_cache, end),
            high_watermark=min(before.high_watermark, end),
            disk=replace(before.disk, flushed=min(before.disk.flushed, end)),
            recovery_point=min(before.recovery_point, end),
        )
    )
    if not removed:
        return cluster.with_notes(f"{broker} has nothing to truncate")
    below = ", BELOW ITS HIGH WATERMARK" if end < before.high_watermark else ""
    return cluster.with_notes(
        f"{broker} truncates its log to offset {end}{below}: {record_names(removed)} removed"
    )


def end_offset_for_leader_epoch(cluster: ClusterModel, follower: int) -> ClusterModel:
    """0.11 to 2.6: a new follower asks where to truncate (OffsetForLeaderEpoch), then fetches."""
    local = cluster.broker(follower)
    if not local.truncating or local.leader is None:
        return cluster.with_notes(f"{follower} has nothing to ask")
    leader = cluster.broker(local.leader)
    if not leader.running:
        return cluster.with_notes(
            f"{leader.id} does not respond: {follower} keeps its log and will ask again"
        )
    if not leader.leads:
        return cluster.with_notes(
            f"NOT_LEADER_OR_FOLLOWER: {follower} keeps its log and will ask again"
        )
    if cluster.protocol.fenced and leader.leader_epoch != local.leader_epoch:
        return cluster.with_notes("rejected: the epochs of leader and follower differ")
    end, answers = where_to_truncate(cluster.protocol, leader, local)
    cluster = cluster.with_broker(replace(local, truncating=False))
    names_epoch = cluster.protocol.truncation.answers_epoch
    for answer in answers:
        cluster = cluster.with_notes(_in_words(leader.id, answer, names_epoch=names_epoch))
        if answer.found is None:
            cluster = cluster.with_facts(Fact.EPOCH_UNKNOWN)
    return truncate_to(cluster, follower, end)


def where_to_truncate(
    protocol: Protocol, leader: Broker, follower: Broker
) -> tuple[int, list[Answer]]:
    """Where a follower truncates, and what its leader answers."""
    knows, asks = (LogEpochs(b.epoch_cache, b.log_end_offset) for b in (leader, follower))
    return protocol.truncation.decide(knows, asks, follower.high_watermark)


def _in_words(leader: int, answer: Answer, *, names_epoch: bool) -> str:
    if answer.found is None:
        return f"{leader} does not know epoch {answer.asked}: the follower's own HW decides"
    epoch, end = answer.found
    named = f"its last epoch up to that is {epoch}, " * (names_epoch and epoch != answer.asked)
    return f"{leader} answers: {named}it ends at offset {end}"


def fetch_messages(cluster: ClusterModel, follower: int) -> ClusterModel:
    """A follower's fetch reaches its leader: ReplicaManager.fetchMessages.

    The response has the high watermark from before this fetch. A fetch that finds no records waits.
    """
    cluster = read_messages(cluster, follower, "no new records: the fetch waits")
    leader = cluster.broker(follower).leader
    if leader is None or not cluster.broker(leader).unwatched:
        return cluster
    return watch(cluster, leader, follower)


def read_messages(
    cluster: ClusterModel, follower: int, note: str = "no new records"
) -> ClusterModel:
    """The first half of a fetch: the leader reads. A fetch without records is not watched yet."""
    local = cluster.broker(follower)
    leader, end = local.leader, local.log_end_offset
    if leader is None or leader == follower or not local.running:
        return cluster.with_notes(f"{follower} has no leader to fetch from")
    if local.truncating:
        return cluster.with_notes(f"{follower} cannot fetch until it knows where to truncate")
    source = cluster.broker(leader)
    if not source.running:
        return cluster.with_notes(f"{leader} does not respond")
    response = _rejection(cluster, source, local)
    if response is None:
        response = read(source, end)
        cluster = _update_follower_fetch_state(cluster, leader, follower, end)
        if not response.records:
            fetch = delayed_fetch(cluster, follower, end, FetchIsolation.LOG_END)
            return first_attempt(cluster.with_notes(note), leader, fetch)
    cluster = cluster.with_broker(replace(cluster.broker(follower), response=response))
    return cluster.with_notes(f"response: {describe_response(response)}")


def _rejection(cluster: ClusterModel, leader: Broker, follower: Broker) -> FetchResponse | None:
    """A response without records; None if the fetch is valid. Before fencing, epochs may differ."""
    end = follower.log_end_offset
    if not leader.leads:
        return FetchResponse(leader.id, end, error="NOT_LEADER_OR_FOLLOWER")
    if cluster.protocol.fenced and follower.leader_epoch != leader.leader_epoch:
        late = follower.leader_epoch < leader.leader_epoch
        error = "FENCED_LEADER_EPOCH" if late else "UNKNOWN_LEADER_EPOCH"
        return FetchResponse(leader.id, end, error=error)
    if cluster.protocol.truncates_in_fetch and follower.log:
        # KIP-595: the fetch carries the epoch of the follower's last record.
        last_epoch = follower.log[-1].epoch
        answer = epoch_cache.end_offset_for(leader.epoch_cache, last_epoch, leader.log_end_offset)
        if answer is not None:
            epoch, epoch_end = answer
            if epoch != last_epoch or epoch_end < end:
                return FetchResponse(leader.id, end, diverging=answer)
    if not leader.log_start_offset <= end <= leader.log_end_offset:
        return FetchResponse(leader.id, end, error="OFFSET_OUT_OF_RANGE")
    return None


def _update_follower_fetch_state(
    cluster: ClusterModel, leader: int, follower: int, offset: int
) -> ClusterModel:
    """Partition.updateFollowerFetchState: the follower has all records below its fetch offset.

    A follower is caught up if it fetches from the leader's log end, or from what was the log end at
    its previous fetch.
    """
    local = cluster.broker(leader)
    remote = local.remotes[follower]
    caught_up = remote.last_caught_up_ms
    if offset >= local.log_end_offset:
        caught_up = cluster.now_ms
    elif remote.last_fetch_ms is not None and offset >= remote.last_fetch_leader_log_end_offset:
        caught_up = max(caught_up or 0, remote.last_fetch_ms)
    end = max(remote.last_fetch_leader_log_end_offset, local.log_end_offset)
    start = cluster.broker(follower).log_start_offset
    remote = RemoteReplica(offset, caught_up, cluster.now_ms, end, start)
    cluster = cluster.with_broker(replace(local, remotes={**local.remotes, follower: remote}))
    cluster = maybe_increment_leader_hw(maybe_expand_isr(cluster, leader, follower), leader)
    return complete_deletes(cluster, leader)


def process_partition_data(cluster: ClusterModel, follower: int) -> ClusterModel:
    """The response arrives: ReplicaFetcherThread.processPartitionData, or a truncation."""
    before = cluster.broker(follower)
    response = before.response
    if response is None or not before.running:
        return cluster.with_notes(f"{follower} has no response to process")
    cluster = cluster.with_broker(replace(before, response=None))
    end = before.log_end_offset
    if response.leader != before.leader or response.offset != end:
        return cluster.with_notes(f"{follower} drops the response: it follows another leader now")
    if response.diverging is not None:
        end = kraft.truncation_offset(response.diverging, before.log)
        return truncate_to(cluster, follower, end)
    if response.error == "OFFSET_OUT_OF_RANGE":
        return _handle_offset_out_of_range(cluster, follower)
    if response.error is not None:
        return cluster.with_notes(f"{follower} retries later")
    return _append(cluster, follower, response)


def _handle_offset_out_of_range(cluster: ClusterModel, follower: int) -> ClusterModel:
    """The leader's log is shorter, or starts later: AbstractFetcherThread.fetchOffsetAndTruncate.

    Until 2.0 the broker exits instead, unless the topic allows unclean elections:
    ReplicaFetcherThread.handleOffsetOutOfRange.
    """
    local = cluster.broker(follower)
    protocol = cluster.protocol
    may_truncate = protocol.fenced or protocol.truncates_in_fetch
    if not (may_truncate or cluster.unclean_leader_election):
        return kill(cluster, follower).with_notes(
            f"{follower} exits: log truncation is not allowed without unclean elections"
        )
    assert local.leader is not None
    source = cluster.broker(local.leader)
    if local.log_end_offset < source.log_start_offset:
        return _truncate_fully_and_start_at(cluster, local, source)
    leader_end = source.log_end_offset
    return truncate_to(cluster, follower, min(leader_end, local.log_end_offset))


def _truncate_fully_and_start_at(
    cluster: ClusterModel, local: Broker, leader: Broker
) -> ClusterModel:
    """UnifiedLog.truncateFullyAndStartAt: the follower starts again at the leader's log start."""
    start = leader.log_start_offset
    emptied = replace(
        local,
        log=leader.log[:start],
        log_start_offset=start,
        high_watermark=start,
        epoch_cache=(),
        recovery_point=start,
    )
    return cluster.with_broker(emptied).with_notes(
        f"{local.id} empties its log and starts again at {start}"
    )


def _append(cluster: ClusterModel, follower: int, response: FetchResponse) -> ClusterModel:
    before = cluster.broker(follower)
    log, cache = (*before.log, *response.records), before.epoch_cache
    if cluster.protocol.leader_epochs:
        for offset, record in enumerate(response.records, before.log_end_offset):
            cache = epoch_cache.assign(cache, record.epoch, offset)
    high_watermark = min(response.high_watermark, len(log))
    notes = [f"{follower} appends {record_names(response.records)}"] if response.records else []
    if high_watermark != before.high_watermark:
        notes.append(f"HW of {follower}: {before.high_watermark}→{high_watermark}")
    after = replace(before, log=log, epoch_cache=cache, high_watermark=high_watermark)
    after = log_start.increment(after, response.log_start_offset)
    if after.log_start_offset != before.log_start_offset:
        notes.append(f"the log of {follower} starts at {after.log_start_offset}")
    cluster = cluster.with_broker(after).with_notes(*(notes or [f"{follower} learns nothing new"]))
    # ReplicaFetcherThread.completeDelayedFetchRequests: consumers that read from this follower.
    return complete_fetches(cluster, follower)
