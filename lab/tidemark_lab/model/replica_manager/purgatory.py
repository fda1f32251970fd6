"""The purgatories of a broker: what completes the requests that wait, and when.

Mirrors DelayedOperationPurgatory and DelayedOperations. A key of a purgatory is a partition. A
purgatory here is the list of watchers of the one partition. A request can also wait for partitions
elsewhere, of which the model has only the events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidemark_lab.model.replica_manager.delayed import (
    FETCH_WAIT_MS,
    DelayedFetch,
    DelayedProduce,
    FetchIsolation,
    FetchResponse,
    reader_name,
)
from tidemark_lab.model.replica_manager.state import Broker, ClusterModel, Fact, record_names
from tidemark_lab.model.replica_manager.transactions import readable_end, without_aborted


def try_complete_delayed_requests(cluster: ClusterModel, broker: int) -> ClusterModel:
    """Partition.tryCompleteDelayedRequests, after the high or the low watermark has moved."""
    return complete_deletes(complete_fetches(complete_produces(cluster, broker), broker), broker)


def try_complete_else_watch(
    cluster: ClusterModel, broker: int, waiting: DelayedFetch
) -> ClusterModel:
    """DelayedOperationPurgatory.tryCompleteElseWatch for a fetch that found nothing.

    The first attempt has failed. The watcher list gets the fetch, and a second attempt follows.
    """
    return watch(first_attempt(cluster, broker, waiting), broker, waiting.reader)


def first_attempt(cluster: ClusterModel, broker: int, waiting: DelayedFetch) -> ClusterModel:
    """The attempt before the fetch is watched. What happens until then does not complete it."""
    local = cluster.broker(broker)
    others = (
        each for each in local.fetch_purgatory if each.completed or each.reader != waiting.reader
    )
    return cluster.with_broker(
        replace(local, fetch_purgatory=tuple(others), unwatched=(*local.unwatched, waiting))
    )


def watch(
    cluster: ClusterModel, broker: int, reader: int | None = None, *, second_attempt: bool = True
) -> ClusterModel:
    """The watcher list gets the fetch of a reader, or of all, and it is tried again.

    Without the second attempt a fetch misses what happened after the first one, and waits for its
    timeout. Kafka always makes it; a test plays both.
    """
    local = cluster.broker(broker)
    moved = tuple(each for each in local.unwatched if reader in {None, each.reader})
    watched = replace(
        local,
        unwatched=tuple(each for each in local.unwatched if each not in moved),
        fetch_purgatory=(*local.fetch_purgatory, *moved),
    )
    cluster = cluster.with_broker(watched)
    return complete_fetches(cluster, broker) if second_attempt else cluster


def delayed_fetch(
    cluster: ClusterModel, reader: int, offset: int, isolation: FetchIsolation
) -> DelayedFetch:
    return DelayedFetch(reader, offset, cluster.now_ms + FETCH_WAIT_MS, isolation)


def complete_produces(cluster: ClusterModel, leader: int) -> ClusterModel:
    """DelayedProduce.tryComplete. The producer gets an error if the ISR is now below min ISR."""
    local = cluster.broker(leader)
    cluster, records = _remove_produces(
        cluster,
        leader,
        lambda waiting: waiting.required_offset <= local.high_watermark and not waiting.elsewhere,
    )
    if not records:
        return cluster
    cluster = cluster.with_facts(Fact.PRODUCE_COMPLETED)
    if len(local.maximal_in_sync_replicas) < cluster.effective_min_in_sync_replicas:
        note = f"{record_names(records)}: NOT_ENOUGH_REPLICAS_AFTER_APPEND"
        return cluster.with_notes(note).with_facts(Fact.WRITE_REFUSED)
    acked = {*cluster.acked, *(record for record in local.log if record.id in records)}
    return replace(cluster, acked=tuple(sorted(acked))).with_notes(
        f"{record_names(records)} acknowledged"
    )


def expire(cluster: ClusterModel, broker: int) -> ClusterModel:
    """Requests complete that have reached their deadlines, with what there is for them."""
    now_ms = cluster.now_ms
    cluster = complete_fetches(cluster, broker, expired=True)
    cluster, records = _remove_produces(
        cluster, broker, lambda waiting: waiting.deadline_ms <= now_ms
    )
    # DelayedProduce.onExpiration. The record stays in the log and may still be committed.
    if records:
        cluster = cluster.with_notes(f"{record_names(records)}: REQUEST_TIMED_OUT")
        cluster = cluster.with_facts(Fact.PRODUCE_COMPLETED)
    local = cluster.broker(broker)
    late = tuple(each for each in local.delete_purgatory if each.deadline_ms <= now_ms)
    if late:
        rest = tuple(each for each in local.delete_purgatory if each not in late)
        cluster = cluster.with_broker(replace(local, delete_purgatory=rest))
        cluster = cluster.with_notes("DeleteRecords: REQUEST_TIMED_OUT")
        cluster = cluster.with_facts(Fact.DELETE_RECORDS_COMPLETED)
    return cluster


def _remove_produces(
    cluster: ClusterModel, leader: int, is_done: Callable[[DelayedProduce], bool]
) -> tuple[ClusterModel, tuple[int, ...]]:
    """Removes requests from the produce purgatory. Returns the ids of their records."""
    local = cluster.broker(leader)
    done = tuple(waiting for waiting in local.produce_purgatory if is_done(waiting))
    rest = tuple(waiting for waiting in local.produce_purgatory if waiting not in done)
    cluster = cluster.with_broker(replace(local, produce_purgatory=rest))
    return cluster, tuple(record for waiting in done for record in waiting.records)


def complete_fetches(cluster: ClusterModel, broker: int, *, expired: bool = False) -> ClusterModel:
    """DelayedFetch.tryComplete for every fetch that waits, or onExpiration.

    A fetch completes once its reader can read a record, and if its offset is above what the reader
    can read now. It then reads again, with the current high watermark.
    """
    for waiting in cluster.broker(broker).fetch_purgatory:
        local = cluster.broker(broker)
        late = expired and waiting.deadline_ms <= cluster.now_ms
        if waiting.completed:
            cluster = cluster if expired else purge(cluster, broker)
        elif late or readable_end(cluster, local, waiting.isolation) != waiting.offset:
            rest = tuple(each for each in local.fetch_purgatory if each != waiting)
            cluster = cluster.with_broker(replace(local, fetch_purgatory=rest))
            cluster = _respond(cluster, broker, waiting)
    return cluster


def append_elsewhere(cluster: ClusterModel, broker: int) -> ClusterModel:
    """A record in another partition completes the followers' fetches, with the records of both."""
    for waiting in cluster.broker(broker).fetch_purgatory:
        if waiting.reader > 0 and not waiting.completed:
            local = cluster.broker(broker)
            after = tuple(
                replace(each, completed=True) if each == waiting else each
                for each in local.fetch_purgatory
            )
            cluster = cluster.with_broker(replace(local, fetch_purgatory=after))
            cluster = _respond(cluster, broker, waiting).with_notes("its entry here stays")
    return cluster


