"""Delivery as a whole: every receiver with its worker, and the exporter's own alerts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from tidemark.core.records import Alert, View
from tidemark.settings import Settings
from tidemark_exporters.notify.courier import Courier, OffsetStore
from tidemark_exporters.notify.lifecycle import Assertions, Watchdog
from tidemark_exporters.notify.outbox import Outbox
from tidemark_exporters.notify.positions import Mark, Position
from tidemark_exporters.notify.receiver import Transport

# How many records before the committed offset are read again, to know which ids and alerts a receiver was told of.
READ_BACK = 5000


class Delivery:
    """Hands alert records to the receivers' workers. `alerts` and `view` may be called from two threads."""

    def __init__(self, settings: Settings, couriers: list[Courier], starts: dict[int, int], clock: Callable[[], float] = time.time) -> None:
        self.couriers = couriers
        # Where to begin reading the alerts topic, by partition.
        self.starts = starts
        self._clock = clock
        self._stale_seconds = settings.export.stale_seconds
        self._lock = threading.Lock()
        self._assertions = Assertions()
        names = [cluster.name for cluster in settings.clusters]
        self._watchdog = Watchdog(names, self._stale_seconds, settings.detect.runbook_url, clock())
        self._threads: list[threading.Thread] = []

    def alerts(self, records: list[tuple[Alert, Position]]) -> None:
        """Records of one poll, in order."""
        with self._lock:
            for alert, _ in records:
                self._assertions.take(alert)
        for courier in self.couriers:
            courier.offer(records)

    def view(self, view: View) -> None:
        if view.alerts:
            with self._lock:
                self._assertions.vouch(view)

    def tick(self, newest: dict[str, float]) -> None:
        """Judges what time alone changes; call it about once a second once the topics were read to their ends.

        `newest`: time of the newest pass that a view speaks of, by cluster.
        """
        now = self._clock()
        with self._lock:
            own = [*self._assertions.lost(newest, now, self._stale_seconds), *self._watchdog.judge(newest, now)]
        for courier in self.couriers:
            courier.tick(newest)
            courier.offer_own(own)

    def start(self) -> None:
        self._threads = [threading.Thread(target=c.run, name=f"notify-{c.receiver.name}", daemon=True) for c in self.couriers]
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float) -> None:
        """Lets the workers finish the post in hand and commit, for at most `seconds` together."""
        deadline = time.monotonic() + seconds
        for courier in self.couriers:
            courier.stop()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def make_courier(
    settings: Settings, index: int, transport: Transport, store: OffsetStore, ends: dict[int, int], clock: Callable[[], float] = time.time
) -> tuple[Courier, dict[int, int]]:
    """The worker of `notify.receivers[index]`, and where it wants the alerts topic read from, by partition.

    `ends`: end offsets of the topic now. Commits beyond them belong to a topic that was deleted and made again.
    """
    receiver, notify = settings.notify.receivers[index], settings.notify
    marks = _valid(store.load(), ends)
    outbox = Outbox(receiver, marks, ends, notify.gather_seconds, notify.queue_size)
    starts = {number: max(0, marks[number].offset - READ_BACK) if number in marks else 0 for number in ends}
    return Courier(receiver, outbox, transport, store, notify.external_url, clock), starts


def _valid(marks: dict[int, Mark], ends: dict[int, int]) -> dict[int, Mark]:
    return {number: mark for number, mark in marks.items() if number in ends and mark.offset <= ends[number]}


def earliest(starts: Iterable[dict[int, int]]) -> dict[int, int]:
    """Where one reader must begin for all receivers."""
    result: dict[int, int] = {}
    for each in starts:
        for number, offset in each.items():
            result[number] = min(offset, result.get(number, offset))
    return result
