"""How a broker stops, and what remains on its disk."""

from __future__ import annotations

from dataclasses import replace

from tidemark_lab.model import epoch_cache
from tidemark_lab.model.replica_manager.state import Broker, ClusterModel


def stop(cluster: ClusterModel, broker: int, end: int, *, clean: bool) -> ClusterModel:
    """A broker stops. Its log now ends at `end`, and its high watermark is that of its checkpoint.

    The fetches that it sent get no response.
    """
    before = cluster.broker(broker)
    start = min(before.disk.log_start_offset_checkpoint or 0, end)
    # UnifiedLog.updateHighWatermarkMetadata: never below the log start.
    high_watermark = max(start, min(before.disk.high_watermark_checkpoint, end))
    stopped = Broker(
        broker,
        running=False,
        log=before.log[:end],
        high_watermark=high_watermark,
        epoch_cache=epoch_cache.truncate_from_end(before.epoch_cache, end),
        disk=replace(
            before.disk,
            flushed=min(before.disk.flushed, end),
            high_watermark_checkpoint=high_watermark,
            clean=clean,
        ),
        log_start_offset=start,
    )
    cluster = cluster.with_broker(stopped)
    for each in cluster.brokers:
        waiting = tuple(fetch for fetch in each.fetch_purgatory if fetch.reader != broker)
        cluster = cluster.with_broker(replace(each, fetch_purgatory=waiting))
    return cluster


def kill(cluster: ClusterModel, broker: int) -> ClusterModel:
    """The process dies. Its memory is lost, the pages of the operating system are not."""
    return stop(cluster, broker, cluster.broker(broker).log_end_offset, clean=False)
