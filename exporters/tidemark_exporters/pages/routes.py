"""Answers a request for a page, the API or one of the page's files. GET and HEAD alone; nothing is changed by asking."""

from __future__ import annotations

import gzip
import hashlib
import time
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from importlib import resources
from typing import Final, NamedTuple

from tidemark_exporters.export.negotiation import accepts_gzip
from tidemark_exporters.export.table import Table
from tidemark_exporters.pages import api, html
from tidemark_exporters.pages.board import Boards
from tidemark_exporters.pages.history import History
from tidemark_exporters.pages.query import BadRequestError, UnknownError, quoted

Headers = list[tuple[str, str]]

FILES: Final = {
    "tidemark.css": "text/css; charset=utf-8",
    "tidemark.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
HTML: Final = "text/html; charset=utf-8"
PROBLEM: Final = "application/problem+json"
# Nothing but our own files runs, loads or is asked; nobody frames the page; its addresses are told to nobody.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SECURITY: Final[Headers] = [
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
]
MIN_COMPRESSED: Final = 1_024


class Response(NamedTuple):
    status: HTTPStatus
    headers: Headers
    body: bytes


class Pages:
    """The pages over one table."""

    def __init__(
        self,
        table: Table,
        stale_seconds: float,
        waiting: Callable[[], list[str]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`waiting`: the topics that are still being read up to their end; none once all were."""
        self.history = History()
        self._waiting = waiting
        self._boards = Boards(table, stale_seconds, caught_up=lambda: not waiting(), clock=clock)

    def answer(
        self, path: str, query: str, accept_encoding: str = "", if_none_match: str = ""
    ) -> Response:
        """`path` as WSGI gives it, decoded; `query` raw."""
        name = path.removeprefix("/")
        if name.startswith("static/"):
            return self._file(name.removeprefix("static/"), if_none_match)
        if _is_api(path):
            status, kind, text = self._api(name.removeprefix(api.PREFIX[1:]), query)
        else:
            status, kind, text = self._page(name, query)
        headers = [
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            ("Vary", "Accept-Encoding"),
            *SECURITY,
        ]
        if len(text) >= MIN_COMPRESSED and accepts_gzip(accept_encoding):
            text = gzip.compress(text, 1)
            headers.append(("Content-Encoding", "gzip"))
        return Response(status, headers, text)

    def _api(self, name: str, query: str) -> tuple[HTTPStatus, str, bytes]:
        try:
            if name not in api.LISTS:
                raise UnknownError(
                    f"there is no {quoted(name)}; there are: {', '.join(api.LISTS)}."
                )
            body = api.answer(name, query, self._boards.current(), self.history, self._waiting())
            return HTTPStatus.OK, "application/json", body
        except (BadRequestError, UnknownError) as error:
            status = _status(error)
            return status, PROBLEM, api.problem(status.value, status.phrase, str(error))

    def _page(self, name: str, query: str) -> tuple[HTTPStatus, str, bytes]:
        board, waiting = self._boards.current(), self._waiting()
        status = HTTPStatus.OK
        try:
            if name not in html.PAGES:
                raise UnknownError(f"there is no page {quoted('/' + name)}.")
            text = html.render(
                name, html.Page(board, self.history, query), waiting, static_version()
            )
        except (BadRequestError, UnknownError) as error:
            status = _status(error)
            text = html.write(
                "error.html",
                board,
                waiting,
                static_version(),
                path=None,
                root="../" * name.count("/"),
                title=status.phrase,
                status=status.value,
                message=str(error),
            )
        return status, HTML, text.encode("utf-8", "replace")

    def _file(self, name: str, if_none_match: str) -> Response:
        if name not in FILES:
            return Response(
                HTTPStatus.NOT_FOUND,
                [("Content-Type", "text/plain; charset=utf-8"), *SECURITY],
                b"not found\n",
            )
        body, tag = static_file(name)
        headers = [
            ("ETag", tag),
            ("Cache-Control", "public, max-age=31536000, immutable"),
            *SECURITY,
        ]
        if if_none_match == tag:
            return Response(HTTPStatus.NOT_MODIFIED, headers, b"")
        return Response(HTTPStatus.OK, [("Content-Type", FILES[name]), *headers], body)


def failure(path: str, status: HTTPStatus, detail: str) -> Response:
    """An answer that needs no page: a problem document below the API, one line of text elsewhere."""
    kind, text = "text/plain; charset=utf-8", f"{detail}\n".encode()
    if _is_api(path):
        kind, text = PROBLEM, api.problem(status.value, status.phrase, detail)
    return Response(
        status, [("Content-Type", kind), ("Cache-Control", "no-store"), *SECURITY], text
    )


def _is_api(path: str) -> bool:
    return path.startswith(api.PREFIX) or path in {"/api", "/api/", "/api/v1"}


def _status(error: Exception) -> HTTPStatus:
    return HTTPStatus.BAD_REQUEST if isinstance(error, BadRequestError) else HTTPStatus.NOT_FOUND


@lru_cache(maxsize=len(FILES))
def static_file(name: str) -> tuple[bytes, str]:
    """(content, ETag)."""
    body = resources.files("tidemark_exporters.pages").joinpath("static", name).read_bytes()
    return body, f'"{hashlib.sha256(body).hexdigest()[:16]}"'


@lru_cache(maxsize=1)
def static_version() -> str:
    """Changes with any of the files: their addresses carry it, so that a browser never mixes two versions."""
    return hashlib.sha256(b"".join(static_file(name)[0] for name in sorted(FILES))).hexdigest()[:12]
