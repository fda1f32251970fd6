"""What the exporter serves: `/metrics`; the rest is for the pages."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from http import HTTPStatus

from tidemark.web.exchange import METRICS, SECURITY, Request, Response
from tidemark.web.health import Health
from tidemark.web.server import WebServer, serve
from tidemark_exporters.export.exposition import Exposition
from tidemark_exporters.export.negotiation import accepts_gzip, prefers_openmetrics
from tidemark_exporters.export.text_format import CONTENT_TYPE, CONTENT_TYPE_OPENMETRICS
from tidemark_exporters.pages.responses import Pages, failure


class Site:
    """The application. The refreshing thread replaces `exposition`; a request only reads it.

    `own`: renders the exporter's own metrics (`openmetrics_format`: with the end mark).
    """

    def __init__(self, own: Callable[..., bytes], pages: Pages) -> None:
        self.exposition = Exposition()
        self._own = own
        self.pages = pages

    def __call__(self, asked: Request) -> Response:
        encoding = asked.headers.get("Accept-Encoding", "")
        if asked.path == METRICS:
            return self._scrape(asked.headers.get("Accept", ""), encoding)
        if asked.path.startswith("/-/"):
            text = "not found: there are /, /api/v1/, /metrics, /-/healthy and /-/ready"
            return failure(asked.path, HTTPStatus.NOT_FOUND, text)
        return self.pages.answer(
            asked.path, asked.query, encoding, asked.headers.get("If-None-Match", "")
        )

    def _scrape(self, accept: str, accept_encoding: str) -> Response:
        exposition, openmetrics = self.exposition, prefers_openmetrics(accept)
        headers = [
            ("Content-Type", CONTENT_TYPE_OPENMETRICS if openmetrics else CONTENT_TYPE),
            ("Vary", "Accept, Accept-Encoding"),
            *SECURITY,
        ]
        counters = exposition.counters_openmetrics if openmetrics else exposition.counters
        rest = counters + self._own(openmetrics_format=openmetrics)
        if not accepts_gzip(accept_encoding):
            return Response(HTTPStatus.OK, headers, exposition.body + rest)
        # A gzip file is a sequence of members: the large ones are compressed once a refresh.
        return Response(
            HTTPStatus.OK,
            [*headers, ("Content-Encoding", "gzip")],
            exposition.compressed + gzip.compress(rest, 1),
        )


def serve_site(
    site: Site, health: Health, listen: str, web_config_file: str | None = None
) -> WebServer:
    """Raises as `tidemark.web.server.serve`."""
    return serve(site, health, listen, "export.listen", web_config_file, failure)
