"""`--listen`: the status page, its API and /metrics over the same pass, in the same process.

The rows are those that the stream would publish, so the page shows what it shows with a stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from http import HTTPStatus

from tidemark.collect.metrics import CollectMetrics
from tidemark.core.records import Alert, View, decode_record
from tidemark.metrics import MetricRegistry
from tidemark.reduce.rows import Row
from tidemark.settings import Settings
from tidemark.verbs.top.recorded import RecordedCluster
from tidemark.web.exchange import App, Request, Response
from tidemark.web.health import Health
from tidemark.web.server import WebServer
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Renderer
from tidemark_exporters.export.own_metrics import ExportMetrics
from tidemark_exporters.export.table import Table
from tidemark_exporters.http_server import Site, serve_site
from tidemark_exporters.pages.responses import Pages, Recording, failure, pass_of, to_pass
from tidemark_exporters.process import PAUSE_PER_REFRESH, REFRESH_SECONDS

NOT_READ = "the first pass"
END_MARK = b"# EOF\n"


class SiteTable:
    """What the rows of one pass after another led to, and the application that shows it."""

    def __init__(
        self,
        settings: Settings,
        cluster: str,
        collector: MetricRegistry | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`collector`: the metrics of the one in this process."""
        self._table = Table(settings.detect.lag_threshold())
        self._counters = EventCounters()
        self._counters.add_cluster(cluster)
        self._renderer = Renderer(settings.export)
        self._metrics = ExportMetrics()
        self._collector, self._clock = collector, clock
        self.pages = Pages(
            self._table,
            settings.export.stale_seconds,
            self.waiting,
            clock,
            settings.notify.dashboard_url,
        )
        # Nothing is kept over a restart: the history is complete from the start of the process.
        self.pages.history.complete = True
        self.site = Site(self._render_own, self.pages)

    def take(self, rows: Iterable[Row]) -> None:
        """Takes over the rows of one pass."""
        for row in rows:
            record = None if row.value is None else decode_record(row.value)
            if row.destination == "partition_views":
                view = record if isinstance(record, View) else None
                self._table.apply(row.key.decode(), view, row.value)
            elif isinstance(record, Alert) and row.value is not None:
                self._counters.count(record)
                self.pages.history.add(record, row.value)
            elif row.destination == "dead_letters":
                self._metrics.dead_letters.inc()

    def render(self) -> float:
        """Renders /metrics. Returns the duration in seconds."""
        started, now = time.monotonic(), self._clock()
        if self._table.clusters:
            self._table.live = True
            self._metrics.ready.set(1)
        exposition = self._renderer.render(self._table, self._counters, now)
        self.site.exposition = exposition
        seconds = time.monotonic() - started
        self._metrics.record_refresh(exposition, seconds, now)
        return seconds

    def waiting(self) -> list[str]:
        return [] if self._table.live else [NOT_READ]

    def _render_own(self, openmetrics: bool) -> bytes:
        """The metrics of this process: those of a collector and those of an exporter."""
        exporters = self._metrics.registry.render(openmetrics)
        if self._collector is None:
            return exporters
        return self._collector.render(openmetrics).removesuffix(END_MARK) + exporters


class TopSite:
    """Serves a live cluster once it is built; `apply` is called by one thread.

    Raises ConfigError or TidemarkError where it cannot listen.
    """

    def __init__(self, settings: Settings, cluster: str, listen: str, own: CollectMetrics) -> None:
        self._table = SiteTable(settings, cluster, own.registry)
        self._next_refresh = 0.0
        self._server, self.note = _serve(self._table.site, settings, listen, self._table.waiting)

    def apply(self, rows: Iterable[Row]) -> None:
        """Takes over the rows of one pass, and renders them: at most a tenth of a core."""
        self._table.take(rows)
        started = time.monotonic()
        if started >= self._next_refresh:
            seconds = self._table.render()
            pause = max(REFRESH_SECONDS, PAUSE_PER_REFRESH * seconds)
            self._next_refresh = started + seconds + pause

    def close(self) -> None:
        self._server.close()


class RecordedSite:
    """Serves a recording: below /pass/NUMBER/ after this pass, else after the one shown last.

    An address with a pass shows the same at any time, to any number of users. Raises as TopSite.
    """

    def __init__(self, settings: Settings, recorded: RecordedCluster, listen: str) -> None:
        self._settings, self._recorded = settings, recorded
        self.begin_again()
        self._server, self.note = _serve(self._answer, settings, listen, list)
        recorded.follow(self)

    def begin_again(self) -> None:
        recorded = self._recorded
        self._table = SiteTable(
            self._settings,
            recorded.cluster,
            clock=lambda: recorded.ended[max(1, recorded.number) - 1],
        )
        # Of the pass that is rendered.
        self._rendered = 0

    def apply(self, rows: Iterable[Row]) -> None:
        self._table.take(rows)

    def close(self) -> None:
        self._server.close()

    def _answer(self, asked: Request) -> Response:
        recorded = self._recorded
        number, path = pass_of(asked.path)
        with recorded.lock:
            if number is None and (there := to_pass(recorded.number, asked.path, asked.query)):
                return there
            if number is not None and not 1 <= number <= len(recorded.ended):
                text = f"the recording has the passes 1 to {len(recorded.ended)}, and no other"
                return failure(path, HTTPStatus.NOT_FOUND, text)
            if number is not None and number != recorded.number:
                recorded.go_to(number)
            if self._rendered != recorded.number:
                self._rendered = recorded.number
                self._table.pages.renew(
                    Recording(
                        recorded.number, recorded.ended, [m._asdict() for m in recorded.moments]
                    )
                )
                self._table.render()
            return self._table.site(asked._replace(path=path))


def _serve(
    app: App, settings: Settings, listen: str, waiting: Callable[[], list[str]]
) -> tuple[WebServer, str]:
    """The server and its address."""
    server = serve_site(app, Health(waiting), listen, settings.export.web_config_file)
    return server, f"http://{listen.rpartition(':')[0]}:{server.port}/"
