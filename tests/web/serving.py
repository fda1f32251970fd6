"""A server of the test, and certificates for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from tests.certificates import openssl
from tidemark.web.exchange import App, Request, Response, text_response
from tidemark.web.health import Health
from tidemark.web.server import WebServer, serve


def echo(asked: Request) -> Response:
    """The path; 1 MB of it on /large, after 0.2 s on /slow."""
    if asked.path == "/slow":
        time.sleep(0.2)
    if asked.path == "/fails":
        raise RuntimeError("a secret")
    text = asked.path * (8_000_000 if asked.path == "/large" else 1)
    return text_response(HTTPStatus.OK, text)


@contextmanager
def serving(
    web_config_file: Path | None = None, app: App = echo, health: Health | None = None
) -> Iterator[WebServer]:
    name = None if web_config_file is None else str(web_config_file)
    server = serve(app, health or Health(), "127.0.0.1:0", "export.listen", name)
    try:
        yield server
    finally:
        server.close()


def certificate(folder: Path, name: str) -> None:
    """Self-signed: NAME.crt and NAME.key, for 127.0.0.1."""
    openssl(
        folder,
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-days", "2", "-subj", f"/CN={name}"),
        *("-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", f"{name}.key", "-out", f"{name}.crt"),
    )
