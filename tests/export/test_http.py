"""The HTTP side over a real socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
import requests
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from tests.export.make import NOW, view
from tidemark.core.errors import ConfigError, TidemarkError
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import render
from tidemark_exporters.export.http import Site, serve, wants_openmetrics
from tidemark_exporters.export.own_metrics import OwnMetrics
from tidemark_exporters.export.table import Table
from tidemark_exporters.pages.routes import Pages

WAITING: list[str] = []


def pages() -> Pages:
    return Pages(Table(), 30.0, lambda: list(WAITING))


@pytest.fixture
def site() -> Iterator[tuple[Site, str]]:
    WAITING[:] = ["alerts", "partition views"]
    made = Site(OwnMetrics().render, pages(), lambda: list(WAITING))
    server = serve(made, "127.0.0.1:0")
    yield made, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def get(url: str, **headers: str) -> requests.Response:
    return requests.get(url, headers=headers, timeout=5)


def test_ready_only_when_nothing_is_waited_for(site: tuple[Site, str]) -> None:
    _, url = site
    before = get(f"{url}/-/ready")
    assert (before.status_code, before.text) == (503, "not ready: waiting for alerts and partition views\n")
    assert get(f"{url}/-/healthy").status_code == 200
    WAITING.clear()
    assert get(f"{url}/-/ready").status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_a_scrape_is_the_snapshot_and_the_exporters_own(site: tuple[Site, str], encoding: str) -> None:
    made, url = site
    table = Table()
    table.apply("east/orders/0", view())
    made.snapshot = render(table, EventCounters(), NOW, 1000)
    answer = get(f"{url}/metrics", **{"Accept-Encoding": encoding})
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers.get("Content-Encoding") == ("gzip" if encoding == "gzip" else None)
    named = {metric.name for metric in text_string_to_metric_families(answer.text)}
    assert {"tidemark_partition_leader", "tidemark_build_info", "tidemark_export_ready"} <= named
    assert answer.text.startswith((made.snapshot.body + made.snapshot.counters).decode())


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_openmetrics_when_it_is_asked_for(site: tuple[Site, str], encoding: str) -> None:
    made, url = site
    table = Table()
    table.apply("east/orders/0", view())
    made.snapshot = render(table, EventCounters(), NOW, 1000)
    # As Prometheus 2.42 asks.
    accept = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    answer = get(f"{url}/metrics", **{"Accept-Encoding": encoding, "Accept": accept})
    assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"
    named = {metric.name for metric in openmetrics_families(answer.text)}  # type: ignore[no-untyped-call]
    assert {"tidemark_partition_leader", "tidemark_alerts_fired", "tidemark_build_info", "tidemark_dead_letters"} <= named
    assert answer.text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain;version=0.0.4;q=1,application/openmetrics-text;q=0.5", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text; version=1.0.0; q=0.6,text/plain;q=0.5", True),
        ("application/openmetrics-text;q=nonsense", False),
    ],
)
def test_what_an_accept_header_asks_for(accept: str, wanted: bool) -> None:
    assert wants_openmetrics(accept) is wanted


def test_anything_else_is_not_there(site: tuple[Site, str]) -> None:
    _, url = site
    assert get(f"{url}/metrics/").status_code == 404
    assert get(f"{url}/-/").status_code == 404
    assert requests.post(f"{url}/metrics", timeout=5).status_code == 405
    head = requests.head(f"{url}/-/healthy", timeout=5)
    assert (head.status_code, head.content) == (200, b"")


def test_everything_else_is_the_pages(site: tuple[Site, str]) -> None:
    _, url = site
    answer = get(f"{url}/")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert get(f"{url}/api/v1/topics").json()["items"] == []
    head = requests.head(f"{url}/", timeout=5)
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["Content-Length"]) > 500
    assert get(f"{url}/t%C3%B6pic").status_code == 404
    assert "no page `/töpic`" in get(f"{url}/t%C3%B6pic").text


def test_a_port_in_use_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TidemarkError) as told:
            serve(Site(bytes, pages(), list), f"127.0.0.1:{port}")
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use." in str(told.value)
    assert "export.listen" in str(told.value)


def test_an_address_that_is_none_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError):
        serve(Site(bytes, pages(), list), "9754")


def test_clients_that_say_nothing_do_not_hold_others_up(site: tuple[Site, str]) -> None:
    _, url = site
    port = int(url.rpartition(":")[2])
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(10)]
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(get(f"{url}/-/healthy").status_code)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for connection in silent:
        connection.close()
    assert answers == [200] * 5
