"""The live cluster: the collector's thread reduces each pass and leaves a snapshot of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from tidemark.collect.collector import Collector
from tidemark.collect.metadata.refusals import refusal_summary
from tidemark.collect.metrics import CollectMetrics
from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.publisher import Publisher
from tidemark.collect.source_readers import start_sources
from tidemark.detect.thresholds import Detection
from tidemark.reduce.rows import Row
from tidemark.settings import Cluster, Settings
from tidemark.verbs.top.recorder import Recorder
from tidemark.verbs.top.reducer import TopReducer
from tidemark.verbs.top.snapshot import Snapshot


class RowSink(Protocol):
    """Takes what the stream would publish after a pass."""

    def apply(self, rows: Iterable[Row]) -> None: ...

    def refresh(self) -> None: ...

    def close(self) -> None: ...

    @property
    def note(self) -> str: ...


class ReducingPublisher(Publisher):
    """Reduces records in place of publishing them, between two passes in the collector's thread.

    So a pass that takes long to reduce is seen as a late one, and nothing queues.
    """

    def __init__(self, cluster: str, detection: Detection, recorder: Recorder | None) -> None:
        super().__init__(groups=1)
        # Of the newest pass; replaced as a whole.
        self.snapshot: Snapshot | None = None
        self.site: RowSink | None = None
        self.notes: Callable[[], tuple[str, ...]] = tuple
        self.on_pass: Callable[[], None] = lambda: None
        self._cluster = cluster
        self._reducer = TopReducer(detection)
        self._recorder = recorder

    def put(self, records: list[EventRecord]) -> None:
        if self._recorder is not None:
            self._recorder.write(record.payload for record in records)
        rows: list[Row] = []
        for record in records:
            self.published += 1
            rows += self._reducer.record(record.payload, self.published)
        if self.site is not None:
            self.site.apply(rows)
            self.site.refresh()
        snapshot = self._reducer.snapshot(self._cluster)
        self.snapshot = None if snapshot is None else replace(snapshot, notes=self._notes())
        self.published_at = time.monotonic()
        self.on_pass()

    def _notes(self) -> tuple[str, ...]:
        ended = None if self._recorder is None else self._recorder.ended
        site = () if self.site is None else (self.site.note,)
        return (*site, *self.notes(), *(() if ended is None else (ended,)))

    def close(self, seconds: float) -> None:  # noqa: ARG002 - nothing waits here
        if self.site is not None:
            self.site.close()
        if self._recorder is not None:
            self._recorder.close()


class LiveCluster:
    """A collector whose passes are reduced at once. `start` it, then read `snapshot`."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        recorder: Recorder | None = None,
        limit: int | None = None,
    ) -> None:
        self.metrics = CollectMetrics()
        self.publisher = ReducingPublisher(cluster.name, settings.detect, recorder)
        self._collector = Collector(
            cluster,
            settings,
            self.publisher,
            self.metrics,
            int(time.time() * 1000),
            limit,
            start_sources(cluster, settings, self.metrics),
        )
        self.publisher.notes = self._refusals

    def serve(self, site: RowSink) -> None:
        """Also gives the rows of each pass to a site; call it before `start`."""
        self.publisher.site = site

    def start(self) -> None:
        self._collector.start()

    def stop(self, seconds: float) -> None:
        """Ends after the pass under way, or after `seconds`."""
        self._collector.stop()
        self._collector.join(seconds)
        self.publisher.close(seconds)

    @property
    def snapshot(self) -> Snapshot | None:
        return self.publisher.snapshot

    @property
    def is_running(self) -> bool:
        return self._collector.is_alive()

    def _refusals(self) -> tuple[str, ...]:
        """What brokers refuse, in the words of docs/permissions.md."""
        refused = self._collector.passes.refused()
        return (refusal_summary(refused),) if refused else ()
