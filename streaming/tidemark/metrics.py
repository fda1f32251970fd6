"""The metrics of one process: registered by name from the metric table, and served over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from tidemark.core.errors import TidemarkError
from tidemark.core.metric_table import METRICS, Kind
from tidemark.settings import parse_address


class MetricRegistry(CollectorRegistry):
    """A registry of metrics of the metric table; KeyError for any other name."""

    def counter(self, name: str) -> Counter:
        return Counter(*_declaration(name, "counter"), registry=self)

    def gauge(self, name: str) -> Gauge:
        return Gauge(*_declaration(name, "gauge"), registry=self)

    def histogram(self, name: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(*_declaration(name, "histogram"), registry=self, buckets=buckets)

    def serve(
        self, listen: str, option: str, failure: type[TidemarkError] = TidemarkError
    ) -> WSGIServer:
        """Starts a server on `listen` (host:port), the value of the configuration key `option`.

        Raises ConfigError when `listen` is no host:port, `failure` when the port is not available.
        """
        host, port = parse_address(listen)
        try:
            server, _ = start_http_server(port, host, self)
        except OSError as error:
            raise failure(
                f"cannot listen on {listen}: {error.strerror or error}. "
                f"Set {option} to a free address."
            ) from None
        return server


def _declaration(name: str, kind: Kind) -> tuple[str, str, tuple[str, ...]]:
    """Name, help and labels, as prometheus_client takes them."""
    definition = METRICS[name]
    assert definition.kind == kind, f"{name} is a {definition.kind}"
    return name, definition.help, definition.labels
