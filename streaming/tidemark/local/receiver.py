"""A webhook receiver on 127.0.0.1: keeps every payload of Alertmanager's v4 shape with the time it came."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

# A demo or a test gets some hundreds; beyond this the receiver answers 507 and keeps what it has.
_KEPT: Final = 100_000
_MAX_BODY: Final = 16 * 1024 * 1024


@dataclass(frozen=True)
class Received:
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


def alerts_of(payload: dict[str, Any], received_at: float) -> list[Received]:
    """The alerts of a v4 payload. Raises KeyError or TypeError when it is none."""
    return [
        Received(
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
    """Answers 200 to every v4 payload (or `answer`, when a test wants a broken receiver), 400 to anything else."""

    def __init__(self, port: int = 0) -> None:
        self.answer = HTTPStatus.OK
        self._lock = threading.Lock()
        self._deliveries: list[tuple[float, dict[str, Any]]] = []
        self._alerts: list[Received] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="webhooks", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/"

    def alerts(self) -> Iterator[Received]:
        """Every alert accepted so far, oldest first."""
        with self._lock:
            yield from list(self._alerts)

    def deliveries(self) -> list[tuple[float, dict[str, Any]]]:
        """(received at, payload) of every accepted delivery, oldest first."""
        with self._lock:
            return list(self._deliveries)

    def take(self, body: bytes) -> HTTPStatus:
        """Keeps one delivery; the HTTP status to answer with."""
        if self.answer != HTTPStatus.OK:
            return self.answer
        now = time.time()
        try:
            payload = json.loads(body)
            alerts = alerts_of(payload, now)
        except (ValueError, KeyError, TypeError):
            return HTTPStatus.BAD_REQUEST
        with self._lock:
            if len(self._deliveries) >= _KEPT:
                return HTTPStatus.INSUFFICIENT_STORAGE
            self._deliveries.append((now, payload))
            self._alerts.extend(alerts)
        return HTTPStatus.OK

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                status = (
                    receiver.take(self.rfile.read(length))
                    if length <= _MAX_BODY
                    else HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                )
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
                """Says nothing: the demo owns the terminal."""

        return Handler

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
