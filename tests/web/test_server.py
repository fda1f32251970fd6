"""The server against clients that are slow, silent or many; tests/fuzz has hostile ones."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http import HTTPStatus
from pathlib import Path
from statistics import median

import pytest
import requests
from structlog.testing import capture_logs

from tests.web.serving import certificate, echo, serving
from tidemark.web import connections
from tidemark.web import server as module
from tidemark.web.exchange import SECURITY, Request, Response, text_response
from tidemark.web.health import Health
from tidemark.web.server import WebServer


@pytest.fixture(scope="module")
def shared() -> Iterator[WebServer]:
    with serving() as server:
        yield server


def connect(server: WebServer, text: bytes = b"", trusted: Path | None = None) -> socket.socket:
    """A connection that has sent `text`; over TLS where there is a folder with the certificate."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    if trusted is not None:
        context = ssl.create_default_context(cafile=trusted / "server.crt")
        connection = context.wrap_socket(connection, server_hostname="127.0.0.1")
    connection.sendall(text)
    return connection


def tls_file(folder: Path) -> Path:
    certificate(folder, "server")
    path = folder / "web.yml"
    path.write_text("tls_server_config: {cert_file: server.crt, key_file: server.key}\n")
    return path


def seconds_to_healthy(server: WebServer, trusted: Path | None = None) -> float:
    scheme = "http" if trusted is None else "https"
    verify = True if trusted is None else str(trusted / "server.crt")
    began = time.monotonic()
    url = f"{scheme}://127.0.0.1:{server.port}/-/healthy"
    answer = requests.get(url, verify=verify, timeout=10)
    assert answer.status_code == 200
    return time.monotonic() - began


@pytest.mark.parametrize("with_tls", [False, True])
def test_idle_and_dripping_connections_keep_no_probe_waiting(
    with_tls: bool, tmp_path: Path
) -> None:
    """With TLS: idle before the handshake and after it, and a drip of the handshake itself."""
    number = 60 if with_tls else 200
    config = tls_file(tmp_path) if with_tls else None
    with serving(config) as server, ExitStack() as stack:
        idle = [stack.enter_context(closing(connect(server))) for _ in range(number)]
        drips = [
            stack.enter_context(closing(connect(server, b"GET / HTTP/1.1\r\nX: ", tmp_path)))
            if with_tls and place % 2
            # The beginning of a handshake, of which the rest drips.
            else stack.enter_context(closing(connect(server, b"\x16\x03\x01\x02\x00")))
            if with_tls
            else stack.enter_context(closing(connect(server, b"GET / HTTP/1.1\r\nX: ")))
            for place in range(number)
        ]
        seconds = []
        for _ in range(5):
            for connection in drips:
                # The server has closed those beyond its bound.
                try:
                    connection.sendall(b"x")
                except OSError:
                    continue
            seconds.append(seconds_to_healthy(server, tmp_path if with_tls else None))
        # Connections would hold each of them; a busy machine holds one of them now and then.
        assert median(seconds) < 1.0
        assert len(idle) == number


def test_headers_have_one_deadline_however_they_drip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEADER_SECONDS", 0.5)
    with serving() as server, closing(connect(server, b"GET / HTTP/1.1\r\n")) as connection:
        connection.settimeout(0.1)
        began = time.monotonic()
        while time.monotonic() - began < 10:
            try:
                connection.sendall(b"X: y\r\n")
                if connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert 0.4 < time.monotonic() - began < 5


def test_a_body_has_one_deadline_and_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BODY_SECONDS", 0.5)
    with serving() as server:
        begun = b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1"
        with closing(connect(server, begun)) as connection:
            assert connection.recv(100) == b""
        large = b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n"
        with closing(connect(server, large)) as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
        connection = connect(server, b"GET / HTTP/1.1\r\nX: ")
        with closing(connection), pytest.raises(OSError):
            endless(connection)


def endless(connection: socket.socket) -> None:
    for _ in range(1_000):
        connection.sendall(b"x" * 10_000)


def test_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITE_SECONDS", 0.3)
    closed, close = threading.Event(), module._close

    def note(connection: object) -> None:
        close(connection)
        closed.set()

    monkeypatch.setattr(module, "_close", note)
    with serving() as server:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        with closing(connection):
            connection.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
            assert closed.wait(20)
            connection.settimeout(10)
            read = 0
            while chunk := connection.recv(1 << 20):
                read += len(chunk)
        assert read < 48_000_000


