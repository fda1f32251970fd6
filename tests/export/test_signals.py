"""The signals table: well-formed, and nothing is exposed beside it."""

from __future__ import annotations

import re
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import ROOT, need
from tests.export.make import NOW, alert, cluster_view, open_alert, view
from tidemark.collect.metrics import CollectMetrics
from tidemark.core.signals import SIGNALS, TIERS, signal_of
from tidemark.settings import Export, Settings
from tidemark.stream.listener import Metrics
from tidemark_exporters.export import exposition
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.own_metrics import OwnMetrics
from tidemark_exporters.export.table import Table
from tidemark_exporters.export.text import header
from tidemark_exporters.notify.delivery import DeliveryMetrics, make_delivery


@pytest.mark.parametrize("name", SIGNALS)
def test_names_follow_the_conventions(name: str) -> None:
    signal = SIGNALS[name]
    assert re.fullmatch(
        r"kafka_[a-z]+(_[a-z]+)*" if signal.optional else r"tidemark_[a-z]+(_[a-z]+)*", name
    )
    assert signal.tier in TIERS
    assert name.endswith("_total") == (signal.kind == "counter")
    assert (signal.unit == "seconds") == ("_seconds" in name)
    assert signal.help.endswith(".")
    assert not {"cluster", "offset", "epoch"} & set(signal.labels)


def test_a_metric_beside_the_table_cannot_be_rendered() -> None:
    with pytest.raises(KeyError):
        header("tidemark_surprise")


def test_everything_exposed_is_declared_with_its_type_and_labels() -> None:
    table, counters = Table(), EventCounters()
    table.apply(
        "east",
        cluster_view(
            broker_outcomes={"1": "ok", "2": "refused"},
            period_ms=1000.0,
            quorum_leader=100,
            quorum_epoch=3,
        ),
    )
    counters.count(
        alert("KafkaIsrChange", evidence={"before": [1, 2], "after": [1], "changed_at": NOW})
    )
    table.apply("east/orders/0", view(uncommitted_ms=4.0, alerts=[]))
    own = OwnMetrics()
    renderer = exposition.Renderer(Export(kafka_exporter_names=True))
    snapshot = renderer.render(table, counters, NOW)
    own.refreshed(snapshot, 0.01, NOW)
    DeliveryMetrics(own.registry, make_delivery(Settings(), {}, {})).refresh(NOW)
    text = (snapshot.body + snapshot.counters + own.render()).decode()
    exposed = [
        metric
        for metric in text_string_to_metric_families(text)
        if not metric.name.startswith("process_")
    ]
    for metric in exposed:
        name = metric.name + ("_total" if metric.type == "counter" else "")
        assert SIGNALS[name].kind == metric.type
        for sample in metric.samples:
            assert set(sample.labels) == set(SIGNALS[name].labels), name
    assert len(exposed) >= 80


def test_the_metrics_of_the_collector_and_of_the_stream_are_declared_too() -> None:
    for registry, tier in ((CollectMetrics().registry, "collect"), (Metrics().registry, "stream")):
        declared = {name for name, signal in SIGNALS.items() if signal.tier == tier}
        made = {
            (m.name + "_total" * (m.type == "counter"), m.type, m.documentation)
            for m in registry.collect()
        }
        assert made == {(name, SIGNALS[name].kind, SIGNALS[name].help) for name in declared}


def test_promtool_finds_no_fault_with_the_exposition() -> None:
    table, counters = Table(), EventCounters()
    table.apply(
        "east",
        cluster_view(
            broker_outcomes={"1": "ok", "2": "refused"},
            period_ms=1000.0,
            metadata_lag_ms={"1": 3.0},
        ),
    )
    table.apply("east/orders/0", view(uncommitted_ms=4.0, alerts=[open_alert(alert())]))
    snapshot = exposition.Renderer(Export()).render(table, counters, NOW)
    text = snapshot.body + snapshot.counters + OwnMetrics().render()
    run = subprocess.run(
        [need("promtool"), "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (run.returncode, run.stdout + run.stderr) == (0, b"")


def test_samples_of_a_histogram_belong_to_it() -> None:
    assert signal_of("tidemark_collect_pass_seconds_bucket").name == "tidemark_collect_pass_seconds"
    assert signal_of("tidemark_partitions").tier == "cluster"
    for unknown in ("tidemark_partitions_count", "tidemark_collect_pass_seconds_max", "up"):
        with pytest.raises(KeyError):
            signal_of(unknown)


def test_no_source_names_a_metric_that_is_not_in_the_table() -> None:
    """Sources, rules, dashboards, documents and deployment files; `tidemark_exporters` and the like are no metrics."""
    folders = (
        "exporters",
        "dashboards",
        "docs",
        "deploy",
        "streaming/tidemark/demo",
        "streaming/tidemark/collect",
    )
    others = {"tidemark_exporters", "tidemark_version"}
    for path in (
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".yaml", ".json", ".md"}
    ):
        for name in set(
            re.findall(
                r"\b(?:tidemark_[a-z_]*[a-z]|kafka_topic_partition_[a-z_]*[a-z])\b(?!_?\*)",
                path.read_text(encoding="utf-8"),
            )
        ):
            if name not in others:
                assert signal_of(name).help, (path, name)


def test_expression_refuses_labels_that_a_metric_does_not_have() -> None:
    signal = SIGNALS["tidemark_alert_open"]
    assert (
        signal.expression("kafka_cluster", severity="critical")
        == 'sum by (kafka_cluster) (tidemark_alert_open{severity="critical"})'
    )
    assert signal.expression() == "tidemark_alert_open"
    with pytest.raises(ValueError, match="has no label topic"):
        signal.expression("topic")
