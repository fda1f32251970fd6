"""What answers at a JMX endpoint, hostile answers included, and the source that reads it."""

from __future__ import annotations

import gzip
import socket
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from tests.collect.socket_answers import Answer, serving, text
from tidemark.collect.metrics import CollectMetrics
from tidemark.collect.source_readers import start_sources
from tidemark.collect.sources.jmx.endpoint import scrape
from tidemark.collect.sources.jmx.figures import ScrapeError
from tidemark.collect.sources.jmx.source import JmxSource
from tidemark.core.events import BrokerState, JmxFigures
from tidemark.settings import Cluster, Collect, JmxEndpoint, Settings
from tidemark_lab.brokers.wait import wait_until

FIGURES = b"kafka_server_replicamanager_isrshrinks_total 3.0\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


def sized(body: bytes, head: bytes = OK) -> Answer:
    return text(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def dripping(start: bytes, piece: bytes, pause: float = 0.02) -> Answer:
    def answer(client: socket.socket) -> None:
        client.sendall(start)
        while True:
            client.sendall(piece)
            time.sleep(pause)

    return answer


ENDLESS = b"kafka_network_x 1.0\n" * 10_000


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HOSTILE: dict[str, tuple[Answer, str]] = {
    # Kafka closes on the size that "GET " is.
    "a Kafka port": (text(b""), "no HTTP answer.*not Kafka's"),
    "another protocol": (text(b"SSH-2.0-OpenSSH_9.2\r\n"), "no HTTP answer"),
    "bytes": (text(bytes(range(256)) * 400), "no HTTP answer"),
    "HTML": (sized(b"<html><body>kafka</body></html>"), "HTML"),
    "JSON": (sized(b"{}"), "no Prometheus text"),
    "a redirect": (
        text(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"),
        "HTTP 302",
    ),
    "no right": (text(b"HTTP/1.1 401 Unauthorized\r\n\r\n"), "HTTP 401; .*authorization_file"),
    "an error": (text(b"HTTP/1.1 500 Oops\r\n\r\n"), "HTTP 500"),
    "gzip": (
        sized(gzip.compress(bytes(10**6)), OK + b"Content-Encoding: gzip\r\n"),
        "compressed",
    ),
    "100 MB announced": (text(OK + b"Content-Length: 104857600\r\n\r\n"), "longer than 64 MiB"),
    "100 MB": (text(OK + b"\r\n", *[ENDLESS] * 500), "longer than 64 MiB"),
    "a long line": (text(OK + b"\r\n" + b"x" * 200_000), "a line is longer"),
    "a cut body": (text(OK + b"Content-Length: 900\r\n\r\n" + FIGURES), "is cut"),
    "a wrong chunk": (text(CHUNKED + b"zz\r\n" + FIGURES), "is cut"),
    "a cut chunk": (text(CHUNKED + b"40\r\n" + FIGURES), "is cut"),
    "many headers": (text(OK + b"X: y\r\n" * 200 + b"\r\n"), "no HTTP answer"),
    "a long header": (text(OK + b"X: " + b"y" * 100_000 + b"\r\n\r\n"), "no HTTP answer"),
    "nothing": (text(b"HTTP/1.1 200 OK\r\n\r\n"), "empty"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_has_a_clear_reason(name: str) -> None:
    answer, reason = HOSTILE[name]
    with serving(answer) as endpoint, pytest.raises(ScrapeError, match=reason):
        scrape(endpoint, 20.0).event(1, 9.0)


SLOW: dict[str, Answer] = {
    "silence": dripping(b"", b""),
    "a header": dripping(b"HTTP/1.1 200 OK\r\nX: ", b"y"),
    "answers before the answer": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body": dripping(OK + b"Content-Length: 60000\r\n\r\n", b"k"),
    "a body of any length": dripping(OK + b"\r\n", b"#\n"),
    "headers after the body": dripping(CHUNKED + b"0\r\n", b"X: y\r\n"),
    "a large body": dripping(OK + b"\r\n", ENDLESS, 0.005),
}


@pytest.mark.parametrize("name", SLOW)
def test_no_answer_takes_longer_than_its_time(name: str) -> None:
    begun = time.monotonic()
    with (
        serving(SLOW[name]) as endpoint,
        pytest.raises(ScrapeError, match=r"no whole answer within 0.2 s.*jmx_timeout_seconds"),
    ):
        scrape(endpoint, 0.2)
    assert time.monotonic() - begun < 5.0


def test_a_chunk_of_a_negative_length_is_not_the_rest_of_the_stream() -> None:
    body = OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n"
    tracemalloc.start()
    try:
        with serving(text(body, *[b"x" * 10**6] * 30)) as endpoint, pytest.raises(ScrapeError):
            scrape(endpoint, 20.0).event(1, 9.0)
        # The server's own bytes are in it.
        assert tracemalloc.get_traced_memory()[1] < 15 * 10**6
    finally:
        tracemalloc.stop()


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ScrapeError, match="connection refused; is the agent on"):
        scrape(JmxEndpoint(broker=1, url=f"http://127.0.0.1:{port}/metrics"), 1.0)


def test_https_names_what_is_missing(tmp_path: Path) -> None:
    with serving(text(b"HTTP/1.1 400 no TLS here\r\n\r\n")) as endpoint:
        endpoint.url = endpoint.url.replace("http:", "https:")
        with pytest.raises(ScrapeError, match="no TLS there"):
            scrape(endpoint, 5.0)
        endpoint.ca_file = str(tmp_path / "absent.pem")
        with pytest.raises(ScrapeError, match=r"cannot read ca_file: No such file"):
            scrape(endpoint, 5.0)


def test_credentials_are_read_each_time_and_never_printed(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def answer(client: socket.socket) -> None:
        seen.append(client.recv(65536))
        sized(FIGURES)(client)

    file = tmp_path / "token"
    with serving(answer, read=False) as endpoint:
        endpoint.authorization_file = str(file)
        with pytest.raises(ScrapeError, match="cannot read authorization_file"):
            scrape(endpoint, 5.0)
        for token in ("Bearer one", "Bearer two"):
            file.write_text(token + "\n", encoding="utf-8")
            scrape(endpoint, 5.0)
        file.write_text("secret\r\nX: y", encoding="utf-8")
        with pytest.raises(ScrapeError, match="not one line of printable ASCII") as caught:
            scrape(endpoint, 5.0)
    assert "secret" not in str(caught.value)
    lines = [request.decode().split("\r\n") for request in seen]
    assert [b for head in lines for b in head if b.startswith("Auth")] == [
        "Authorization: Bearer one",
        "Authorization: Bearer two",
    ]
    assert all("Accept-Encoding: identity" in head for head in lines)


def test_a_chunked_answer_is_read() -> None:
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(FIGURES), FIGURES)
    with serving(text(OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)) as endpoint:
        event = scrape(endpoint, 5.0).event(1, 9.0)
    assert event.jmx == JmxFigures(isr_shrinks=3)


def eventually(found: Callable[[], object]) -> None:
    wait_until(found, 20.0, "it happens")


def test_the_source_gives_the_newest_figures_and_logs_each_change_once() -> None:
    settings = Collect(collector="k", jmx_seconds=0.02, jmx_timeout_seconds=5.0)
    notes: list[tuple[int, bool]] = []
    failed = [sized(b"<html>")] * 3
    with (
        serving(sized(FIGURES), *failed, sized(FIGURES)) as good,
        serving(text(b"")) as kafka,
        structlog.testing.capture_logs() as logs,
    ):
        kafka.broker = 2
        cluster = Cluster(name="c", jmx=[good, kafka])
        source = JmxSource(cluster, settings, lambda broker, ok: notes.append((broker, ok)))
        try:
            eventually(lambda: notes.count((1, True)) >= 3 and notes.count((2, False)) >= 3)
            before = time.time()
            events = source.take()
        finally:
            source.close()
    assert len(events) == 1
    (event,) = events
    assert isinstance(event, BrokerState)
    assert (event.broker, event.jmx) == (1, JmxFigures(isr_shrinks=3))
    assert abs(before - event.observed_at) < 30.0
    assert [note for note in notes if note[0] == 1][:5] == [(1, ok) for ok in (1, 0, 0, 0, 1)]
    assert [(log["broker"], log["event"]) for log in logs if log["broker"] == 1] == [
        (1, "JMX cannot be read"),
        (1, "JMX is read again"),
    ]
    assert [log["reason"] for log in logs if log["broker"] == 2] == [
        "no HTTP answer; is this the agent's port, not Kafka's?"
    ]


def test_a_failure_that_no_one_foresaw_ends_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("token=secret")

    monkeypatch.setattr("tidemark.collect.sources.jmx.source.scrape", fail)
    notes: list[bool] = []
    endpoint = JmxEndpoint(broker=1, url="http://127.0.0.1:1/metrics?token=secret")
    settings = Collect(collector="k", jmx_seconds=0.01)
    with structlog.testing.capture_logs() as logs:
        source = JmxSource(
            Cluster(name="c", jmx=[endpoint]), settings, lambda _, ok: notes.append(ok)
        )
        eventually(lambda: len(notes) >= 3)
        source.close()
    assert source.take() == []
    assert [log["reason"] for log in logs] == ["RuntimeError while reading"]
    assert "secret" not in str(logs)


def test_the_collector_reads_what_is_configured_and_exposes_the_state() -> None:
    metrics = CollectMetrics()
    assert start_sources(Cluster(name="c"), Settings(), metrics) == []
    settings = Settings(collect=Collect(collector="k", jmx_seconds=0.05))

    def up(broker: int) -> float | None:
        labels = {"kafka_cluster": "c", "broker": str(broker)}
        return metrics.registry.get_sample_value("tidemark_collect_jmx_up", labels)

    with serving(sized(FIGURES)) as good, serving(text(b"")) as kafka:
        kafka.broker = 2
        (source,) = start_sources(Cluster(name="c", jmx=[good, kafka]), settings, metrics)
        eventually(lambda: (up(1), up(2)) == (1.0, 0.0))
        source.close()
