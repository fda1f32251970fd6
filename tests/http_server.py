"""HTTP servers of tests, on 127.0.0.1, each in a thread of its own."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TypeVar

from tests.certificates import Authority

Server = TypeVar("Server", bound=HTTPServer)


class Handler(BaseHTTPRequestHandler):
    """Prints nothing."""

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Answers until the end of the block, and is closed then."""
    with server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def use_tls(server: HTTPServer, authority: Authority, name: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(name, "127.0.0.1"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
