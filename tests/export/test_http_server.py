"""The HTTP server over a real socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import requests
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from tests.export.make import NOW, render, table_of, view
from tidemark.core.errors import ConfigError
from tidemark.web.exchange import accepts_gzip, prefers_openmetrics
from tidemark.web.health import Health
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Exposition
from tidemark_exporters.export.own_metrics import ExportMetrics
from tidemark_exporters.export.table import Table
from tidemark_exporters.http_server import Site, serve_site
from tidemark_exporters.pages.responses import Pages

WAITING: list[str] = []


def pages() -> Pages:
    return Pages(Table(), 30.0, lambda: list(WAITING))


@pytest.fixture
def site() -> Iterator[tuple[Site, str]]:
    WAITING[:] = ["alerts", "partition views"]
    made = Site(ExportMetrics().registry.render, pages())
    server = serve_site(made, Health(lambda: list(WAITING)), "127.0.0.1:0")
    yield made, f"http://127.0.0.1:{server.port}"
    server.close()


@pytest.fixture
def url(site: tuple[Site, str]) -> str:
    return site[1]


@pytest.fixture
def exposed(site: tuple[Site, str]) -> Exposition:
    """What the site exposes of a table with one partition."""
    site[0].exposition = render(table_of(view()), EventCounters(), NOW, 1000)
    return site[0].exposition


def get(url: str, **headers: str) -> requests.Response:
    return requests.get(url, headers=headers, timeout=5)


def test_ready_once_all_topics_are_read(url: str) -> None:
    before = get(f"{url}/-/ready")
    assert (before.status_code, before.text) == (
        503,
        "not ready: waiting for alerts and partition views\n",
    )
    assert get(f"{url}/-/healthy").status_code == 200
    WAITING.clear()
    assert get(f"{url}/-/ready").status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_a_scrape_has_the_exposition_and_the_exporters_own_metrics(
    url: str, exposed: Exposition, encoding: str
) -> None:
    answer = get(f"{url}/metrics", **{"Accept-Encoding": encoding})
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers.get("Content-Encoding") == ("gzip" if encoding == "gzip" else None)
    named = {metric.name for metric in text_string_to_metric_families(answer.text)}
    assert {"tidemark_partition_leader", "tidemark_build_info", "tidemark_export_ready"} <= named
    assert answer.text.startswith((exposed.body + exposed.counters).decode())


@pytest.mark.usefixtures("exposed")
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_openmetrics_on_request(url: str, encoding: str) -> None:
    # The header of Prometheus 2.42.
    accept = (
        "application/openmetrics-text;version=1.0.0,"
        "application/openmetrics-text;version=0.0.1;q=0.75,"
        "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    )
    answer = get(f"{url}/metrics", **{"Accept-Encoding": encoding, "Accept": accept})
    assert (
        answer.headers["Content-Type"]
        == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    )
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"
    named = {metric.name for metric in openmetrics_families(answer.text)}  # type: ignore[no-untyped-call]
    assert {
        "tidemark_partition_leader",
        "tidemark_alerts_fired",
        "tidemark_build_info",
        "tidemark_dead_letters",
    } <= named
    assert answer.text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("understands", "header", "wanted"),
    [
        (prefers_openmetrics, "", False),
        (prefers_openmetrics, "*/*", False),
        (
            prefers_openmetrics,
            "text/plain;version=0.0.4;q=1,application/openmetrics-text;q=0.5",
            False,
        ),
        (prefers_openmetrics, "application/openmetrics-text;q=0", False),
        (
            prefers_openmetrics,
            "application/openmetrics-text; version=1.0.0; q=0.6,text/plain;q=0.5",
            True,
        ),
        (prefers_openmetrics, "application/openmetrics-text;q=nonsense", False),
        (
            prefers_openmetrics,
            "Application/OpenMetrics-Text;Version=1.0.0;Q=0.9,text/plain;q=0.4",
            True,
        ),
        # Other formats do not count: Prometheus with native histograms prefers protobuf.
        (
            prefers_openmetrics,
            (
                "application/vnd.google.protobuf;q=0.6,application/openmetrics-text;version=1.0.0;"
                "q=0.5,text/plain;q=0.2,*/*;q=0.1"
            ),
            True,
        ),
        (accepts_gzip, "", False),
        (accepts_gzip, "gzip, deflate", True),
        (accepts_gzip, "GZIP;q=0.5", True),
        (accepts_gzip, "x-gzip", True),
        (accepts_gzip, "*", True),
        (accepts_gzip, "gzip;q=0, *", False),
        (accepts_gzip, "gzip;q=0.0", False),
        (accepts_gzip, "br", False),
    ],
)
def test_the_formats_and_encodings_that_a_client_accepts(
    understands: Callable[[str], bool], header: str, wanted: bool
) -> None:
    assert understands(header) is wanted


def test_a_refused_encoding_is_not_sent(url: str) -> None:
    for path in ("/metrics", "/"):
        assert (
            "Content-Encoding"
            not in get(url + path, **{"Accept-Encoding": "gzip;q=0, identity"}).headers
        )
        assert get(url + path, **{"Accept-Encoding": "gzip"}).headers["Content-Encoding"] == "gzip"


def test_other_methods_are_refused_with_the_allowed_ones(url: str) -> None:
    for method, path in (
        ("POST", "/metrics"),
        ("PUT", "/"),
        ("DELETE", "/-/ready"),
        ("OPTIONS", "/static/tidemark.css"),
    ):
        answer = requests.request(method, url + path, timeout=5)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
        assert answer.text == "only GET and HEAD are answered.\n"
    refused = requests.patch(f"{url}/api/v1/topics", timeout=5)
    assert (refused.status_code, refused.headers["Allow"], refused.headers["Content-Type"]) == (
        405,
        "GET, HEAD",
        "application/problem+json",
    )
    assert refused.json() == {
        "type": "about:blank",
        "title": "Method Not Allowed",
        "status": 405,
        "detail": "only GET and HEAD are answered.",
    }


def test_a_failing_request_is_logged_and_exposes_no_internals(site: tuple[Site, str]) -> None:
    made, url = site

    def fails(*_: object) -> bytes:
        raise RuntimeError("a secret")

    made._own = fails
    made.pages._snapshots.current = fails  # type: ignore[method-assign,assignment]
    with capture_logs() as logged:
        answers = [get(url + path) for path in ("/metrics", "/", "/api/v1/topics")]
        head = requests.head(f"{url}/", timeout=5)
    assert [answer.status_code for answer in (*answers, head)] == [500] * 4
    assert head.content == b""
    assert all(
        "secret" not in answer.text and "could not answer" in answer.text for answer in answers
    )
    assert answers[2].headers["Content-Type"] == "application/problem+json"
    assert answers[2].json()["status"] == 500
    assert [entry["path"] for entry in logged] == ["/metrics", "/", "/api/v1/topics", "/"]
    assert get(f"{url}/-/healthy").status_code == 200


def test_an_unknown_path_is_not_found(url: str) -> None:
    assert get(f"{url}/metrics/").status_code == 404
    assert get(f"{url}/-/").status_code == 404
    assert requests.post(f"{url}/metrics", timeout=5).status_code == 405
    head = requests.head(f"{url}/-/healthy", timeout=5)
    assert (head.status_code, head.content) == (200, b"")


def test_other_paths_belong_to_the_pages(url: str) -> None:
    answer = get(f"{url}/")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert get(f"{url}/api/v1/topics").json()["items"] == []
    head = requests.head(f"{url}/", timeout=5)
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["Content-Length"]) > 500
    assert get(f"{url}/t%C3%B6pic").status_code == 404
    assert "Page `/töpic` does not exist" in get(f"{url}/t%C3%B6pic").text


def test_a_malformed_address_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError):
        serve_site(Site(bytes, pages()), Health(), "9754")
