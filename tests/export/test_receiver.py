"""Posting to real HTTP servers on this machine: signature, what is tried again, what is not."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from tidemark.core.errors import ConfigError
from tidemark.settings import Receiver
from tidemark_exporters.notify.receiver import MAX_RETRY_AFTER_SECONDS, NotDeliveredError, WebhookTransport


class Hook(HTTPServer):
    """Answers with `status` and `headers`, and keeps what it was sent."""

    status = 200
    extra: dict[str, str] = {}
    seen: list[tuple[dict[str, str], bytes]]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Hook)
        server.seen.append((dict(self.headers.items()), self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(server.status)
        for name, value in {"Content-Length": "0", **server.extra}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Hook]:
    server = Hook(("127.0.0.1", 0), Handler)
    server.seen = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def receiver(server: Hook, **changes: Any) -> Receiver:
    return Receiver(name="hook", url=f"http://127.0.0.1:{server.server_port}/in?key=hidden", **changes)


def test_a_post_carries_the_body_and_who_sends_it(hook: Hook) -> None:
    WebhookTransport(receiver(hook)).post("msg_1", b'{"a":1}')
    ((headers, body),) = hook.seen
    assert body == b'{"a":1}'
    assert headers["Content-Type"] == "application/json"
    assert headers["webhook-id"] == "msg_1"
    assert headers["User-Agent"].startswith("tidemark/")
    assert "webhook-signature" not in headers


def test_the_signature_verifies(hook: Hook, tmp_path: Path) -> None:
    secret = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
    (tmp_path / "secret").write_text(secret + "\n")
    WebhookTransport(receiver(hook, secret_file=str(tmp_path / "secret"))).post("msg_1", '{"name":"é"}'.encode())
    ((headers, body),) = hook.seen
    assert Webhook(secret).verify(body, headers) == {"name": "é"}


@pytest.mark.parametrize(("status", "again"), [(500, True), (503, True), (429, True), (400, False), (404, False), (302, False)])
def test_which_answers_are_worth_another_attempt(hook: Hook, status: int, again: bool) -> None:
    hook.status = status
    with pytest.raises(NotDeliveredError, match=f"^HTTP {status}$") as told:
        WebhookTransport(receiver(hook)).post("msg_1", b"{}")
    assert told.value.again is again
    assert len(hook.seen) == 1


@pytest.mark.parametrize(("header", "expected"), [("7", 7.0), ("3600", MAX_RETRY_AFTER_SECONDS), ("Fri, 31 Dec 1999 23:59:59 GMT", None)])
def test_a_receiver_may_ask_for_time_within_bounds(hook: Hook, header: str, expected: float | None) -> None:
    hook.status, hook.extra = 429, {"Retry-After": header}
    with pytest.raises(NotDeliveredError) as told:
        WebhookTransport(receiver(hook)).post("msg_1", b"{}")
    assert told.value.after_seconds == expected


def test_nobody_there_is_worth_another_attempt_and_the_address_is_not_told(hook: Hook) -> None:
    target = receiver(hook)
    hook.shutdown()
    hook.server_close()
    with pytest.raises(NotDeliveredError) as told:
        WebhookTransport(target).post("msg_1", b"{}")
    assert told.value.again
    assert "hidden" not in str(told.value)


def test_the_address_may_come_from_a_file(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"http://127.0.0.1:{hook.server_port}/\n")
    WebhookTransport(Receiver(name="hook", url_file=str(tmp_path / "url"))).post("msg_1", b"{}")
    assert len(hook.seen) == 1


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"whsec_", b"whsec_not base64 \xc3\xa9"])
def test_a_secret_that_is_none_is_one_clear_line(hook: Hook, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as told:
        WebhookTransport(receiver(hook, secret_file=str(path)))
    assert "receiver `hook`" in str(told.value)
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)
