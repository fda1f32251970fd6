"""The live cluster: the collector's thread reduces each pass and leaves a snapshot of it.

`--record` appends the events of each pass to a file, for `tidemark replay`.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from tidemark.collect.collector import Collector
from tidemark.collect.metadata.refusals import refusal_summary
from tidemark.collect.metrics import CollectMetrics
from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.publisher import Publisher
from tidemark.collect.source_readers import start_sources
from tidemark.core.errors import ConfigError
from tidemark.reduce.rows import Row
from tidemark.settings import Cluster, Settings
from tidemark.verbs.top.reducer import TopReducer
from tidemark.verbs.top.snapshot import Snapshot

# A recording ends here; collection goes on.
MAX_BYTES: Final = 8 * 1024**3


class Recorder:
    """Appends one batch per line, gzipped where the name ends in `.gz`. A full disk ends it only.

    Raises ConfigError where the file cannot be written.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        # Why it ended; null while it goes on.
        self.ended: str | None = None
        self._left = max_bytes
        try:
            continued = path.exists() and path.stat().st_size > 0
            self._file: Any = (gzip.open if path.suffix == ".gz" else open)(path, "ab")
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}. Choose another.") from None
        if continued:
            # The last line of a process that was killed may have no end; empty lines are skipped.
            self._file.write(b"\n")

    def write(self, payloads: Iterable[bytes]) -> None:
        """Writes the batches of one pass; raises nothing."""
        if self.ended is not None:
            return
        try:
            for payload in payloads:
                self._left -= len(payload) + 1
                if self._left < 0:
                    self.ended = f"recording ended: {self.path} has reached its limit"
                    break
                self._file.write(payload + b"\n")
            self._file.flush()
        except OSError as error:
            self.ended = f"recording ended: cannot write {self.path}: {error.strerror}"

    def close(self) -> None:
        """Ends the file; raises nothing."""
        try:
            self._file.close()
        except OSError as error:
            self.ended = f"recording ended: cannot write {self.path}: {error.strerror}"


class RowSink(Protocol):
    """Takes what the stream would publish after a pass."""

    note: str

    def apply(self, rows: Iterable[Row]) -> None: ...

    def close(self) -> None: ...


class LiveCluster(Publisher):
    """A collector whose passes are reduced at once. `start` it, then read `snapshot`.

    The collector's own thread reduces records between two passes, in place of publishing them. So a
    pass that takes long to reduce is seen as a late one, and nothing queues.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        recorder: Recorder | None = None,
        limit: int | None = None,
        pages: str = "",
    ) -> None:
        super().__init__(groups=1)
        self.metrics = CollectMetrics()
        # Of the newest pass; replaced as a whole.
        self.snapshot: Snapshot | None = None
        # Also gets the rows of each pass.
        self.site: RowSink | None = None
        self.waiting = f"connected to {cluster.name}; the first pass is under way"
        self.on_pass: Callable[[], None] = lambda: None
        self._reducer = TopReducer(settings.detect, pages)
        self._recorder = recorder
        self._collector = Collector(
            cluster,
            settings,
            self,
            self.metrics,
            int(time.time() * 1000),
            limit,
            start_sources(cluster, settings, self.metrics),
        )

    def start(self) -> None:
        self._collector.start()

    @property
    def is_running(self) -> bool:
        return self._collector.is_alive()

    def put(self, records: list[EventRecord]) -> None:
        if self._recorder is not None:
            self._recorder.write(record.payload for record in records)
        rows: list[Row] = []
        for record in records:
            self.published += 1
            rows += self._reducer.record(record.payload, self.published)
        if self.site is not None:
            self.site.apply(rows)
        snapshot = self._reducer.snapshot(self._collector.cluster.name)
        self.snapshot = snapshot and replace(snapshot, notes=tuple(self._notes(snapshot)))
        self.published_at = time.monotonic()
        self.on_pass()

    def _notes(self, snapshot: Snapshot) -> Iterator[str]:
        if self.site is not None:
            yield self.site.note
        if not snapshot.brokers:
            yield from map(str, self._collector.passes.findings)
        # What brokers refuse, in the words of docs/permissions.md.
        if refused := self._collector.passes.refused():
            yield refusal_summary(refused)
        if self._recorder is not None and self._recorder.ended is not None:
            yield self._recorder.ended

    def close(self, seconds: float) -> None:
        """Ends after the pass under way, or after `seconds`."""
        self._collector.stop()
        self._collector.join(seconds)
        if self.site is not None:
            self.site.close()
        if self._recorder is not None:
            self._recorder.close()
