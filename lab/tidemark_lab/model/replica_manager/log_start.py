"""The log start offset: DeleteRecords raises it, and followers learn it from fetch responses.

Mirrors Partition.deleteRecordsOnLeader and UnifiedLog.maybeIncrementLogStartOffset. The records
below the log start stay in the model's log, as positions; no one can read them.
"""

from __future__ import annotations

from dataclasses import replace

from tidemark_lab.model import epoch_cache
from tidemark_lab.model.replica_manager.delayed import REQUEST_TIMEOUT_MS, DelayedDeleteRecords
from tidemark_lab.model.replica_manager.purgatory import complete_deletes, low_watermark
from tidemark_lab.model.replica_manager.state import Broker, ClusterModel


def increment(local: Broker, offset: int) -> Broker:
    """The log starts at `offset` or later, and never above its high watermark."""
    start = min(offset, local.high_watermark)
    if start <= local.log_start_offset:
        return local
    cache = epoch_cache.truncate_from_start(local.epoch_cache, start)
    return replace(local, log_start_offset=start, epoch_cache=cache)


def delete_records(cluster: ClusterModel, leader: int, offset: int) -> ClusterModel:
    """DeleteRecords up to an offset. It waits until every live replica has deleted the records."""
    local = cluster.broker(leader)
    if not local.leads:
        return cluster.with_notes("NOT_LEADER_OR_FOLLOWER")
    if offset > local.high_watermark:
        return cluster.with_notes(f"OFFSET_OUT_OF_RANGE: the HW is {local.high_watermark}")
    waiting = DelayedDeleteRecords(offset, cluster.now_ms + REQUEST_TIMEOUT_MS)
    local = increment(local, offset)
    local = replace(local, delete_purgatory=(*local.delete_purgatory, waiting))
    cluster = cluster.with_broker(local).with_notes(f"the log of {leader} starts at {offset}")
    cluster = complete_deletes(cluster, leader)
    if waiting not in cluster.broker(leader).delete_purgatory:
        return cluster
    low = low_watermark(cluster, leader)
    known = "is unknown" if low is None else f"is {low}"
    return cluster.with_notes(f"the low watermark {known}: the request waits")
