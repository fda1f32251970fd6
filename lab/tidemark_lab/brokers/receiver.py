"""A webhook receiver on 127.0.0.1: keeps every Alertmanager v4 payload with its arrival time."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

# A demo or a test gets some hundreds; beyond this the receiver answers 507 and keeps what it has.
_MAX_DELIVERIES: Final = 100_000
_MAX_BODY_BYTES: Final = 16 * 1024 * 1024

# (received at, payload)
Delivery = tuple[float, dict[str, Any]]


@dataclass(frozen=True)
class ReceivedAlert:
    """One alert of one delivery."""

    received_at: float
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: str
    fingerprint: str | None = None

    @property
    def name(self) -> str:
        return self.labels.get("alertname", "")

    @property
    def severity(self) -> str:
        return self.labels.get("severity", "")

    @property
    def started_at(self) -> float:
        """Unix seconds. Raises ValueError."""
        return datetime.fromisoformat(self.starts_at).timestamp()


def parse_alerts(payload: dict[str, Any], received_at: float) -> list[ReceivedAlert]:
    """The alerts of a v4 payload. Raises KeyError or TypeError when it is none."""
    return [
        ReceivedAlert(
            received_at,
            alert["status"],
            alert["labels"],
            alert["annotations"],
            alert["startsAt"],
            alert.get("fingerprint"),
        )
        for alert in payload["alerts"]
    ]


class WebhookReceiver:
    """Answers 200 to a v4 payload and 400 to anything else; `answer` makes it fail."""

    def __init__(self, port: int = 0) -> None:
        self.answer = HTTPStatus.OK
        self._lock = threading.Lock()
        self._deliveries: list[Delivery] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="webhooks", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/"

    def alerts(self) -> list[ReceivedAlert]:
        """Every alert accepted so far, oldest first."""
        return [alert for at, payload in self.deliveries() for alert in parse_alerts(payload, at)]

    def deliveries(self) -> list[Delivery]:
        """Every accepted delivery, oldest first."""
        with self._lock:
            return list(self._deliveries)

    def receive(self, body: bytes) -> HTTPStatus:
        """Keeps one delivery; returns the HTTP status to answer with."""
        if self.answer != HTTPStatus.OK:
            return self.answer
        now = time.time()
        try:
            payload = json.loads(body)
            parse_alerts(payload, now)
        except (ValueError, KeyError, TypeError):
            return HTTPStatus.BAD_REQUEST
        with self._lock:
            if len(self._deliveries) >= _MAX_DELIVERIES:
                return HTTPStatus.INSUFFICIENT_STORAGE
            self._deliveries.append((now, payload))
        return HTTPStatus.OK

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                status = (
                    receiver.receive(self.rfile.read(length))
                    if length <= _MAX_BODY_BYTES
                    else HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                )
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
                """Silent: the demo draws on the terminal."""

        return Handler

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