def test_pages_delay_no_scrape_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REQUESTS", 8)
    with serving() as server:
        base, codes = f"http://127.0.0.1:{server.port}", []

        def ask() -> None:
            codes.append(requests.get(f"{base}/slow", timeout=20).status_code)

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        assert seconds_to_healthy(server) < 1.0
        for thread in threads:
            thread.join()
        assert set(codes) == {200, 503}
        assert requests.get(f"{base}/metrics", timeout=5).text == "/metrics\n"


def test_scrapes_that_come_together_get_one_answer() -> None:
    computed = list[str]()
    ended = threading.Event()

    def app(asked: Request) -> Response:
        computed.append(asked.headers.get("Accept", ""))
        assert ended.wait(20)
        return text_response(HTTPStatus.OK, f"number {len(computed)}")

    with serving(app=app) as server, ExitStack() as stack:
        text = b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        first = [stack.enter_context(closing(connect(server, text))) for _ in range(150)]
        # Those before it have been read once it is answered.
        seconds_to_healthy(server)
        ended.set()
        answers = [b"".join(iter(lambda each=each: each.recv(4096), b"")) for each in first]  # type: ignore[misc]
        assert len(computed) == 1
        assert all(answer.endswith(b"number 1\n") for answer in answers)
        assert (
            requests.get(f"http://127.0.0.1:{server.port}/metrics", timeout=5).text == "number 2\n"
        )


@pytest.mark.parametrize("is_slow", [False, True])
def test_of_answers_that_are_not_taken_those_of_slow_clients_end(
    monkeypatch: pytest.MonkeyPatch, is_slow: bool
) -> None:
    """Four of 48 MB each, with a bound of 100 MB."""
    monkeypatch.setattr(connections, "MAX_UNTAKEN_BYTES", 100_000_000)
    monkeypatch.setattr(connections, "SLOW_SECONDS", 0.0 if is_slow else 60.0)
    text = b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with serving() as server, ExitStack() as stack:
        clients = list[socket.socket]()
        for _ in range(4):
            clients.append(stack.enter_context(closing(connect(server, text))))
            assert clients[-1].recv(1) == b"H"
        sizes = [size_until_end(client) for client in clients]
    assert [size > 48_000_000 for size in sizes] == [not is_slow, not is_slow, True, True]


def size_until_end(connection: socket.socket) -> int:
    size = 0
    with suppress(ConnectionResetError):
        while chunk := connection.recv(1 << 20):
            size += len(chunk)
    return size


def test_a_failing_page_says_nothing_of_its_inside(shared: WebServer) -> None:
    with capture_logs() as logged:
        answer = requests.get(f"http://127.0.0.1:{shared.port}/fails", timeout=5)
    assert (answer.status_code, "secret" in answer.text) == (500, False)
    assert [entry["path"] for entry in logged] == ["/fails"]


def test_every_answer_has_the_security_headers(shared: WebServer) -> None:
    for method, path in (("GET", "/x"), ("GET", "/-/ready"), ("HEAD", "/"), ("POST", "/")):
        answer = requests.request(method, f"http://127.0.0.1:{shared.port}{path}", timeout=5)
        assert [(name, answer.headers[name]) for name, _ in SECURITY] == SECURITY, (method, path)
        assert "Server" not in answer.headers


def test_probes_name_what_is_missing_and_what_is_stuck() -> None:
    waiting, stuck = ["kafka"], ["no pass of cluster a for 90 s"]
    with serving(health=Health(lambda: waiting, lambda: stuck)) as server:
        base = f"http://127.0.0.1:{server.port}/-"
        for probe, text in (
            ("ready", "not ready: waiting for kafka\n"),
            ("healthy", "not healthy: no pass of cluster a for 90 s\n"),
        ):
            answer = requests.get(f"{base}/{probe}", timeout=5)
            assert (answer.status_code, answer.text) == (503, text)
        waiting.clear()
        stuck.clear()
        assert requests.get(f"{base}/ready", timeout=5).text == "ready\n"
        assert requests.get(f"{base}/healthy", timeout=5).text == "healthy\n"


def test_it_ends_at_once_with_connections_open() -> None:
    with serving(app=echo) as server:
        connections = [connect(server) for _ in range(5)]
        began = time.monotonic()
        server.close()
        assert time.monotonic() - began < 2.0
    for connection in connections:
        connection.close()
