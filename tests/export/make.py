"""Views and alerts for the exporter's tests."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tidemark.core.identity import fingerprint
from tidemark.core.records import (
    Alert,
    AlertState,
    OpenAlert,
    Reason,
    ReplicaView,
    View,
    view_key,
)
from tidemark.settings import Export
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Exposition, Renderer
from tidemark_exporters.export.table import Table

NOW = 1_800_000_000.0


def view(topic: str = "orders", partition: int = 0, **changes: Any) -> View:
    """A healthy partition of three replicas."""
    values: dict[str, Any] = {
        "scope": "partition",
        "kafka_cluster": "east",
        "at": NOW,
        "pass_number": 7,
        "collector": "c1",
        "topic": topic,
        "partition": partition,
        "leader": 1,
        "leader_epoch": 4,
        "assigned": [1, 2, 3],
        "in_sync_replicas": [1, 2, 3],
        "effective_min_in_sync_replicas": 2,
        "high_watermark": 100,
        "log_end_offset": 100,
        "uncommitted_records": 0,
        "replicas": [
            ReplicaView(
                broker=b,
                log_end_offset=100,
                high_watermark=100,
                in_sync=True,
                lag_records=0,
                lag_ms=0.0,
            )
            for b in (1, 2, 3)
        ],
    }
    return View(**{**values, **changes})


def cluster_view(name: str = "east", at: float = NOW, **changes: Any) -> View:
    return View(
        scope="cluster", kafka_cluster=name, at=at, pass_number=7, collector="c1", **changes
    )


def broker_view(broker: int, **changes: Any) -> View:
    return View(
        scope="broker",
        kafka_cluster="east",
        broker=broker,
        at=NOW,
        pass_number=7,
        collector="c1",
        **changes,
    )


def key_of(each: View) -> str:
    return view_key(each.kafka_cluster, each.topic, each.partition, each.broker)


def table_of(*views: View) -> Table:
    """A table that holds these views, each under its key."""
    table = Table()
    for each in views:
        table.apply(key_of(each), each)
    return table


def alert(
    name: str = "KafkaFollowerLag",
    state: AlertState = "firing",
    at: float = NOW,
    starts_at: float = NOW - 3,
    severity: str = "warning",
    cluster: str = "east",
    broker: str | None = "2",
    reason: Reason | None = None,
    evidence: dict[str, Any] | None = None,
    description: str = "",
    **labels: str,
) -> Alert:
    """An alert record as the stream writes it, with its id and fingerprint."""
    names = {
        "kafka_cluster": cluster,
        "alertname": name,
        "severity": severity,
        "topic": "orders",
        "partition": "0",
        **labels,
    }
    if broker is not None:
        names["broker"] = broker
    mark = fingerprint(names)
    return Alert(
        id=f"{mark}.{starts_at}.{state}" + (f".{description}" if state == "update" else ""),
        fingerprint=mark,
        state=state,
        labels=names,
        annotations={"summary": "A sentence.", "description": description},
        evidence=evidence or {},
        starts_at=starts_at,
        ends_at=at if state == "resolved" else None,
        reason=reason,
        at=at,
    )


def counted(*alerts: Alert) -> EventCounters:
    counters = EventCounters()
    for each in alerts:
        counters.count(each)
    return counters


def open_alert(of: Alert) -> OpenAlert:
    return OpenAlert(
        id=of.id,
        fingerprint=of.fingerprint,
        labels=of.labels,
        annotations=of.annotations,
        starts_at=of.starts_at,
    )


def render(
    table: Table, counters: EventCounters, now: float, max_series: int, granularity: Any = "auto"
) -> Exposition:
    """The first refresh of a new exporter."""
    export = Export(max_series=max_series, granularity=granularity)
    return Renderer(export).render(table, counters, now)


def samples_of(text: str) -> list[Sample]:
    """Those of an exposition in the text format."""
    return [sample for metric in text_string_to_metric_families(text) for sample in metric.samples]
