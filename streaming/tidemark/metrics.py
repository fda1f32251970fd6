"""The metrics of one process: registered by name from the metric table, and served over HTTP."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from http import HTTPStatus
from typing import Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.openmetrics import exposition as openmetrics_format

from tidemark import __version__
from tidemark.core.errors import TidemarkError
from tidemark.core.metric_table import METRICS, Kind
from tidemark.web.exchange import METRICS as METRICS_PATH
from tidemark.web.exchange import SECURITY, Request, Response, requested_format, text_response
from tidemark.web.health import Health
from tidemark.web.server import WebServer, serve

Component = Literal["collect", "stream", "export", "escrow"]


def content_type(openmetrics: bool) -> str:
    kind = (
        "application/openmetrics-text; version=1.0.0"
        if openmetrics
        else "text/plain; version=0.0.4"
    )
    return f"{kind}; charset=utf-8"


class MetricRegistry(CollectorRegistry):
    """A registry of metrics of the metric table; KeyError for any other name.

    Without the `_created` series of prometheus_client, one for each counter and histogram.
    """

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        super().__init__()

    def describe_process(self, component: Component) -> None:
        """Adds the version, and CPU, memory and files of the process (`process_*`)."""
        ProcessCollector(registry=self)
        python = platform.python_version()
        self.gauge("tidemark_build_info").labels(component, __version__, python).set(1)

    def counter(self, name: str) -> Counter:
        return Counter(*_declaration(name, "counter"), registry=self)

    def gauge(self, name: str) -> Gauge:
        return Gauge(*_declaration(name, "gauge"), registry=self)

    def histogram(self, name: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(*_declaration(name, "histogram"), registry=self, buckets=buckets)

    def serve(
        self,
        listen: str,
        option: str,
        web_config_file: str | None = None,
        health: Health | None = None,
        failure: type[TidemarkError] = TidemarkError,
    ) -> WebServer:
        """Serves the metrics and `health` on `listen`, the value of the configuration key `option`.

        Raises as `tidemark.web.server.serve`.
        """
        return serve(
            self._answer,
            health or Health(),
            listen,
            option,
            web_config_file,
            failure=failure,
        )

    def _answer(self, asked: Request) -> Response:
        if asked.path != METRICS_PATH:
            return text_response(
                HTTPStatus.NOT_FOUND, "not found: there are /metrics, /-/healthy and /-/ready"
            )
        openmetrics = requested_format(asked.headers).openmetrics
        headers = [("Content-Type", content_type(openmetrics)), ("Vary", "Accept"), *SECURITY]
        return Response(HTTPStatus.OK, headers, self.render(openmetrics))

    def render(self, openmetrics: bool = False) -> bytes:
        """Prometheus' text, or OpenMetrics with its end mark."""
        if openmetrics:
            return bytes(openmetrics_format.generate_latest(self))  # type: ignore[no-untyped-call]
        return generate_latest(self)


def _declaration(name: str, kind: Kind) -> tuple[str, str, tuple[str, ...]]:
    """Name, help and labels, as prometheus_client takes them."""
    definition = METRICS[name]
    assert definition.kind == kind, f"{name} is a {definition.kind}"
    return name, definition.help, definition.labels
