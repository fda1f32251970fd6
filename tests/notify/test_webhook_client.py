"""Posting to real HTTP servers on this machine: signatures, retries and refusals."""

from __future__ import annotations

import base64
import os
import random
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import certifi
import pytest
from standardwebhooks.webhooks import Webhook

from tests.http_server import Handler, serving
from tidemark.core.errors import ConfigError
from tidemark.settings import Alertmanager, Receiver, Route
from tidemark.web.webhook_client import (
    MAX_ANSWER_BYTES,
    MAX_RETRY_AFTER_SECONDS,
    MIN_RETRY_AFTER_SECONDS,
    Answer,
    HttpClient,
    NotDeliveredError,
    make_clients,
)

STATUSES = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 429 Slow\r\n",
    b"HTTP/1.1 302 F\r\nLocation: http://[\r\n",
    b"HTTP/1.1 99999 x\r\n",
    b"",
]
SCRAPS = [
    *(
        b"Content-Length: 1, 2\r\n",
        b"Content-Length: -5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Encoding: gzip\r\n",
    ),
    *(
        b"Retry-After: \xb2\r\n",
        b"Retry-After: Fri, 31 Dec 9999 23:59:59 -2359\r\n",
        b"Set-Cookie: a=\xff; domain=\x00\r\n",
    ),
    *(
        b"bad\r\n",
        b"\r\n",
        b"zz\r\n",
        b"\x1f\x8b\x08garbage",
        b"5\r\nhello\r\n",
        b"\xff\xfe\x00",
        b"X" * 70_000 + b"\r\n",
    ),
]


class Hook(HTTPServer):
    """Answers with `status` and `headers`, and keeps what it was sent."""

    status = 200
    extra: dict[str, str] = {}
    answer = b""
    seen: list[tuple[dict[str, str], bytes]]


class HookHandler(Handler):
    server: Hook

    def do_POST(self) -> None:
        self.server.seen.append((dict(self.headers.items()), self.body()))
        self.reply(self.server.status, self.server.answer, **self.server.extra)


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving(Hook(("127.0.0.1", 0), HookHandler)) as server:
        server.seen = []
        yield server


def receiver(server: Hook, **changes: Any) -> Receiver:
    return Receiver(
        name="hook", url=f"http://127.0.0.1:{server.server_port}/in?key=hidden", **changes
    )


def client(route: Route) -> HttpClient:
    (only,) = make_clients(route)
    return only


def post(sender: HttpClient) -> Answer:
    return sender.post(b"{}", "msg_1")


def failure(sender: HttpClient) -> NotDeliveredError:
    with pytest.raises(NotDeliveredError) as failed:
        post(sender)
    return failed.value


def config_error(route: Route) -> str:
    """One line that names the receiver."""
    with pytest.raises(ConfigError, match=r"^configuration: receiver `hook`: .*\.$") as failed:
        make_clients(route)
    assert "\n" not in str(failed.value)
    return str(failed.value)


def test_a_post_carries_the_body_and_who_sends_it(hook: Hook) -> None:
    client(receiver(hook)).post(b'{"a":1}', "msg_1")
    ((headers, body),) = hook.seen
    assert body == b'{"a":1}'
    assert headers["Content-Type"] == "application/json"
    assert headers["webhook-id"] == "msg_1"
    assert headers["User-Agent"].startswith("tidemark/")
    assert "webhook-signature" not in headers


def test_a_set_of_alertmanagers_has_a_client_for_each_instance(hook: Hook) -> None:
    here = f"127.0.0.1:{hook.server_port}"
    urls = [f"http://{here}/x/", "https://am-2/api/v2/alerts"]
    first, second = make_clients(Alertmanager(name="main", urls=urls))
    assert [first.name, second.name] == [f"main/{here}", "main/am-2"]
    assert [first.host, second.host] == [here, "am-2"]
    assert [first._url, second._url] == [
        f"http://{here}/x/api/v2/alerts",
        "https://am-2/api/v2/alerts",
    ]
    first.post(b"[]", None)
    assert not any(name.startswith("webhook-") for name in hook.seen[0][0])


def test_the_signature_verifies(hook: Hook, tmp_path: Path) -> None:
    secret = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
    (tmp_path / "secret").write_text(secret + "\n")
    signing = client(receiver(hook, secret_file=str(tmp_path / "secret")))
    signing.post('{"name":"é"}'.encode(), "msg_1")
    ((headers, body),) = hook.seen
    assert Webhook(secret).verify(body, headers) == {"name": "é"}


