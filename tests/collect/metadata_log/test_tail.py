"""The thread around the reader: the bound of the queue, and one line for what is wrong."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import urlsplit

import pytest
from structlog.testing import capture_logs

from tests.collect.socket_answers import serving, text
from tidemark.collect.sources.metadata_log.tail import EventQueue, MetadataLogTail, QueueClosedError
from tidemark.core.errors import ConfigError
from tidemark.core.events import BrokerState
from tidemark.settings import Cluster
from tidemark_lab.brokers.ports import free_ports
from tidemark_lab.brokers.wait import wait_until

EVENT = BrokerState(broker=1, observed_at=1.0)


def test_a_full_queue_makes_the_reader_wait_and_loses_nothing() -> None:
    queue, put = EventQueue(limit=2), threading.Event()

    def work() -> None:
        for _ in range(3):
            queue.put([EVENT, EVENT])
        put.set()

    reader = threading.Thread(target=work, daemon=True)
    reader.start()
    taken: list[Any] = []
    while not put.is_set() or len(taken) < 6:
        found = queue.take()
        assert len(found) <= 2
        taken += found
    assert len(taken) == 6
    reader.join(5)


def test_a_closed_queue_ends_the_reader() -> None:
    queue, ended = EventQueue(limit=1), threading.Event()
    queue.put([EVENT])

    def work() -> None:
        with pytest.raises(QueueClosedError):
            queue.put([EVENT])
        ended.set()

    threading.Thread(target=work, daemon=True).start()
    queue.close()
    assert ended.wait(5)


def test_a_failure_is_said_once_with_each_controller_and_the_cure() -> None:
    (refused,) = free_ports(1)
    with serving(text(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as endpoint:
        port = urlsplit(endpoint.url).port
        reports: list[tuple[str, bool, int | None]] = []
        controllers = [f"127.0.0.1:{refused}", f"127.0.0.1:{port}"]
        cluster = Cluster(name="east", controllers=controllers)
        with capture_logs() as logs:
            tail = MetadataLogTail(cluster, lambda *found: reports.append(found))
            tail.start()
            wait_until(lambda: len(reports) >= 3, 20.0, "three reports")
            tail.close()
    assert not tail.is_alive()
    assert set(reports) == {("east", False, None)}
    (line,) = [line for line in logs if line["log_level"] == "warning"]
    assert line["cluster"] == "east"
    assert f"127.0.0.1:{refused} (refused): no process listens on its port" in line["reason"]
    assert f"127.0.0.1:{port} " in line["reason"]
    assert "clusters[].controllers" in line["cure"]
    assert tail.take() == []


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="host:port"):
        MetadataLogTail(Cluster(name="east", controllers=["nowhere"]), lambda *_: None)
