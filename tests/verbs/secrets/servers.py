"""Brokers and an HTTP server of the test that learn secrets; the latter repeats them."""

from __future__ import annotations

import contextlib
import json
import ssl
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.collect.fake_broker import VERSIONS, FakeBroker, Log
from tests.http_server import Handler

HANDSHAKE, AUTHENTICATE = 17, 36
REFUSED = 58
TOPIC = "orders"


class SecureBroker(FakeBroker):
    """Takes any login, or refuses all of them. `learned`: the logins' bytes."""

    def __init__(self, mechanism: str = "", *, refuses: bool = False) -> None:
        self.mechanism, self.refuses = mechanism, refuses
        self.context: ssl.SSLContext | None = None
        self.learned = b""
        super().__init__(1, {**VERSIONS, HANDSHAKE: (1, 1), AUTHENTICATE: (1, 1)})
        self.metadata = lambda: ([self], {TOPIC: {0: (1, 0, [1], [1], 0)}})
        self.logs[TOPIC, 0] = Log([(0, 5)], 5, 0, leads=True)

    def require_certificate(self, certificate: Path, key: Path, authority: Path) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.context.load_verify_locations(authority)
        self.context.verify_mode = ssl.CERT_REQUIRED

    def _serve(self, connection: Any) -> None:
        with contextlib.suppress(OSError):
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
                self._open.append(connection)
                self.learned += b"a client's certificate"
            super()._serve(connection)

    def login(self, token: bytes) -> int:
        self.learned += token
        return REFUSED if self.refuses else 0


class Repeating(ThreadingHTTPServer):
    """Answers with the path and the headers of each request. `learned`: all of them.

    200 with a token on /token, 404 on other paths.
    """

    daemon_threads = True

    def __init__(self, token: str) -> None:
        super().__init__(("127.0.0.1", 0), RepeatingHandler)
        self.token, self.learned = token, ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class RepeatingHandler(Handler):
    server: Repeating

    def do_POST(self) -> None:
        asked = f"{self.command} {self.path} {' '.join(map(str, self.headers.values()))}"
        self.server.learned += f"{asked}\n"
        body = self.body()
        is_token = self.path == "/token"
        text = json.dumps({"access_token": self.server.token}) if is_token else f"Cannot {asked}"
        content = text.encode() + (b"" if is_token else body)
        self.reply(200 if is_token else 404, content)

    def do_GET(self) -> None:
        self.do_POST()
