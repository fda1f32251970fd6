"""The metrics of one process: registered by name from the metric table, and served over HTTP."""

from __future__ import annotations

import platform
from collections.abc import Collection, Sequence
from http import HTTPStatus
from typing import Any, Final, Literal, TypeVar, cast

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
M = TypeVar("M", bound=Counter | Gauge | Histogram)
_AT_START: Final[dict[Kind, type[Counter | Gauge]]] = {"counter": Counter, "gauge": Gauge}


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

    def __init__(self, tier: Component | None = None, later: Collection[str] = ()) -> None:
        """With the counters and gauges of a tier, which are 0 from the start but those of `later`.

        Others are registered once they are asked for.
        """
        disable_created_metrics()  # type: ignore[no-untyped-call]
        super().__init__()
        self._made: dict[str, Any] = {}
        for name, each in METRICS.items():
            if each.tier == tier and each.kind in _AT_START and name not in later:
                self._metric(_AT_START[each.kind], name, each.kind)

    def describe_process(self, component: Component) -> None:
        """Adds the version, and CPU, memory and files of the process (`process_*`)."""
        assert "tidemark_build_info" not in self._made, "described twice"
        ProcessCollector(registry=self)
        python = platform.python_version()
        self.gauge("tidemark_build_info", component, __version__, python).set(1)

    def counter(self, name: str, *labels: str) -> Counter:
        metric = self._metric(Counter, name, "counter")
        return metric.labels(*labels) if labels else metric

    def gauge(self, name: str, *labels: str) -> Gauge:
        metric = self._metric(Gauge, name, "gauge")
        return metric.labels(*labels) if labels else metric

    def histogram(self, name: str, buckets: Sequence[float]) -> Histogram:
        return self._metric(Histogram, name, "histogram", buckets=buckets)

    def _metric(self, made: type[M], name: str, kind: Kind, **options: Any) -> M:
        definition = METRICS[name]
        assert definition.kind == kind, f"{name} is a {definition.kind}"
        if name not in self._made:
            self._made[name] = made(
                name, definition.help, definition.labels, registry=self, **options
            )
        return cast(M, self._made[name])

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
