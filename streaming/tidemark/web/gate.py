"""What every request passes: the method, the host, the user, and an application that may fail.

It holds the web configuration file, and reads it and its certificates again when they change, so
that a rotated certificate or password needs no restart.

A page of a stranger can give its own name the address of this server (DNS rebinding), and then read
all answers. So a server that has neither users nor TLS answers only names that no stranger can own,
and those that are configured.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Set as AbstractSet
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog

from tidemark.core.errors import ConfigError
from tidemark.web.authentication import BasicAuthentication
from tidemark.web.exchange import (
    METHODS,
    App,
    ErrorPage,
    Headers,
    Request,
    Response,
    plain_error,
)
from tidemark.web.options import WebFile, load_certificate, make_context, read_web_file

# Of the machine itself, and of Kubernetes' services: no public name ends so.
_RESERVED: Final = (".localhost", ".svc", ".cluster.local")

# Between two looks at the files.
CHECK_SECONDS: Final = 1.0

log = structlog.get_logger()


def own_names(listen_host: str, external_url: str) -> frozenset[str]:
    """In lower case: the name of this machine, and those of two options."""
    names = (socket.gethostname(), listen_host, urlsplit(external_url).hostname or "")
    return frozenset(map(str.lower, names))


def is_expected(host: str, names: AbstractSet[str]) -> bool:
    """Whether a Host header is absent, an address, a name without a dot, reserved or in `names`."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    name = name.strip("[]").rstrip(".").lower()
    if "." not in name and ":" not in name:
        return True
    try:
        ip_address(name)
    except ValueError:
        return name in names or name.endswith(_RESERVED)
    return True


class Gate:
    """Raises ConfigError where the file, or one that it names, cannot be used."""

    def __init__(
        self,
        path: Path | None,
        error_page: ErrorPage = plain_error,
        names: frozenset[str] = frozenset(),
    ) -> None:
        """`names` of the server, beside those that no stranger can own."""
        self._path, self._error_page, self._names = path, error_page, names
        self._file = WebFile() if path is None else read_web_file(path)
        tls = self._file.tls_server_config
        self.context = None if tls is None or path is None else make_context(path, tls)
        self._users = BasicAuthentication(self._file.basic_auth_users)
        self._seen = self._times()
        self._checked_at = time.monotonic()
        self._lock = threading.Lock()

    def refuse_method(self, asked: Request) -> Response | None:
        if asked.method in METHODS:
            return None
        names = " and ".join(METHODS)
        return self._failure(
            asked,
            HTTPStatus.METHOD_NOT_ALLOWED,
            f"only {names} are answered.",
            [("Allow", ", ".join(METHODS))],
        )

    def refuse_host(self, asked: Request) -> Response | None:
        """No stranger's page has our password, nor a certificate for its name."""
        is_open = self.context is None and not self._file.basic_auth_users
        if not is_open or is_expected(asked.headers.get("Host", ""), self._names):
            return None
        return self._failure(
            asked,
            HTTPStatus.MISDIRECTED_REQUEST,
            "the request's Host is no name of this server: use its address, or the name in its "
            "listen option or in notify.external_url, or set up TLS or users.",
        )

    def admits(self, asked: Request) -> bool | None:
        """None where the answer takes a hash: see `check`."""
        self._read_again()
        if not self._file.basic_auth_users:
            return True
        header = asked.headers.get("Authorization", "")
        return self._users.known(header) if header else False

    def check(self, asked: Request) -> bool:
        return self._users.check(asked.headers.get("Authorization", ""))

    def unauthorized(self, asked: Request) -> Response:
        return self._failure(
            asked,
            HTTPStatus.UNAUTHORIZED,
            "user and password are required.",
            [("WWW-Authenticate", 'Basic realm="tidemark", charset="UTF-8"')],
        )

    def busy(self, asked: Request) -> Response:
        text = "too many requests at once; try again."
        return self._failure(asked, HTTPStatus.SERVICE_UNAVAILABLE, text, [("Retry-After", "1")])

    def call(self, app: App, asked: Request) -> Response:
        """One page that fails must not affect the others. The client sees no internals."""
        try:
            return app(asked)
        except Exception:
            log.exception("a request failed", path=asked.path)
            return self._failure(
                asked,
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "the server could not answer; its log has the reason.",
            )

    def complete(self, response: Response) -> Headers:
        """The response's headers, with those of the file in place of ours."""
        own = self._file.http_server_config.headers
        replaced = {name.lower() for name in own}
        kept = [(name, value) for name, value in response.headers if name.lower() not in replaced]
        return [*kept, *((str(name), value) for name, value in own.items() if value)]

    def _failure(
        self, asked: Request, status: HTTPStatus, text: str, headers: Headers | None = None
    ) -> Response:
        page = self._error_page(asked.path, status, text)
        return page._replace(headers=[*page.headers, *(headers or [])])

    def _times(self) -> list[int | None]:
        tls = self._file.tls_server_config
        names = [] if tls is None else [tls.cert_file, tls.key_file]
        if self._path is None:
            return []
        return [_changed_at(self._path), *(_changed_at(self._path.parent / n) for n in names)]

    def _read_again(self) -> None:
        now = time.monotonic()
        if self._path is None or now - self._checked_at < CHECK_SECONDS:
            return
        with self._lock:
            self._checked_at = now
            times = self._times()
            if times == self._seen:
                return
            self._seen = times
            try:
                self._replace(self._path)
            except ConfigError as error:
                log.error("the web configuration did not change", reason=str(error))
            else:
                log.info("read the web configuration again", file=str(self._path))

    def _replace(self, path: Path) -> None:
        """Users, headers and the certificate. A file that is being written may be half of it."""
        file = read_web_file(path)
        users, tls = file.basic_auth_users, file.tls_server_config
        if (self._file.basic_auth_users and not users) or (self.context is not None and not tls):
            raise ConfigError(f"{path}: without users or TLS it needs a restart.")
        if file.tls_server_config is not None and self.context is not None:
            load_certificate(path, file.tls_server_config, self.context)
        self._users = BasicAuthentication(file.basic_auth_users)
        self._file = file


def _changed_at(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
