"""The product in one process: a collector, its recording, the reducer, the delivery of alerts.

No Kafka between them, and no Spark.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tidemark.collect.collector import Collector
from tidemark.collect.metrics import CollectMetrics
from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.publisher import Publisher
from tidemark.core.errors import ClusterError
from tidemark.core.records import Alert, DeadLetter, View, decode_record
from tidemark.detect.default_thresholds import Detection, Thresholds
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.rows import RawRecord, Row
from tidemark.settings import Cluster, Collect, Settings
from tidemark_lab.drills.notifications import Notifications
from tidemark_lab.judge.expected import ReceivedAlert
from tidemark_lab.judge.verdict import Notification

CLUSTER_NAME: Final = "drill"
# The name of the collector that watches from the start.
COLLECTOR: Final = "drill"
_STOP_SECONDS: Final = 10.0


class Pipeline(Publisher):
    """Takes records of collectors, keeps them in `events`, and folds them in its own thread.

    One group, as `tidemark replay` folds: a replay of the recording gives the same alerts.
    """

    def __init__(
        self,
        servers: Sequence[str],
        events: Path,
        thresholds: Mapping[str, Any],
        controllers: Sequence[str] = (),
    ) -> None:
        """`controllers`: their listeners, where collectors read the metadata log too."""
        super().__init__(groups=1)
        self._servers, self._controllers = list(servers), list(controllers)
        self.events = events
        self._file = events.open("wb")
        detection = Detection(thresholds=Thresholds(**thresholds))
        self._fold = Fold(GroupState(), detection, 0, 1)
        # A pass in each item; None ends the thread. A pass takes far longer than its reduction.
        self._queue: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._alerts: list[ReceivedAlert] = []
        self._letters: list[str] = []
        self._passes = 0
        self._thread = threading.Thread(target=self._run, name="reducer", daemon=True)
        self._collectors: dict[str, Collector] = {}
        self._notifications = Notifications(CLUSTER_NAME)
        # Gets the records of each pass.
        self.on_rows: Callable[[Sequence[Row]], object] = lambda _: None

    def watched_cluster(self) -> Cluster:
        """How collectors connect."""
        return Cluster(
            name=CLUSTER_NAME, bootstrap_servers=self._servers, controllers=self._controllers
        )

    def start_collector(self, name: str, clock_offset_seconds: float = 0.0) -> None:
        """A collector whose wall clock is ahead by the offset."""

        def clock() -> float:
            return time.time() + clock_offset_seconds

        cluster = self.watched_cluster()
        settings = Settings(clusters=[cluster], collect=Collect(collector=name))
        epoch = int(clock() * 1000)
        collector = Collector(cluster, settings, self, CollectMetrics(), epoch, clock=clock)
        collector.start()
        self._collectors[name] = collector

    def stop_collector(self, name: str) -> None:
        collector = self._collectors.pop(name)
        collector.stop()
        collector.join(_STOP_SECONDS)

    def put(self, records: list[EventRecord]) -> None:
        self._queue.put([record.payload for record in records])
        self.published += len(records)

    def alerts(self) -> list[ReceivedAlert]:
        """Every transition so far, in order."""
        with self._lock:
            return list(self._alerts)

    def notifications(self) -> list[Notification]:
        """What the webhook got so far, in order."""
        return self._notifications.received()

    def passes(self) -> int:
        """The number of passes that were judged."""
        with self._lock:
            return self._passes

    def check(self) -> None:
        """Raises ClusterError where an event could not be reduced, or a collector has ended."""
        with self._lock:
            letters = list(self._letters)
        if letters:
            raise ClusterError(f"the reducer could not read an event: {letters[0]}")
        for name, collector in list(self._collectors.items()):
            if not collector.is_alive():
                raise ClusterError(f"the collector {name} ended.")

    def start(self) -> None:
        self._thread.start()

    def close(self, seconds: float = _STOP_SECONDS) -> None:
        """Stops the collectors, reduces what is left, and closes the recording."""
        for name in list(self._collectors):
            self.stop_collector(name)
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(seconds)
        if not self._file.closed:
            self._notifications.close()
        self._file.close()

    def _run(self) -> None:
        number = 0
        while (lines := self._queue.get()) is not None:
            for line in lines:
                self._file.write(line + b"\n")
                self._fold.record(RawRecord(0, number, time.time(), line))
                number += 1
            self._file.flush()
            rows, self._fold.rows = self._fold.rows, []
            self.on_rows(rows)
            found = [decode_record(row.value) for row in rows if row.value is not None]
            views = [record for record in found if isinstance(record, View)]
            self._take([record for record in found if isinstance(record, Alert)], views)
            letters = (record for record in found if isinstance(record, DeadLetter))
            with self._lock:
                self._letters += [f"{letter.field}: {letter.reason}" for letter in letters]
                self._passes += 1

    def _take(self, alerts: Sequence[Alert], views: Sequence[View]) -> None:
        with self._lock:
            self._alerts += [ReceivedAlert(alert, time.time()) for alert in alerts]
        self._notifications.take(alerts, views)
