"""Answers requests for pages, the API and static files. GET and HEAD only.

It changes nothing but who has the lease of `safe-to-stop`. Pages over a recording are each below
the number of a pass, `/pass/NUMBER/…`.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from http import HTTPStatus
from importlib import resources
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from tidemark.web.exchange import METRICS, PLAIN, SECURITY, Response, accepts_gzip
from tidemark_exporters.export.table import Table
from tidemark_exporters.pages import api, openapi
from tidemark_exporters.pages.alerts import AlertHistory
from tidemark_exporters.pages.html import render
from tidemark_exporters.pages.page_definitions import PageRequest, page_contents
from tidemark_exporters.pages.query import BadRequestError, NotFoundError
from tidemark_exporters.pages.snapshot import SnapshotCache, TableSnapshot
from tidemark_exporters.pages.stop_permission import NAME, StopPermissions

_PASS: Final = re.compile(r"/pass/([0-9]{1,9})(/.*)", re.DOTALL)
# Served alike after any pass, or by path alone: to programs, which need not follow a redirection.
_DIRECT: Final = ("/static/", "/-/", METRICS, api.PREFIX.rstrip("/"))

FILES: Final = {
    "tidemark.css": "text/css; charset=utf-8",
    "tidemark.js": "text/javascript; charset=utf-8",
    "recording.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
PROBLEM: Final = "application/problem+json"
MIN_COMPRESSED: Final = 1_024


class Recording(NamedTuple):
    """The pass that is shown, counted from 1; when each ended (Unix seconds).

    `moments`: {number, at, severity, alert}, of each alert where it first fired.
    """

    number: int
    ended: Sequence[float]
    moments: Sequence[dict[str, Any]]

    @property
    def period_seconds(self) -> float:
        """The mean time from pass to pass."""
        return (self.ended[-1] - self.ended[0]) / max(1, len(self.ended) - 1)


def pass_of(path: str) -> tuple[int | None, str]:
    """The number in a path, and the path below it."""
    found = _PASS.fullmatch(path)
    return (None, path) if found is None else (int(found[1]), found[2])


def to_pass(number: int, path: str, query: str) -> Response | None:
    """Where the page at `path` is, after a pass; None for what is there itself."""
    if path.startswith(_DIRECT):
        return None
    name = path.removeprefix("/")
    address = f"{'../' * name.count('/')}pass/{number}/{quote(name)}"
    if query:
        address += f"?{quote(query, safe='=&%+')}"
    return Response(HTTPStatus.FOUND, [("Location", address), *SECURITY], b"")


class Pages:
    """The pages and the API over one table."""

    def __init__(
        self,
        table: Table,
        stale_seconds: float,
        waiting: Callable[[], list[str]],
        clock: Callable[[], float] = time.time,
        dashboard_url: str | None = None,
        configured: Sequence[str] = (),
    ) -> None:
        """`waiting`: the topics that are still being read to their end.

        `configured`: the clusters to watch, also those that no pass has named.
        """
        self._dashboard_url = dashboard_url
        self.history = AlertHistory()
        # What of a recording is shown; None: what is live.
        self._recording: Recording | None = None
        self._waiting = waiting
        self._permissions = StopPermissions(clock)
        self._snapshots = SnapshotCache(
            lambda: TableSnapshot(
                table, clock(), stale_seconds, caught_up=not waiting(), configured=configured
            )
        )

    def renew(self, recording: Recording) -> None:
        """Shows another pass of a recording."""
        self._recording = recording
        self._snapshots.drop()

    def answer(
        self,
        path: str,
        query: str,
        accept_encoding: str = "",
        if_none_match: str = "",
        method: str = "GET",
    ) -> Response:
        """`path` decoded, `query` raw."""
        name = path.removeprefix("/")
        if name.startswith("static/"):
            return _static_response(name.removeprefix("static/"), if_none_match)
        if _is_api(path):
            status, kind, text = self._answer_api(name.removeprefix(api.PREFIX[1:]), query, method)
        else:
            status, kind, text = self._answer_page(name, query)
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

    def _answer_api(self, name: str, query: str, method: str) -> tuple[HTTPStatus, str, bytes]:
        if name == openapi.NAME:
            return HTTPStatus.OK, "application/json", openapi.openapi()
        snapshot, waiting = self._snapshots.current(), self._waiting()
        try:
            if name == NAME:
                safe, found = self._permissions.answer(
                    query, snapshot, waiting, take=method == "GET"
                )
                if safe:
                    return HTTPStatus.OK, "application/json", msgspec.json.encode(found)
                detail = f"stopping the broker is not safe now: {'; '.join(found['reasons'])}."
                status = HTTPStatus.CONFLICT
                body = api.encode_problem(status.value, status.phrase, detail, found)
                return status, PROBLEM, body
            body = api.encode_list(name, query, snapshot, self.history, waiting)
        except (BadRequestError, NotFoundError) as error:
            status = _error_status(error)
            return status, PROBLEM, api.encode_problem(status.value, status.phrase, str(error))
        return HTTPStatus.OK, "application/json", body

    def _answer_page(self, name: str, query: str) -> tuple[HTTPStatus, str, bytes]:
        status, root = HTTPStatus.OK, "../" * name.count("/")
        request = PageRequest(self._snapshots.current(), self.history, query)
        try:
            template, context = page_contents(name, request)
        except (BadRequestError, NotFoundError) as error:
            status, template = _error_status(error), "error.html"
            context = {"title": status.phrase, "status": status.value, "message": str(error)}
        text = render(
            template,
            snapshot=request.snapshot,
            waiting=self._waiting(),
            history_complete=self.history.complete,
            path=name if status == HTTPStatus.OK else None,
            query=query,
            recording=self._recording,
            root=root,
            static=static_version(),
            dashboard_url=self._dashboard_url,
            **context,
        )
        return status, "text/html; charset=utf-8", text.encode("utf-8", "replace")


def failure(path: str, status: HTTPStatus, detail: str) -> Response:
    """An error without a page: a problem document below the API, one line of text elsewhere."""
    kind, text = PLAIN, f"{detail}\n".encode()
    if _is_api(path):
        kind, text = PROBLEM, api.encode_problem(status.value, status.phrase, detail)
    return Response(
        status, [("Content-Type", kind), ("Cache-Control", "no-store"), *SECURITY], text
    )


def _static_response(name: str, if_none_match: str) -> Response:
    if name not in FILES:
        return Response(HTTPStatus.NOT_FOUND, [("Content-Type", PLAIN), *SECURITY], b"not found\n")
    body, etag = static_file(name)
    headers = [
        ("ETag", etag),
        ("Cache-Control", "public, max-age=31536000, immutable"),
        *SECURITY,
    ]
    if if_none_match == etag:
        return Response(HTTPStatus.NOT_MODIFIED, headers, b"")
    return Response(HTTPStatus.OK, [("Content-Type", FILES[name]), *headers], body)


def _is_api(path: str) -> bool:
    return path.startswith(api.PREFIX) or path in {"/api", "/api/", "/api/v1"}


def _error_status(error: Exception) -> HTTPStatus:
    return HTTPStatus.BAD_REQUEST if isinstance(error, BadRequestError) else HTTPStatus.NOT_FOUND


@lru_cache(maxsize=len(FILES))
def static_file(name: str) -> tuple[bytes, str]:
    """(content, ETag)."""
    body = resources.files("tidemark_exporters.pages").joinpath("static", name).read_bytes()
    return body, f'"{hashlib.sha256(body).hexdigest()[:16]}"'


@lru_cache(maxsize=1)
def static_version() -> str:
    """Part of each file's address. It changes with any of them: a browser never mixes versions."""
    return hashlib.sha256(b"".join(static_file(name)[0] for name in sorted(FILES))).hexdigest()[:12]
