"""Each long-running verb shows its version and its process, with or without Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.running_verbs import running
from tidemark.metrics import Component, MetricRegistry

VERBS = ("collect", "stream", "export")
FORMATS = ("text/plain", "application/openmetrics-text; version=1.0.0")


def test_all_verbs_serve_process_metrics_and_nothing_about_creation(tmp_path: Path) -> None:
    servers = {"bootstrap_servers": ["127.0.0.1:1"]}
    configuration = {
        "kafka": servers,
        "clusters": [{"name": "east", **servers}],
        "stream": {"checkpoint": str(tmp_path / "checkpoint")},
    }
    with running(tmp_path, dict.fromkeys(VERBS, configuration)) as verbs:
        for name, verb in verbs.items():
            verb.wait_for(lambda v=verb: v.probe("healthy")[0] == 200, "health", 120.0)  # type: ignore[misc]
            for kind in FORMATS:
                answer = requests.get(f"{verb.url}/metrics", headers={"Accept": kind}, timeout=10)
                assert f'tidemark_build_info{{component="{name}",' in answer.text
                for figure in ("cpu_seconds_total", "resident_memory_bytes", "open_fds"):
                    assert f"\nprocess_{figure} " in answer.text, (name, figure)
                assert "_created" not in answer.text, name


def test_counters_and_histograms_have_no_series_of_their_creation() -> None:
    registry = MetricRegistry()
    registry.counter("tidemark_dead_letters_total").inc()
    registry.histogram("tidemark_stream_batch_duration_seconds", (1.0,)).observe(0.5)
    names = {sample.name for family in registry.collect() for sample in family.samples}
    assert "tidemark_dead_letters_total" in names
    assert not [name for name in names if name.endswith("_created")]


@pytest.mark.parametrize("component", VERBS)
def test_a_process_is_described_once(component: Component) -> None:
    registry = MetricRegistry()
    registry.describe_process(component)
    families = list(text_string_to_metric_families(generate_latest(registry).decode()))
    (build,) = [family for family in families if family.name == "tidemark_build_info"]
    assert [sample.labels["component"] for sample in build.samples] == [component]
    with pytest.raises(ValueError, match="Duplicated"):
        registry.describe_process(component)