@pytest.mark.parametrize(
    ("status", "refused"),
    [
        *((status, False) for status in (302, 401, 403, 404, 408, 410, 429, 500, 503)),
        *((status, True) for status in (400, 413, 422)),
    ],
)
def test_only_the_content_is_refused(hook: Hook, status: int, refused: bool) -> None:
    hook.status = status
    failed = failure(client(receiver(hook)))
    assert (str(failed), failed.refused) == (f"HTTP {status}", refused)
    assert len(hook.seen) == 1


@pytest.mark.parametrize("place", ["/elsewhere", "http://[", "http://\u00ff", ""])
def test_no_redirect_is_followed(hook: Hook, place: str) -> None:
    hook.status, hook.extra = 302, {"Location": place}
    assert str(failure(client(receiver(hook)))) == "HTTP 302"
    assert len(hook.seen) == 1


def test_any_answer_is_an_answer_or_a_failure_without_the_address() -> None:
    """Scraps of HTTP in any order raise NotDeliveredError and nothing else."""
    chance = random.Random(1)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for _ in range(200):
                connection, _ = server.accept()
                scraps = chance.choices(SCRAPS, k=chance.randint(0, 6))
                with connection, suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(b"".join([chance.choice(STATUSES), *scraps]))

        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/s3cret"
        sender = client(Receiver(name="hook", url=url, timeout_seconds=2))
        texts = []
        for _ in range(200):
            try:
                post(sender)
            except NotDeliveredError as error:
                texts.append(str(error))
    assert texts
    assert not any("s3cret" in text for text in texts)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("7", 7.0),
        ("3600", MAX_RETRY_AFTER_SECONDS),
        # No receiver makes us post without a pause.
        ("0", MIN_RETRY_AFTER_SECONDS),
        ("Fri, 31 Dec 1999 23:59:59 GMT", MIN_RETRY_AFTER_SECONDS),
        ("Fri, 31 Dec 2199 23:59:59 GMT", MAX_RETRY_AFTER_SECONDS),
        ("Fri, 31 Dec 0001 23:59:59 -0000", MIN_RETRY_AFTER_SECONDS),
        ("soon", None),
        ("-1", None),
        ("\u00b2", None),
    ],
)
def test_retry_after_is_respected_within_bounds(
    hook: Hook, header: str, expected: float | None
) -> None:
    hook.status, hook.extra = 429, {"Retry-After": header}
    assert failure(client(receiver(hook))).after_seconds == expected


def test_retry_after_may_be_a_date(hook: Hook) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    hook.status, hook.extra = 503, {"Retry-After": date}
    assert failure(client(receiver(hook))).after_seconds == pytest.approx(19, abs=2)


def test_a_refused_connection_may_pass_and_the_address_is_not_printed(hook: Hook) -> None:
    sender = client(receiver(hook))
    hook.shutdown()
    hook.server_close()
    failed = failure(sender)
    assert not failed.refused
    assert "hidden" not in str(failed)


def test_only_an_answer_is_a_refusal(hook: Hook, tmp_path: Path) -> None:
    ca_file = tmp_path / "ca"
    shutil.copy(certifi.where(), ca_file)
    url = f"https://127.0.0.1:{hook.server_port}/"
    sender = client(Receiver(name="hook", url=url, ca_file=str(ca_file)))
    ca_file.unlink()
    assert not failure(sender).refused


def test_the_address_may_come_from_a_file(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"http://127.0.0.1:{hook.server_port}/\n")
    post(client(Receiver(name="hook", url_file=str(tmp_path / "url"))))
    assert len(hook.seen) == 1


