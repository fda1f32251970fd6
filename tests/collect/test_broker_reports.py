"""Brokers that do not report on themselves: said once, and the passes go on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from structlog.testing import capture_logs

from tests.collect.fake_cluster import FakeCluster
from tidemark.collect.collector import Collector
from tidemark.core.events import BrokerState


def test_brokers_that_refuse_give_no_event(cluster: FakeCluster) -> None:
    cluster.topic("t", 5)
    events = [event for _ in range(6) for event in cluster.run()]
    assert not any(isinstance(event, BrokerState) for event in events)
    refused = cluster.passes.reports.refused()
    assert refused == dict.fromkeys(("configuration", "log directories"), ("UNSUPPORTED_VERSION",))


def test_a_refusal_is_logged_once_per_change() -> None:
    answers = [{}, {"configuration": ("A",)}, {"configuration": ("A",)}, {}, {}]
    reports = SimpleNamespace(refused=lambda: answers.pop(0))
    collector: Any = SimpleNamespace(
        cluster=SimpleNamespace(name="c"), passes=SimpleNamespace(reports=reports), _refused={}
    )
    with capture_logs() as logs:
        while answers:
            Collector._log_refusals(collector)
    assert [(line["log_level"], line["what"], line.get("reason")) for line in logs] == [
        ("warning", "configuration", "A"),
        ("info", "configuration", None),
    ]
