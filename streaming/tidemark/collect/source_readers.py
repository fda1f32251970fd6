"""The readers of a cluster that run beside the passes, by its configuration."""

from __future__ import annotations

from functools import partial

from tidemark.collect.metrics import CollectMetrics
from tidemark.collect.sources.jmx.source import JmxSource
from tidemark.collect.sources.metadata_log.tail import MetadataLogTail
from tidemark.collect.sources.source import Source
from tidemark.settings import Cluster, Settings


def start_sources(cluster: Cluster, settings: Settings, metrics: CollectMetrics) -> list[Source]:
    """The readers beside the passes, started."""
    sources: list[Source] = []
    if cluster.jmx:
        sources.append(
            JmxSource(cluster, settings.collect, partial(metrics.jmx_read, cluster.name))
        )
    if cluster.controllers:
        tail = MetadataLogTail(cluster, metrics.metadata_log)
        tail.start()
        sources.append(tail)
    return sources