def commit_elsewhere(cluster: ClusterModel, broker: int) -> ClusterModel:
    """The records that waiting produce requests have in another partition are committed."""
    local = cluster.broker(broker)
    after = tuple(replace(each, elsewhere=False) for each in local.produce_purgatory)
    return complete_produces(cluster.with_broker(replace(local, produce_purgatory=after)), broker)


def purge(cluster: ClusterModel, broker: int) -> ClusterModel:
    """Watchers.purgeCompleted: the list drops the entries of operations that are complete."""
    local = cluster.broker(broker)
    rest = tuple(each for each in local.fetch_purgatory if not each.completed)
    dropped = len(local.fetch_purgatory) - len(rest)
    if not dropped:
        return cluster
    return cluster.with_broker(replace(local, fetch_purgatory=rest)).with_notes(
        f"complete entries removed from the watcher list: {dropped}"
    )


def _respond(cluster: ClusterModel, broker: int, waiting: DelayedFetch) -> ClusterModel:
    name = reader_name(waiting.reader)
    if waiting.reader < 0:
        cluster = cluster.with_facts(Fact.CONSUMER_FETCH_COMPLETED)
        return deliver(cluster.with_notes(f"the fetch of {name} completes"), broker, waiting)
    response = read(cluster.broker(broker), waiting.offset)
    cluster = cluster.with_broker(replace(cluster.broker(waiting.reader), response=response))
    return cluster.with_notes(
        f"the fetch of {name} completes: {describe_response(response)}"
    ).with_facts(Fact.FOLLOWER_FETCH_COMPLETED)


def deliver(cluster: ClusterModel, broker: int, fetch: DelayedFetch) -> ClusterModel:
    """A consumer gets what it can read from its offset on. Its position moves behind that."""
    local, consumer = cluster.broker(broker), cluster.consumer(-fetch.reader)
    end = readable_end(cluster, local, fetch.isolation)
    name = reader_name(fetch.reader)
    if end <= fetch.offset:
        return cluster.with_notes(f"{name} gets no record")
    if fetch.isolation is FetchIsolation.TXN_COMMITTED:
        records = without_aborted(cluster, local.log, fetch.offset, end)
    else:
        markers = {each.record for each in cluster.transactional if each.kind != "data"}
        records = tuple(each for each in local.log[fetch.offset : end] if each.id not in markers)
    cluster = cluster.with_consumer(replace(consumer, position=end))
    return cluster.with_notes(f"{name} reads {record_names(records) or 'nothing but markers'}")


def complete_deletes(cluster: ClusterModel, leader: int) -> ClusterModel:
    """DelayedDeleteRecords.tryComplete: every live replica has deleted the records."""
    local, low = cluster.broker(leader), low_watermark(cluster, leader)
    done = [
        each for each in local.delete_purgatory if low is not None and each.required_offset <= low
    ]
    if not done:
        return cluster
    rest = tuple(each for each in local.delete_purgatory if each not in done)
    cluster = cluster.with_broker(replace(local, delete_purgatory=rest))
    return cluster.with_notes(f"low watermark {low}: DeleteRecords completes").with_facts(
        Fact.DELETE_RECORDS_COMPLETED
    )


def low_watermark(cluster: ClusterModel, leader: int) -> int | None:
    """Partition.lowWatermarkIfLeader: the smallest log start offset of the live replicas.

    None while the leader does not know that of a live follower.
    """
    local, low = cluster.broker(leader), cluster.broker(leader).log_start_offset
    for follower, remote in local.remotes.items():
        if follower in cluster.controller.alive:
            if remote.log_start_offset is None:
                return None
            low = min(low, remote.log_start_offset)
    return low


def read(local: Broker, offset: int) -> FetchResponse:
    """The leader's records from `offset` on, its high watermark and its log start."""
    return FetchResponse(
        local.id,
        offset,
        local.log[offset:],
        local.high_watermark,
        log_start_offset=local.log_start_offset,
    )


def describe_response(response: FetchResponse) -> str:
    if response.diverging is not None:
        epoch, end = response.diverging
        return f"the logs diverge, epoch {epoch} ends at {end}"
    if response.error is not None:
        return response.error
    start = f", log start {response.log_start_offset}" if response.log_start_offset else ""
    return f"{record_names(response.records) or 'no record'}, HW {response.high_watermark}{start}"
