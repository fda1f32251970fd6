"""The signals table: well-formed, and nothing is exposed beside it."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.export.make import NOW, alert, cluster_view, view
from tidemark_exporters.export import exposition
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.own_metrics import OwnMetrics
from tidemark_exporters.export.table import Table
from tidemark_exporters.export.text import family
from tidemark_exporters.signals import SIGNALS


@pytest.mark.parametrize("name", SIGNALS)
def test_names_follow_the_conventions(name: str) -> None:
    signal = SIGNALS[name]
    assert re.fullmatch(r"tidemark_[a-z]+(_[a-z]+)*", name)
    assert name.endswith("_total") == (signal.kind == "counter")
    assert (signal.unit == "seconds") == ("_seconds" in name)
    assert signal.help.endswith(".")
    assert not {"cluster", "offset", "epoch"} & set(signal.labels)


def test_a_metric_beside_the_table_cannot_be_rendered() -> None:
    with pytest.raises(KeyError):
        family("tidemark_surprise", ["tidemark_surprise 1"])


def test_everything_exposed_is_declared_with_its_type_and_labels() -> None:
    table, counters = Table(), EventCounters()
    table.apply("east", cluster_view(broker_outcomes={"1": "ok", "2": "refused"}, period_ms=1000.0, quorum_leader=100, quorum_epoch=3))
    counters.count(alert("KafkaIsrChange", evidence={"before": [1, 2], "after": [1], "changed_at": NOW}))
    table.apply("east/orders/0", view(uncommitted_ms=4.0, alerts=[]))
    own = OwnMetrics()
    own.refreshed(exposition.render(table, counters, NOW, 1000), 0.01)
    text = (exposition.render(table, counters, NOW, 1000).body + own.render()).decode()
    exposed = [metric for metric in text_string_to_metric_families(text) if not metric.name.startswith("process_")]
    for metric in exposed:
        name = metric.name + ("_total" if metric.type == "counter" else "")
        assert SIGNALS[name].kind == metric.type
        for sample in metric.samples:
            assert set(sample.labels) == set(SIGNALS[name].labels), name
    assert len(exposed) > 40


def test_expression_refuses_labels_that_a_metric_does_not_have() -> None:
    signal = SIGNALS["tidemark_alert_open"]
    assert signal.expression("kafka_cluster", severity="critical") == 'sum by (kafka_cluster) (tidemark_alert_open{severity="critical"})'
    assert signal.expression() == "tidemark_alert_open"
    with pytest.raises(ValueError, match="has no label topic"):
        signal.expression("topic")
