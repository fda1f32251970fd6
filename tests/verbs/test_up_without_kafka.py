"""The long-running verbs while no Kafka answers: they are up, say so once, and end when asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.running_verbs import running
from tests.delivery.services import free_port
from tidemark_lab.brokers.receiver import WebhookReceiver

# A verb that imports Spark on a busy machine takes some of it.
SECONDS = 60.0
PASSED = "waiting for Kafka"
FORMATS = ("text/plain", "application/openmetrics-text; version=1.0.0")
FIGURES = ("cpu_seconds_total", "resident_memory_bytes", "open_fds")


@pytest.mark.parametrize("verb", ["collect", "stream", "export"])
def test_a_verb_is_up_while_kafka_is_away(tmp_path: Path, verb: str) -> None:
    kafka = f"127.0.0.1:{free_port()}"
    servers = {"bootstrap_servers": [kafka]}
    document: dict[str, Any] = {"kafka": servers, "clusters": [{"name": "east", **servers}]}
    with WebhookReceiver() as receiver:
        if verb == "collect":
            document[verb] = {"watchdog_url": receiver.url, "watchdog_seconds": "1.0"}
        with running(tmp_path, {verb: document}) as verbs:
            started = verbs[verb]
            started.wait_for(
                lambda: kafka in started.probe("ready")[1], "the reason it waits", SECONDS
            )
            assert started.probe("ready")[0] == 503
            assert started.probe("healthy") == (200, "healthy\n")
            for kind in FORMATS:
                shown = started.metrics(kind)
                assert f'tidemark_build_info{{component="{verb}",' in shown
                assert [name for name in FIGURES if f"\nprocess_{name} " not in shown] == []
                assert "_created" not in shown
            if verb == "collect":
                found = {"no_broker", "cannot_publish"}
                started.wait_for(
                    lambda: found <= {each.labels["reason"] for each in receiver.alerts()},
                    "the watchdog's alerts",
                    SECONDS,
                )
            assert started.process.poll() is None, started.tail()
            assert started.end() == 0
    written = started.log.read_text()
    waits = [line for line in written.splitlines() if PASSED in line]
    assert len(waits) == 1, written
    assert kafka in waits[0]
    assert "Traceback" not in written
