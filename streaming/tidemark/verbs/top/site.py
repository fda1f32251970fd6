"""`--listen`: the status page, its API and /metrics over the same pass, in the same process.

The rows are those that the stream would publish, so the page shows what it shows with a stream.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from tidemark.collect.metrics import CollectMetrics
from tidemark.core.records import Alert, View, decode_record
from tidemark.reduce.rows import Row
from tidemark.settings import Settings
from tidemark.web.health import Health
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Renderer
from tidemark_exporters.export.own_metrics import ExportMetrics
from tidemark_exporters.export.table import Table
from tidemark_exporters.http_server import Site, serve_site
from tidemark_exporters.pages.responses import Pages
from tidemark_exporters.process import PAUSE_PER_REFRESH, REFRESH_SECONDS

NOT_READ = "the first pass"
END_MARK = b"# EOF\n"


class TopSite:
    """Serves once it is built; `apply` is called by one thread.

    Raises ConfigError or TidemarkError where it cannot listen.
    """

    def __init__(self, settings: Settings, cluster: str, listen: str, own: CollectMetrics) -> None:

        self._table = Table(settings.detect.lag_threshold())
        self._counters = EventCounters()
        self._counters.add_cluster(cluster)
        self._renderer = Renderer(settings.export)
        self._metrics = ExportMetrics()
        self._collect_metrics = own
        pages = Pages(self._table, settings.export.stale_seconds, self._waiting)
        # Nothing is kept over a restart: the history is complete from the start of the process.
        pages.history.complete = True
        self._site = Site(self._render_own, pages)
        self._next_refresh = 0.0
        web_config_file = settings.export.web_config_file
        self._server = serve_site(self._site, Health(self._waiting), listen, web_config_file)
        host = listen.rpartition(":")[0]
        self.note = f"http://{host}:{self._server.port}/"

    def apply(self, rows: Iterable[Row]) -> None:
        """Takes over the rows of one pass, and renders them."""
        for row in rows:
            record = None if row.value is None else decode_record(row.value)
            if row.destination == "partition_views":
                view = record if isinstance(record, View) else None
                self._table.apply(row.key.decode(), view, row.value)
            elif isinstance(record, Alert) and row.value is not None:
                self._counters.count(record)
                self._site.pages.history.add(record, row.value)
            elif row.destination == "dead_letters":
                self._metrics.dead_letters.inc()
        self._refresh()

    def _refresh(self) -> None:
        """Renders /metrics, seldom enough to take at most a tenth of a core."""
        started, now = time.monotonic(), time.time()
        if started < self._next_refresh:
            return
        if self._table.clusters:
            self._table.live = True
            self._metrics.ready.set(1)
        exposition = self._renderer.render(self._table, self._counters, now)
        self._site.exposition = exposition
        seconds = time.monotonic() - started
        self._metrics.record_refresh(exposition, seconds, now)
        pause = max(REFRESH_SECONDS, PAUSE_PER_REFRESH * seconds)
        self._next_refresh = started + seconds + pause

    def close(self) -> None:
        self._server.close()

    def _waiting(self) -> list[str]:
        return [] if self._table.live else [NOT_READ]

    def _render_own(self, openmetrics: bool) -> bytes:
        """The metrics of this process: those of a collector and those of an exporter."""
        collectors = self._collect_metrics.registry.render(openmetrics)
        exporters = self._metrics.registry.render(openmetrics)
        return collectors.removesuffix(END_MARK) + exporters