def test_the_authorization_comes_from_its_file_and_wins_over_netrc(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    (tmp_path / "token").write_text("Bearer s3cret\n")
    post(client(receiver(hook, authorization_file=str(tmp_path / "token"))))
    post(client(receiver(hook)))
    assert [headers.get("Authorization") for headers, _ in hook.seen] == ["Bearer s3cret", None]


def test_a_token_may_be_replaced_while_the_exporter_runs(hook: Hook, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("Bearer old\n")
    sender = client(receiver(hook, authorization_file=str(token)))
    post(sender)
    token.write_text("Bearer new\n")
    post(sender)
    token.unlink()
    post(sender)
    sent = [headers["Authorization"] for headers, _ in hook.seen]
    assert sent == ["Bearer old", "Bearer new", "Bearer new"]


NO_HEADERS = ("Bearer s3cret\nBearer other", "Bearer s3cret\u20ac", "Bearer s3cret\x00")


@pytest.mark.parametrize("text", NO_HEADERS)
def test_an_authorization_that_is_no_header_never_replaces_one(
    hook: Hook, tmp_path: Path, text: str
) -> None:
    token = tmp_path / "token"
    token.write_text("Bearer old\n")
    sender = client(receiver(hook, authorization_file=str(token)))
    token.write_text(text)
    post(sender)
    assert [headers["Authorization"] for headers, _ in hook.seen] == ["Bearer old"]


def with_file(option: str, path: str) -> Receiver:
    """A receiver with this file; an address in one is its only address."""
    options: dict[str, Any] = {"url": "http://127.0.0.1:1/", option: path}
    if option == "url_file":
        del options["url"]
    return Receiver(name="hook", **options)


@pytest.mark.parametrize(
    ("option", "content", "texts"),
    [
        *(
            ("url_file", content, ("url_file: it is not an http:// or https:// URL",))
            for content in (
                b"hooks.example.org/s3cret",
                b"http:///s3cret",
                b"http://a/s3cret\nhttp://b/s3cret",
            )
        ),
        # `requests` drops it where it is given an authorization of its own.
        (
            "url_file",
            b"https://user:s3cret@hooks.example.org/in\n",
            ("no user and no password", "authorization_file"),
        ),
        *(
            ("secret_file", content, ("receiver `hook`: secret_file: ",))
            for content in (
                *(None, b"", b"\xff\xfe", b"whsec_", b"whsec_not base64 \xc3\xa9"),
                b"my-secret_of-16_",
            )
        ),
        *(
            (
                "authorization_file",
                text.encode(),
                ("authorization_file: cannot read the file: ", "one line of printable ASCII"),
            )
            for text in NO_HEADERS
        ),
        *(
            (option, None, (f"{option}: cannot read the file: No such file",))
            for option in ("authorization_file", "ca_file")
        ),
    ],
)
def test_a_wrong_file_is_one_clear_line(
    tmp_path: Path, option: str, content: bytes | None, texts: tuple[str, ...]
) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    error = config_error(with_file(option, str(path)))
    assert [text for text in texts if text not in error] == []
    assert "s3cret" not in error


@pytest.mark.parametrize("option", ["url_file", "authorization_file", "secret_file", "ca_file"])
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_file_without_an_end_is_one_clear_line(option: str, device: str) -> None:
    problem = "it is not a regular file" if option == "ca_file" else "it is larger than 65536 bytes"
    assert f"{option}: cannot read the file: {problem}" in config_error(with_file(option, device))


def test_an_authorization_from_a_pipe_is_kept(hook: Hook) -> None:
    """A shell's <(…) can be read once."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"Bearer once\n")
    os.close(write_end)
    sender = client(receiver(hook, authorization_file=f"/dev/fd/{read_end}"))
    for _ in range(2):
        post(sender)
    os.close(read_end)
    assert [headers["Authorization"] for headers, _ in hook.seen] == ["Bearer once"] * 2


def test_the_beginning_of_an_answer_is_kept(hook: Hook) -> None:
    hook.answer = b"thank\n you" + b"!" * 2000
    assert post(client(receiver(hook))).text.startswith("thank you!!!")
    hook.status = 400
    failed = failure(client(receiver(hook)))
    assert (failed.status, failed.refused) == (400, True)
    assert failed.text.startswith("thank you")
    assert len(failed.text) <= MAX_ANSWER_BYTES


def test_a_receiver_that_accepts_and_does_not_answer_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        failed = failure(client(Receiver(name="hook", url=url, timeout_seconds=0.1)))
    assert str(failed).startswith("ReadTimeout")
    assert not failed.refused


@pytest.mark.parametrize("dripped", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX: "])
def test_a_receiver_that_drips_its_headers_times_out(dripped: bytes) -> None:
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(dripped)
            while not ended.wait(0.05):
                connection.sendall(b"x" if dripped.endswith(b": ") else b"X: y\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        began = time.monotonic()
        try:
            error = failure(client(Receiver(name="hook", url=url, timeout_seconds=0.4)))
        finally:
            ended.set()
            thread.join()
    assert time.monotonic() - began < 5
    assert str(error) == "ReadTimeout: no whole answer within 0.4 s"
