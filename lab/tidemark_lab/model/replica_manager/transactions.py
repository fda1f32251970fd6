"""Transactions in a log, and the last stable offset. Mirrors ProducerStateManager.

A transaction begins with its first record. A marker of the transaction coordinator ends it.
"""

from __future__ import annotations

from tidemark_lab.model.log import Log
from tidemark_lab.model.replica_manager.delayed import FetchIsolation
from tidemark_lab.model.replica_manager.state import Broker, ClusterModel


def last_stable_offset(cluster: ClusterModel, local: Broker) -> int:
    """UnifiedLog.lastStableOffset: the first unstable offset, at most the high watermark.

    Unstable is the first record of an open transaction, and of one with a marker that is not yet
    below the high watermark (ProducerStateManager.firstUnstableOffset).
    """
    by_record = {each.record: each for each in cluster.transactional}
    begins: dict[str, int] = {}
    unstable = [local.high_watermark]
    for offset, record in enumerate(local.log):
        found = by_record.get(record.id)
        if found is None:
            continue
        if found.kind == "data":
            begins.setdefault(found.producer, offset)
        else:
            begin = begins.pop(found.producer, offset)
            if offset >= local.high_watermark:
                unstable.append(begin)
    return min(*unstable, *begins.values()) if begins else min(unstable)


def readable_end(cluster: ClusterModel, local: Broker, isolation: FetchIsolation) -> int:
    """The first offset that a fetch of this isolation cannot read."""
    match isolation:
        case FetchIsolation.LOG_END:
            return local.log_end_offset
        case FetchIsolation.HIGH_WATERMARK:
            return local.high_watermark
        case FetchIsolation.TXN_COMMITTED:
            return last_stable_offset(cluster, local)


def without_aborted(cluster: ClusterModel, log: Log, start: int, end: int) -> Log:
    """The records that a consumer delivers: no marker, and no record of an aborted transaction.

    The broker sends those too, and the consumer drops them by the list of aborted transactions of
    the response, which the broker reads from `.txnindex`.
    """
    by_record = {each.record: each for each in cluster.transactional}
    delivered = []
    for offset in range(start, end):
        found = by_record.get(log[offset].id)
        if found is None or (
            found.kind == "data" and _end_of(cluster, log, offset, found.producer) != "abort"
        ):
            delivered.append(log[offset])
    return tuple(delivered)


def _end_of(cluster: ClusterModel, log: Log, offset: int, producer: str) -> str | None:
    """How the transaction of a record ended: commit, abort, or None while it is open."""
    by_record = {each.record: each for each in cluster.transactional}
    for record in log[offset:]:
        found = by_record.get(record.id)
        if found is not None and found.producer == producer and found.kind != "data":
            return found.kind
    return None
