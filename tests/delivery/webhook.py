"""A webhook that keeps its port while it is down, in each way that receivers fail."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import Any, Final, Literal, get_args

import requests

from tests.http_server import Handler
from tidemark_lab.brokers.receiver import ReceivedAlert, WebhookReceiver, parse_alerts

# refuse: nothing listens. hang: no answer until it is up. close: the connection ends unanswered.
# Else the HTTP status of every answer.
Kind = Literal["refuse", "302", "401", "404", "503", "hang", "close"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


class Webhook:
    def __init__(self) -> None:
        self._port = socket.socket()
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port.bind(("127.0.0.1", 0))
        self.port = int(self._port.getsockname()[1])
        self._servers: list[WebhookReceiver] = []
        self._failing: _Failing | None = None
        self._kind: Kind | None = None
        # Where the 302 leads.
        self._elsewhere = socket.create_server(("127.0.0.1", 0))
        self._elsewhere.setblocking(False)
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def up(self) -> None:
        if self._failing is not None:
            self._failing.close()
            self._failing = None
        self._kind = None
        self._servers.append(WebhookReceiver(self.port).__enter__())

    def down(self, kind: Kind = "refuse") -> None:
        self._servers[-1].__exit__(None, None, None)
        self._kind = kind
        if kind != "refuse":
            host, port = self._elsewhere.getsockname()
            self._failing = _Failing(self.port, kind, f"http://{host}:{port}/")

    def fails(self) -> bool:
        """Whether a post fails now as `down` was told."""
        seconds = 0.2 if self._kind == "hang" else 10.0
        try:
            answer = requests.post(self.url, b"{}", timeout=seconds, allow_redirects=False)
        except requests.ConnectionError:
            return self._kind in ("refuse", "close")
        except requests.Timeout:
            return self._kind == "hang"
        return str(answer.status_code) == self._kind

    def alerts(self) -> list[ReceivedAlert]:
        return [each for server in self._servers for each in server.alerts()]

    def first_alerts(self) -> list[ReceivedAlert]:
        """The first alert of each post since its return."""
        return [parse_alerts(body, at)[0] for at, body in self._servers[-1].deliveries()]

    def was_redirected(self) -> bool:
        """Whether anyone followed the 302."""
        try:
            self._elsewhere.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        if self._failing is not None:
            self._failing.close()
        else:
            self._servers[-1].__exit__(None, None, None)
        self._elsewhere.close()
        self._port.close()


class _Failing(ThreadingHTTPServer):
    """Reads each post whole, and fails it."""

    daemon_threads = True

    def __init__(self, port: int, kind: Kind, elsewhere: str) -> None:
        self.kind, self.elsewhere = kind, elsewhere
        self.ended = threading.Event()
        super().__init__(("127.0.0.1", port), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self.ended.set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: a client that gave up waiting is what is tested."""


class _Handler(Handler):
    server: _Failing

    def do_POST(self) -> None:
        self.body()
        self.close_connection = True
        if self.server.kind == "close":
            return
        if self.server.kind == "hang":
            self.server.ended.wait()
            return
        with suppress(OSError):
            to = {"Location": self.server.elsewhere} if self.server.kind == "302" else {}
            self.reply(int(self.server.kind), b"", **to)
