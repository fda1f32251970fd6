"""Posting to real HTTP servers on this machine: signature, what is tried again, what is not."""

from __future__ import annotations

import base64
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from tests.export.make import MemoryStore, alert
from tests.export.make import told as told_of
from tidemark.core.errors import ConfigError
from tidemark.local.receiver import WebhookReceiver
from tidemark.settings import Receiver
from tidemark_exporters.notify.commits import BackgroundStore
from tidemark_exporters.notify.courier import Courier
from tidemark_exporters.notify.outbox import Outbox
from tidemark_exporters.notify.receiver import (
    MAX_ANSWER_BYTES,
    MAX_RETRY_AFTER_SECONDS,
    MIN_RETRY_AFTER_SECONDS,
    NotDeliveredError,
    WebhookTransport,
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


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Hook)
        server.seen.append(
            (dict(self.headers.items()), self.rfile.read(int(self.headers["Content-Length"])))
        )
        self.send_response(server.status)
        for name, value in {"Content-Length": str(len(server.answer)), **server.extra}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(server.answer)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Hook]:
    server = Hook(("127.0.0.1", 0), Handler)
    server.seen = []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def receiver(server: Hook, **changes: Any) -> Receiver:
    return Receiver(
        name="hook", url=f"http://127.0.0.1:{server.server_port}/in?key=hidden", **changes
    )


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
    WebhookTransport(receiver(hook, secret_file=str(tmp_path / "secret"))).post(
        "msg_1", '{"name":"é"}'.encode()
    )
    ((headers, body),) = hook.seen
    assert Webhook(secret).verify(body, headers) == {"name": "é"}


@pytest.mark.parametrize(
    ("status", "again"),
    [(500, True), (503, True), (429, True), (408, True), (400, False), (404, False), (302, False)],
)
def test_which_answers_are_worth_another_attempt(hook: Hook, status: int, again: bool) -> None:
    hook.status = status
    with pytest.raises(NotDeliveredError, match=f"^HTTP {status}$") as told:
        WebhookTransport(receiver(hook)).post("msg_1", b"{}")
    assert told.value.again is again
    assert len(hook.seen) == 1


@pytest.mark.parametrize("place", ["/elsewhere", "http://[", "http://\u00ff", ""])
def test_nobody_is_sent_elsewhere(hook: Hook, place: str) -> None:
    hook.status, hook.extra = 302, {"Location": place}
    with pytest.raises(NotDeliveredError, match=r"^HTTP 302$"):
        WebhookTransport(receiver(hook)).post("msg_1", b"{}")
    assert len(hook.seen) == 1


def test_whatever_is_answered_it_is_an_answer_or_none() -> None:
    """Scraps of HTTP in any order: nothing but NotDeliveredError comes of it, and never the address."""
    chance = random.Random(1)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for _ in range(200):
                client, _ = server.accept()
                with client, suppress(OSError):
                    client.recv(65536)
                    client.sendall(
                        b"".join(
                            [
                                chance.choice(STATUSES),
                                *chance.choices(SCRAPS, k=chance.randint(0, 6)),
                            ]
                        )
                    )

        threading.Thread(target=answer, daemon=True).start()
        transport = WebhookTransport(
            Receiver(
                name="hook",
                url=f"http://127.0.0.1:{server.getsockname()[1]}/s3cret",
                timeout_seconds=2,
            )
        )
        told = []
        for _ in range(200):
            try:
                transport.post("msg_1", b"{}")
            except NotDeliveredError as error:
                told.append(str(error))
    assert told
    assert not any("s3cret" in text for text in told)


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
def test_a_receiver_may_ask_for_time_within_bounds(
    hook: Hook, header: str, expected: float | None
) -> None:
    hook.status, hook.extra = 429, {"Retry-After": header}
    with pytest.raises(NotDeliveredError) as told:
        WebhookTransport(receiver(hook)).post("msg_1", b"{}")
    assert told.value.after_seconds == expected


def test_a_receiver_may_name_the_time(hook: Hook) -> None:
    hook.status, hook.extra = (
        503,
        {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)},
    )
    with pytest.raises(NotDeliveredError) as told:
        WebhookTransport(receiver(hook)).post("msg_1", b"{}")
    assert told.value.after_seconds == pytest.approx(19, abs=2)


def test_nobody_there_is_worth_another_attempt_and_the_address_is_not_told(hook: Hook) -> None:
    target = receiver(hook)
    hook.shutdown()
    hook.server_close()
    with pytest.raises(NotDeliveredError) as told:
        WebhookTransport(target).post("msg_1", b"{}")
    assert told.value.again
    assert "hidden" not in str(told.value)


def test_only_an_answer_says_no(hook: Hook, tmp_path: Path) -> None:
    """What cannot be posted for now, for whatever reason, is kept."""
    (tmp_path / "ca").write_text("none")
    transport = WebhookTransport(
        Receiver(
            name="hook", url=f"https://127.0.0.1:{hook.server_port}/", ca_file=str(tmp_path / "ca")
        )
    )
    (tmp_path / "ca").unlink()
    with pytest.raises(NotDeliveredError) as told:
        transport.post("msg_1", b"{}")
    assert told.value.again


@pytest.mark.parametrize(
    "text", ["hooks.example.org/s3cret", "http:///s3cret", "http://a/s3cret\nhttp://b/s3cret"]
)
def test_a_file_without_an_address_is_one_clear_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "url").write_text(text)
    with pytest.raises(
        ConfigError, match=r"receiver `hook`: url_file .*url holds no http:// or https:// address"
    ) as told:
        WebhookTransport(Receiver(name="hook", url_file=str(tmp_path / "url")))
    assert "s3cret" not in str(told.value)


