"""The long-running verbs while no Kafka answers: they are up, say so once, and end when asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.delivery.services import free_port
from tidemark_lab.brokers.receiver import WebhookReceiver
from tidemark_lab.brokers.wait import wait_until

# A verb that imports Spark on a busy machine takes some of it.
SECONDS = 60.0
PASSED = "waiting for Kafka"


def wait_for(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, SECONDS, what)


def answer(url: str) -> tuple[int, str]:
    """(0, "") while nothing listens."""
    try:
        got = requests.get(url, timeout=10)
    except requests.ConnectionError:
        return 0, ""
    return got.status_code, got.text


@pytest.mark.parametrize("verb", ["collect", "stream", "export"])
def test_a_verb_is_up_while_kafka_is_away(tmp_path: Path, verb: str) -> None:
    kafka, port = f"127.0.0.1:{free_port()}", free_port()
    servers = {"bootstrap_servers": [kafka]}
    with WebhookReceiver() as receiver:
        options = {"listen": f"127.0.0.1:{port}"}
        if verb == "collect":
            options |= {"watchdog_url": receiver.url, "watchdog_seconds": "1.0"}
        document = {"kafka": servers, "clusters": [{"name": "east", **servers}], verb: options}
        path, log = tmp_path / "tidemark.yaml", tmp_path / "log"
        path.write_text(json.dumps(document))
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "tidemark.cli", verb, "--config", str(path)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "TIDEMARK_LOG_FORMAT": "json"},
            )
        try:
            base = f"http://127.0.0.1:{port}"
            wait_for(lambda: kafka in answer(f"{base}/-/ready")[1], "the reason it waits")
            assert answer(f"{base}/-/ready")[0] == 503
            assert answer(f"{base}/-/healthy") == (200, "healthy\n")
            assert f"tidemark_{verb}" in answer(f"{base}/metrics")[1]
            if verb == "collect":
                found = {"no_broker", "cannot_publish"}
                wait_for(
                    lambda: found <= {each.labels["reason"] for each in receiver.alerts()},
                    "the watchdog's alerts",
                )
            assert process.poll() is None, log.read_text()
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()
    written = log.read_text()
    waits = [line for line in written.splitlines() if PASSED in line]
    assert len(waits) == 1, written
    assert kafka in waits[0]
    assert "Traceback" not in written
