"""Pages over a recording: each below the number of a pass, `/pass/NUMBER/…`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from tidemark.web.exchange import METRICS, SECURITY, Response
from tidemark_exporters.pages import api

_PASS: Final = re.compile(r"/pass/([0-9]{1,9})(/.*)", re.DOTALL)
# Served alike after any pass, or by path alone: to programs, which need not follow a redirection.
_DIRECT: Final = ("/static/", "/-/", METRICS, api.PREFIX.rstrip("/"))


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