def test_the_address_may_come_from_a_file(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"http://127.0.0.1:{hook.server_port}/\n")
    WebhookTransport(Receiver(name="hook", url_file=str(tmp_path / "url"))).post("msg_1", b"{}")
    assert len(hook.seen) == 1


@pytest.mark.parametrize(
    "content",
    [None, b"", b"\xff\xfe", b"whsec_", b"whsec_not base64 \xc3\xa9", b"my-secret_of-16_"],
)
def test_a_secret_that_is_none_is_one_clear_line(
    hook: Hook, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as told:
        WebhookTransport(receiver(hook, secret_file=str(path)))
    assert "receiver `hook`" in str(told.value)
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)


def test_the_authorization_comes_from_its_file_and_wins_over_netrc(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    (tmp_path / "token").write_text("Bearer s3cret\n")
    WebhookTransport(receiver(hook, authorization_file=str(tmp_path / "token"))).post(
        "msg_1", b"{}"
    )
    ((headers, _),) = hook.seen
    assert headers["Authorization"] == "Bearer s3cret"


def test_a_token_may_be_replaced_while_we_run(hook: Hook, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("Bearer old\n")
    transport = WebhookTransport(receiver(hook, authorization_file=str(token)))
    transport.post("msg_1", b"{}")
    token.write_text("Bearer new\n")
    transport.post("msg_2", b"{}")
    token.unlink()
    transport.post("msg_3", b"{}")
    assert [headers["Authorization"] for headers, _ in hook.seen] == [
        "Bearer old",
        "Bearer new",
        "Bearer new",
    ]


@pytest.mark.parametrize(
    "text", ["Bearer s3cret\nBearer other", "Bearer s3cret\u20ac", "Bearer s3cret\x00"]
)
def test_an_authorization_that_is_no_header_is_one_clear_line_and_never_replaces_one(
    hook: Hook, tmp_path: Path, text: str
) -> None:
    token = tmp_path / "token"
    token.write_text("Bearer old\n")
    transport = WebhookTransport(receiver(hook, authorization_file=str(token)))
    token.write_text(text)
    transport.post("msg_1", b"{}")
    assert [headers["Authorization"] for headers, _ in hook.seen] == ["Bearer old"]
    with pytest.raises(
        ConfigError,
        match=r"receiver `hook`: authorization_file .*token is not one line of printable ASCII",
    ) as told:
        WebhookTransport(receiver(hook, authorization_file=str(token)))
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("option", ["authorization_file", "ca_file"])
def test_a_file_that_is_not_there_is_one_clear_line(hook: Hook, option: str) -> None:
    with pytest.raises(
        ConfigError, match=f"receiver `hook`: cannot read {option} /nowhere/file: No such file"
    ):
        WebhookTransport(receiver(hook, **{option: "/nowhere/file"}))


def test_what_was_answered_can_be_told(hook: Hook) -> None:
    hook.answer = b"thank\n you" + b"!" * 2000
    assert WebhookTransport(receiver(hook)).post("msg_1", b"{}").text.startswith("thank you!!!")
    hook.status = 400
    with pytest.raises(NotDeliveredError) as told:
        WebhookTransport(receiver(hook)).post("msg_1", b"{}")
    assert (told.value.status, told.value.of_content) == (400, True)
    assert told.value.text.startswith("thank you")
    assert len(told.value.text) <= MAX_ANSWER_BYTES


def test_a_receiver_that_takes_and_does_not_answer_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = Receiver(
            name="hook", url=f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout_seconds=0.1
        )
        with pytest.raises(NotDeliveredError, match="ReadTimeout") as told:
            WebhookTransport(target).post("msg_1", b"{}")
    assert told.value.again


def test_a_receiver_that_was_down_gets_everything_once_over_real_connections() -> None:
    """Real threads, sockets and retries; the two minutes themselves are in tests/delivery."""
    with WebhookReceiver() as real:
        real.answer = HTTPStatus.SERVICE_UNAVAILABLE
        target = Receiver(name="hook", url=real.url, timeout_seconds=2.0)
        store = MemoryStore()
        outbox = Outbox(target, {}, [0], 0.1, 1000)
        courier = Courier(
            target,
            outbox,
            WebhookTransport(target),
            BackgroundStore(store, "hook"),
            "http://x/",
            time.time,
        )
        thread = threading.Thread(target=courier.run, daemon=True)
        thread.start()
        now = time.time()
        fired = [alert(partition=str(number), at=now, starts_at=now - 3) for number in range(20)]
        loss = alert(
            "KafkaCommittedDataLoss", at=now, starts_at=now - 3, severity="critical", incident="ab"
        )
        ended = [
            alert(
                partition=str(number),
                state="resolved",
                at=now + 1,
                starts_at=now - 3,
                reason="cleared",
            )
            for number in range(5)
        ]
        courier.offer([(each, (0, number)) for number, each in enumerate([*fired, loss, *ended])])
        wait_for(lambda: courier.reports()[0].attempts["again"] > 0)
        assert list(real.alerts()) == []
        real.answer = HTTPStatus.OK
        wait_for(lambda: len(list(real.alerts())) >= 26)
        courier.stop()
        thread.join(10)
    assert sorted((each.fingerprint or "", each.status) for each in real.alerts()) == sorted(
        told_of([*fired, loss, *ended])
    )
    # The loss does not wait behind the others.
    assert real.alerts()[0].name == "KafkaCommittedDataLoss"
    assert store.marks[0].offset == 26


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
