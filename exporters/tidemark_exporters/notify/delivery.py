"""Delivery as a whole: every receiver with its worker, and the exporter's own alerts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

import structlog

from tidemark.core.records import Alert, OpenAlert, View
from tidemark.settings import Settings
from tidemark_exporters.notify.board import Board
from tidemark_exporters.notify.commits import OffsetStore
from tidemark_exporters.notify.courier import Courier
from tidemark_exporters.notify.heartbeat import Heartbeat
from tidemark_exporters.notify.lifecycle import Assertions, Watchdog
from tidemark_exporters.notify.maintenance import Windows
from tidemark_exporters.notify.outbox import Outbox
from tidemark_exporters.notify.positions import Mark, Position
from tidemark_exporters.notify.pusher import BatchTransport, Pusher
from tidemark_exporters.notify.receiver import Transport
from tidemark_exporters.notify.worker import Report, Worker

# How many records before the committed offset are read again, to know which ids and alerts a receiver was told of.
READ_BACK = 5000


log = structlog.get_logger()


def nothing_open() -> list[OpenAlert]:
    return []


class Delivery:
    """Hands alert records to the receivers' workers. `alerts` and `view` may be called from two threads."""

    def __init__(
        self,
        settings: Settings,
        workers: Sequence[Worker],
        starts: dict[int, int],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.workers = workers
        # Where to begin reading the alerts topic, by partition.
        self.starts = starts
        self._clock = clock
        self._stale_seconds = settings.export.stale_seconds
        self._lock = threading.Lock()
        self._assertions = Assertions()
        names = [cluster.name for cluster in settings.clusters]
        self._watchdog = Watchdog(names, self._stale_seconds, settings.detect.runbook_url, clock())
        self.windows = Windows(settings.notify.maintenance)
        self._open_windows: dict[str, float] = {}
        # Alerts that began before this may have had a record that was not read again.
        self._horizon = clock()
        self._threads: list[threading.Thread] = []
        # Why a worker ended that should not have: nothing is delivered by it any more.
        self.failure: Exception | None = None

    def alerts(self, records: list[tuple[Alert, Position]]) -> None:
        """Records of one poll, in order."""
        with self._lock:
            for alert, _ in records:
                self._assertions.take(alert)
                self._horizon = min(self._horizon, alert.at)
        for worker in self.workers:
            worker.offer(records)

    def view(self, view: View) -> None:
        if view.alerts:
            with self._lock:
                self._assertions.vouch(view, self._clock())

    def tick(
        self, newest: dict[str, float], open_now: Callable[[], Iterable[OpenAlert]] = nothing_open
    ) -> None:
        """Judges what time alone changes; call it about once a second once the topics were read to their ends.

        `newest`: time of the newest pass that a view speaks of, by cluster. `open_now`: every alert that a view holds.
        """
        now = self._clock()
        with self._lock:
            judged = self._watchdog.judge(newest, now)
            own = [*self._assertions.lost(newest, now, self._stale_seconds), *judged]
            unheard, horizon = self._assertions.unheard(open_now, now), self._horizon
        stale = {
            alert.labels["kafka_cluster"]: alert.evidence["stale_since"]
            for alert in judged
            if "stale_since" in alert.evidence
        }
        if unheard:
            log.warning(
                "alerts that stand in views but not on the topic of alerts are taken from the views",
                alerts=len(unheard),
            )
        for worker in self.workers:
            worker.adopt(unheard, horizon)
            worker.tick(newest, stale)
            worker.offer_own(own)
        self._tell_windows(self.windows.open(now))

    def _tell_windows(self, windows: dict[str, float]) -> None:
        for name in windows.keys() - self._open_windows.keys():
            log.info(
                "maintenance window begins: alerts that it explains are held back",
                window=name,
                seconds=windows[name] - self._clock(),
            )
        for name in self._open_windows.keys() - windows.keys():
            log.info("maintenance window ends", window=name)
        self._open_windows = windows

    def reports(self) -> list[Report]:
        """What became of alerts since the last call, by receiver."""
        return [report for worker in self.workers for report in worker.reports()]

    def start(self) -> None:
        self._threads = [
            threading.Thread(
                target=self._guarded, args=(run,), name=f"notify-{worker.name}", daemon=True
            )
            for worker in self.workers
            for run in worker.runs()
        ]
        for thread in self._threads:
            thread.start()

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:
            self.failure = error

    def stop(self, seconds: float) -> None:
        """Lets the workers finish the post in hand and commit, for at most `seconds` together."""
        deadline = time.monotonic() + seconds
        for worker in self.workers:
            worker.stop()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))


class Maker:
    """Makes workers, and gathers where they want the alerts topic read from.

    `ends`: end offsets of the topic now. Commits beyond them belong to a topic that was deleted and made again.
    """

    def __init__(
        self, settings: Settings, ends: dict[int, int], clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._ends = ends
        self._clock = clock
        self._windows = Windows(settings.notify.maintenance)
        self.starts: dict[int, int] = {}

    def courier(self, index: int, transport: Transport, store: OffsetStore) -> Courier:
        """The worker of `notify.receivers[index]`."""
        notify = self._settings.notify
        receiver = notify.receivers[index]
        outbox = Outbox(
            receiver,
            self._marks(store),
            self._ends,
            notify.gather_seconds,
            notify.queue_size,
            self._windows.mutes,
        )
        return Courier(
            receiver,
            outbox,
            transport,
            store,
            notify.external_url,
            self._clock,
            self._heartbeat(receiver.name),
        )

    def pusher(
        self, index: int, transports: Iterable[BatchTransport], store: OffsetStore
    ) -> Pusher:
        """The worker of `notify.alertmanagers[index]`."""
        notify = self._settings.notify
        manager = notify.alertmanagers[index]
        heartbeat = self._heartbeat(manager.name)
        board = Board(
            manager,
            self._marks(store),
            self._ends,
            self._clock(),
            notify.queue_size,
            self._windows.mutes,
            heartbeat,
        )
        return Pusher(manager.name, board, transports, store, notify.external_url, self._clock)

    def _heartbeat(self, name: str) -> Heartbeat | None:
        notify = self._settings.notify
        if notify.heartbeat_receiver != name:
            return None
        return Heartbeat(notify.heartbeat_seconds, self._settings.detect.runbook_url, self._clock())

    def _marks(self, store: OffsetStore) -> dict[int, Mark]:
        marks = {
            number: mark
            for number, mark in store.load().items()
            if number in self._ends and mark.offset <= self._ends[number]
        }
        for number in self._ends:
            start = max(0, marks[number].offset - READ_BACK) if number in marks else 0
            self.starts[number] = min(start, self.starts.get(number, start))
        return marks
