"""The metric table is well-formed, and each process exposes its part of it and nothing else."""

from __future__ import annotations

import re
import subprocess

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import ROOT, need
from tests.export.make import NOW, alert, cluster_view, counted, open_alert, table_of, view
from tests.metric_table import definition_of
from tidemark.collect.metrics import CollectMetrics
from tidemark.core.metric_table import METRICS, TIERS
from tidemark.metrics import MetricRegistry
from tidemark.settings import Export, Settings
from tidemark.stream.listener import StreamMetrics
from tidemark_exporters.export import exposition
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.own_metrics import EVENTS, ExportMetrics
from tidemark_exporters.export.text_format import format_header
from tidemark_exporters.notify.delivery import DeliveryMetrics, make_delivery


@pytest.mark.parametrize("name", METRICS)
def test_names_follow_the_conventions(name: str) -> None:
    definition = METRICS[name]
    assert re.fullmatch(
        r"kafka_[a-z]+(_[a-z]+)*" if definition.is_optional else r"tidemark_[a-z]+(_[a-z]+)*", name
    )
    assert definition.tier in TIERS
    assert name.endswith("_total") == (definition.kind == "counter")
    assert (definition.unit == "seconds") == ("_seconds" in name)
    assert definition.help.endswith(".")
    assert not {"cluster", "offset", "epoch"} & set(definition.labels)


def test_a_metric_outside_of_the_table_cannot_be_rendered_or_registered() -> None:
    with pytest.raises(KeyError):
        format_header("tidemark_surprise")
    with pytest.raises(KeyError):
        MetricRegistry().gauge("tidemark_surprise")
    with pytest.raises(AssertionError, match="is a counter"):
        MetricRegistry().gauge("tidemark_dead_letters_total")


def export_registry() -> CollectorRegistry:
    metrics = ExportMetrics()
    metrics.registry.counter(EVENTS)
    DeliveryMetrics(metrics.registry, make_delivery(Settings(), {}, {}))
    return metrics.registry


@pytest.mark.parametrize(
    ("tier", "make"),
    [
        ("collect", lambda: CollectMetrics().registry),
        ("stream", lambda: StreamMetrics().registry),
        ("export", export_registry),
    ],
    ids=["collect", "stream", "export"],
)
def test_a_process_registers_its_tier_of_the_table(tier: str, make: object) -> None:
    assert callable(make)
    registered = {
        (
            metric._name + "_total" * (metric._type == "counter"),
            metric._type,
            metric._labelnames,
            metric._documentation,
        )
        for metric in make()._collector_to_names
        # There are prometheus_client's metrics of the process too.
        if hasattr(metric, "_labelnames")
    }
    assert registered == {
        (definition.name, definition.kind, definition.labels, definition.help)
        for definition in METRICS.values()
        if definition.tier == tier or (tier == "export" and definition.tier == "process")
    }


def test_every_exposed_metric_has_its_type_and_labels() -> None:
    table = table_of(
        cluster_view(
            broker_outcomes={"1": "ok", "2": "refused"},
            period_ms=1000.0,
            quorum_leader=100,
            quorum_epoch=3,
        ),
        view(uncommitted_ms=4.0, alerts=[]),
    )
    counters = counted(
        alert("KafkaIsrChange", evidence={"before": [1, 2], "after": [1], "changed_at": NOW})
    )
    own = ExportMetrics()
    renderer = exposition.Renderer(Export(kafka_exporter_names=True))
    rendered = renderer.render(table, counters, NOW)
    own.record_refresh(rendered, 0.01, NOW)
    DeliveryMetrics(own.registry, make_delivery(Settings(), {}, {})).refresh(NOW)
    text = (rendered.body + rendered.counters + own.registry.render()).decode()
    exposed = [
        metric
        for metric in text_string_to_metric_families(text)
        if not metric.name.startswith("process_")
    ]
    for metric in exposed:
        name = metric.name + ("_total" if metric.type == "counter" else "")
        assert METRICS[name].kind == metric.type
        for sample in metric.samples:
            assert set(sample.labels) == set(METRICS[name].labels), name
    assert len(exposed) >= 80


def test_promtool_accepts_the_exposition() -> None:
    table = table_of(
        cluster_view(
            broker_outcomes={"1": "ok", "2": "refused"},
            period_ms=1000.0,
            metadata_lag_ms={"1": 3.0},
        ),
        view(uncommitted_ms=4.0, alerts=[open_alert(alert())]),
    )
    rendered = exposition.Renderer(Export()).render(table, EventCounters(), NOW)
    text = rendered.body + rendered.counters + ExportMetrics().registry.render()
    run = subprocess.run(
        [need("promtool"), "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (run.returncode, run.stdout + run.stderr) == (0, b"")


def test_samples_of_a_histogram_belong_to_it() -> None:
    assert (
        definition_of("tidemark_collect_pass_seconds_bucket").name
        == "tidemark_collect_pass_seconds"
    )
    assert definition_of("tidemark_partitions").tier == "cluster"
    for unknown in ("tidemark_partitions_count", "tidemark_collect_pass_seconds_max", "up"):
        with pytest.raises(KeyError):
            definition_of(unknown)


def test_no_source_names_a_metric_outside_of_the_table() -> None:
    """Sources, rules, dashboards, documents and deployment files."""
    folders = (
        "exporters",
        "dashboards",
        "docs",
        "deploy",
        "lab/tidemark_lab/demo",
        "streaming/tidemark/collect",
        "streaming/tidemark/stream",
    )
    packages = {"tidemark_exporters", "tidemark_lab", "tidemark_version"}
    observations = {"tidemark_read", "tidemark_written"}
    for path in (
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".yaml", ".json", ".md"}
    ):
        names = set(
            re.findall(
                r"\b(?:tidemark_[a-z_]*[a-z]|kafka_topic_partition_[a-z_]*[a-z])\b(?!_?\*)",
                path.read_text(encoding="utf-8"),
            )
        )
        for name in names - packages - observations:
            assert definition_of(name).help, (path, name)
