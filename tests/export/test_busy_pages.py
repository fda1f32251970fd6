"""Probes and scrapes while many clients ask for the largest pages of a real table."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from statistics import median

import pytest
import requests

from tests.export.make import NOW, alert, open_alert, render, view
from tidemark.core.records import encode_record, view_key
from tidemark.web.health import Health
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.own_metrics import ExportMetrics
from tidemark_exporters.export.table import Table
from tidemark_exporters.http_server import Site, serve_site
from tidemark_exporters.pages.responses import Pages

PARTITIONS = 3_000
CLIENTS = 30
# Pages for each.
EACH = 2
PATHS = ("/partitions?limit=1000", "/api/v1/partitions?limit=1000")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    table = Table()
    for number in range(PARTITIONS):
        topic, partition = f"topic-{number % 30}", number // 30
        lags = alert(topic=topic, partition=str(partition))
        alerts = [open_alert(lags)] if number % 3 == 0 else []
        each = view(topic, partition, alerts=alerts)
        key = view_key(each.kafka_cluster, each.topic, each.partition)
        table.apply(key, each, encode_record(each))
    made = Site(ExportMetrics().registry.render, Pages(table, 30.0, list, clock=lambda: NOW))
    made.exposition = render(table, EventCounters(), NOW, 50_000)
    server = serve_site(made, Health(list), "127.0.0.1:0")
    yield f"http://127.0.0.1:{server.port}"
    server.close()


def test_thirty_clients_of_the_largest_pages_keep_no_probe_waiting(url: str) -> None:
    answers, scrapes = list[tuple[int, int]](), list[tuple[float, int]]()
    waited = list[float]()

    def ask(path: str) -> None:
        for _ in range(EACH):
            asked = time.monotonic()
            answer = requests.get(url + path, timeout=60)
            waited.append(time.monotonic() - asked)
            answers.append((answer.status_code, len(answer.content)))

    def scrape() -> None:
        asked = time.monotonic()
        text = requests.get(f"{url}/metrics", timeout=60).text
        scrapes.append((time.monotonic() - asked, text.count("tidemark_partition_leader{")))

    threads = [threading.Thread(target=ask, args=(PATHS[n % 2],)) for n in range(CLIENTS)]
    threads.append(threading.Thread(target=scrape))
    for thread in threads:
        thread.start()
    seconds = list[float]()
    while any(thread.is_alive() for thread in threads):
        asked = time.monotonic()
        assert requests.get(f"{url}/-/healthy", timeout=30).status_code == 200
        seconds.append(time.monotonic() - asked)
    # Every client was answered, with a thousand rows.
    assert {status for status, _ in answers} == {200}
    assert len(answers) == CLIENTS * EACH
    assert min(size for _, size in answers) > 100_000
    # A page would hold each of them; a busy machine holds one of them now and then.
    assert median(seconds) < 1.0, seconds
    # Behind pages, a probe would take as long as a page.
    assert median(seconds) < median(waited) / 3
    ((scrape_seconds, series),) = scrapes
    assert series == PARTITIONS
    # Prometheus' usual time-out.
    assert scrape_seconds < 10.0
