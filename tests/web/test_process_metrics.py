"""The metrics of a process; tests/verbs/test_up_without_kafka.py has those of each verb."""

from __future__ import annotations

import pytest
import requests
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tidemark.metrics import Component, MetricRegistry


def test_counters_and_histograms_have_no_series_of_their_creation() -> None:
    registry = MetricRegistry()
    registry.counter("tidemark_dead_letters_total").inc()
    registry.histogram("tidemark_stream_batch_duration_seconds", (1.0,)).observe(0.5)
    names = {sample.name for family in registry.collect() for sample in family.samples}
    assert "tidemark_dead_letters_total" in names
    assert not [name for name in names if name.endswith("_created")]


@pytest.mark.parametrize("component", ["collect", "stream", "export"])
def test_a_process_is_described_once(component: Component) -> None:
    registry = MetricRegistry()
    registry.describe_process(component)
    families = list(text_string_to_metric_families(generate_latest(registry).decode()))
    (build,) = [family for family in families if family.name == "tidemark_build_info"]
    assert [sample.labels["component"] for sample in build.samples] == [component]
    with pytest.raises(AssertionError, match="twice"):
        registry.describe_process(component)


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("application/openmetrics-text; version=1.0.0", True),
        ("application/openmetrics-text; version=1.0.0; q=0", False),
        ("application/openmetrics-text; q=0.2, text/plain; q=0.9", False),
    ],
)
def test_the_weights_of_accept_hold_for_collector_and_stream(
    accept: str, openmetrics: bool
) -> None:
    server = MetricRegistry().serve("127.0.0.1:0", "collect.listen")
    try:
        url = f"http://127.0.0.1:{server.port}/metrics"
        answer = requests.get(url, headers={"Accept": accept}, timeout=5)
    finally:
        server.close()
    assert ("openmetrics" in answer.headers["Content-Type"]) is openmetrics
    assert ("# EOF" in answer.text) is openmetrics
