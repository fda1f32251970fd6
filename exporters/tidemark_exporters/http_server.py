"""What the exporter serves: `/metrics`; the rest is for the pages."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from http import HTTPStatus

from tidemark.metrics import content_type
from tidemark.web.exchange import (
    METRICS,
    SECURITY,
    App,
    Format,
    Request,
    Response,
    requested_format,
)
from tidemark.web.health import Health
from tidemark.web.server import WebServer, serve
from tidemark_exporters.export.exposition import Exposition
from tidemark_exporters.pages.responses import Pages, failure


class Site:
    """The application. The refreshing thread replaces `exposition`; a request only reads it.

    `own`: renders the exporter's own metrics, as OpenMetrics (with the end mark) or as text.
    """

    def __init__(self, own: Callable[[bool], bytes], pages: Pages) -> None:
        self.exposition = Exposition()
        self._own = own
        self.pages = pages

    def __call__(self, asked: Request) -> Response:
        if asked.path == METRICS:
            return self._scrape(requested_format(asked.headers))
        if asked.path.startswith("/-/"):
            text = "not found: there are /, /api/v1/, /metrics, /-/healthy and /-/ready"
            return failure(asked.path, HTTPStatus.NOT_FOUND, text)
        return self.pages.answer(
            asked.path,
            asked.query,
            asked.headers.get("Accept-Encoding", ""),
            asked.headers.get("If-None-Match", ""),
            # A page of another site takes no lease in its visitor's name.
            "HEAD" if asked.headers.get("Sec-Fetch-Site") == "cross-site" else asked.method,
        )

    def _scrape(self, wanted: Format) -> Response:
        exposition = self.exposition
        headers = [
            ("Content-Type", content_type(wanted.openmetrics)),
            ("Vary", "Accept, Accept-Encoding"),
            *SECURITY,
        ]
        counters = exposition.counters_openmetrics if wanted.openmetrics else exposition.counters
        rest = counters + self._own(wanted.openmetrics)
        if not wanted.gzip:
            return Response(HTTPStatus.OK, headers, rest, exposition.gauges)
        # A gzip file is a sequence of members: the large ones are compressed once a refresh.
        return Response(
            HTTPStatus.OK,
            [*headers, ("Content-Encoding", "gzip")],
            gzip.compress(rest, 1),
            (exposition.compressed,),
        )


def serve_site(
    site: App,
    health: Health,
    listen: str,
    web_config_file: str | None = None,
    external_url: str = "",
) -> WebServer:
    """Raises as `tidemark.web.server.serve`."""
    return serve(
        site, health, listen, "export.listen", web_config_file, failure, external_url=external_url
    )
