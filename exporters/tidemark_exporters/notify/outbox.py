"""Everything between the alerts topic and one receiver that is no I/O: what to post, in which batches, what is settled."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable

from msgspec import structs

from tidemark.core.records import Alert
from tidemark.settings import Receiver
from tidemark_exporters.notify.catch_up import CatchUp
from tidemark_exporters.notify.gather import Batch, Entry, Gatherer
from tidemark_exporters.notify.ledger import DROPPED, FIRING, RESOLVED, Ledger
from tidemark_exporters.notify.maintenance import Mute, never
from tidemark_exporters.notify.positions import Mark, Position, Positions, read_metadata
from tidemark_exporters.notify.queue import DeliveryQueue
from tidemark_exporters.notify.routing import wants


class Outbox:
    """One receiver's alerts on their way. Not locked; `now` is Unix seconds.

    `outcomes` counts alerts: delivered, rejected (the receiver refused them for good), dropped (the queue was full),
    history (too old to be news), muted (came and went within a maintenance window), duplicate (told before).
    """

    def __init__(
        self,
        receiver: Receiver,
        marks: dict[int, Mark],
        partitions: Iterable[int],
        gather_seconds: float,
        queue_size: int,
        mute: Mute = never,
    ) -> None:
        self._receiver = receiver
        self._positions = Positions(marks, partitions)
        own = read_metadata(marks[min(marks)].metadata).own if marks else {}
        self._ledger = Ledger(own)
        self._gatherer = Gatherer(gather_seconds)
        self._catch_up = CatchUp(queue_size)
        self._queue = DeliveryQueue(queue_size)
        self._mute = mute
        # Firings that a maintenance window holds back, oldest first; bounded like the queue.
        self._muted: OrderedDict[str, Entry] = OrderedDict()
        self._limit = queue_size
        self._told_own = dict(own)
        self.outcomes: Counter[str] = Counter()

    def offer(self, alert: Alert, position: Position, now: float) -> None:
        """Takes one record of the alerts topic, in order."""
        new = self._ledger.first_sight(alert.id)
        if self._positions.settled_before(*position):
            if alert.state != "update" and wants(self._receiver, alert):
                self._ledger.recall(alert)
            return
        self._positions.begin(*position)
        entry = Entry(alert, position, now)
        if not wants(self._receiver, alert):
            self._positions.settle(position)
        elif not new:
            self._settle(entry, "duplicate")
        elif alert.state == "update":
            self._refresh(alert)
            self._positions.settle(position)
        elif alert.state == "firing":
            self._fire(entry, now)
        else:
            self._resolve(entry, now)

    def offer_own(self, alert: Alert, now: float) -> None:
        """Takes an alert of the exporter itself, in the state that it should be in; told only when that is news."""
        told = self._ledger.state_of(alert.fingerprint)
        if (
            not wants(self._receiver, alert)
            or told == alert.state
            or (alert.state == "resolved" and told != FIRING)
        ):
            return
        if alert.state == "resolved":
            started = self._ledger.started_at(alert.fingerprint)
            alert = structs.replace(
                alert, starts_at=alert.starts_at if started is None else started
            )
        self._ledger.note(alert, own=True)
        entry = Entry(alert, None, now)
        if alert.state == "firing":
            self._send(entry, now)
        elif (muted := self._muted.pop(alert.fingerprint, None)) is not None:
            self._settle(muted, "muted")
        elif self._receiver.send_resolved:
            self._gatherer.offer(entry, now)

    def adopt(self, alert: Alert, horizon: float, now: float) -> None:
        """Takes an alert that is open in a view although no record of it was read.

        Began it before `horizon` (Unix seconds), its record may have aged out of the topic: an earlier run has told of it.
        """
        mark = alert.fingerprint
        told = self._ledger.state_of(mark)
        if told is not None and (
            told != RESOLVED or (self._ledger.started_at(mark) or 0.0) >= alert.starts_at
        ):
            return
        if alert.starts_at < horizon and not self._positions.fresh:
            self._ledger.note(alert)
        else:
            self.offer_own(alert, now)

    def _send(self, entry: Entry, now: float) -> None:
        """A firing goes its way, unless planned work explains it."""
        if not self._mute(entry.alert, now):
            self._gatherer.offer(entry, now)
            return
        self._muted[entry.alert.fingerprint] = entry
        if len(self._muted) > self._limit:
            _, oldest = self._muted.popitem(last=False)
            self._drop(oldest)

    def _fire(self, entry: Entry, now: float) -> None:
        if self._ledger.state_of(entry.alert.fingerprint) == FIRING:
            self._settle(entry, "duplicate")
            return
        self._ledger.note(entry.alert)
        if self._catch_up.old(entry, now):
            for released in self._catch_up.hold(entry, now):
                self._send(released, now)
        else:
            self._send(entry, now)

    def _resolve(self, entry: Entry, now: float) -> None:
        mark = entry.alert.fingerprint
        held, old = self._catch_up.take(mark, now), self._catch_up.old(entry, now)
        told = self._ledger.state_of(mark)
        self._ledger.note(entry.alert)
        if held is not None and old:
            self._settle(held, "history")
            self._settle(entry, "history")
            return
        if held is not None:
            self._send(held, now)
        if (muted := self._muted.pop(mark, None)) is not None:
            self._settle(muted, "muted")
            self._settle(entry, "muted")
        elif told is None and old and self._positions.fresh:
            # Its firing is not in the topic any more: this receiver never heard of it.
            self._settle(entry, "history")
        elif told == DROPPED:
            self._settle(entry, "dropped")
        elif told == RESOLVED:
            self._settle(entry, "duplicate")
        elif not self._receiver.send_resolved:
            self._positions.settle(entry.position)
        else:
            self._gatherer.offer(entry, now)

    def _refresh(self, alert: Alert) -> None:
        """An update changes what its firing will say if that still waits; it is no message of its own."""
        mark = alert.fingerprint
        waiting = self._catch_up.find(mark) or self._muted.get(mark) or self._gatherer.find(mark)
        waiting = waiting or next(
            (entry for entry in self._queue.waiting() if entry.alert.fingerprint == mark), None
        )
        if waiting is not None and waiting.alert.state == "firing":
            waiting.alert = structs.replace(
                waiting.alert, annotations=alert.annotations, evidence=alert.evidence
            )

    def tick(self, newest: dict[str, float], now: float) -> int:
        """Lets go of what need not wait any longer; how many alerts a maintenance window held. `newest`: the newest pass by cluster."""
        for entry in self._catch_up.release(newest, now):
            self._send(entry, now)
        released = [mark for mark, entry in self._muted.items() if not self._mute(entry.alert, now)]
        for mark in released:
            self._gatherer.offer(self._muted.pop(mark), now)
        return len(released)

    def flush(self, now: float) -> None:
        """Moves what was gathered long enough into the queue, which may drop its oldest for it."""
        for batch in self._gatherer.due(now):
            for entry in self._queue.push(batch):
                self._drop(entry)

    def take(self, now: float) -> Batch | None:
        """The batch to post now, if any; it must be answered by `delivered`, `rejected` or `failed`."""
        self.flush(now)
        return self._queue.take(now)

    def delivered(self, batch: Batch) -> None:
        self._queue.done(batch)
        self._finish(batch.entries, "delivered")

    def rejected(self, batch: Batch, now: float, *, of_content: bool = False) -> int:
        """The receiver refused the batch; how many alerts are given up for it.

        Where the content is at fault the batch is halved, down to the one alert. A loss is never given up.
        """
        if of_content and len(batch.entries) > 1:
            self._queue.split(batch)
            return 0
        given_up = self._queue.refused(batch, now)
        for entry in given_up:
            self._ledger.note_dropped(entry.alert)
        self._finish(given_up, "rejected")
        return len(given_up)

    def failed(self) -> None:
        """The post did not succeed; the batch stays first in the queue."""
        self._queue.give_back()

    def _drop(self, entry: Entry) -> None:
        self._ledger.note_dropped(entry.alert)
        self._settle(entry, "dropped")

    def _finish(self, entries: Iterable[Entry], outcome: str) -> None:
        for entry in entries:
            self._settle(entry, outcome)
            if entry.position is None:
                self._told_own[entry.alert.fingerprint] = (entry.alert.state, entry.alert.starts_at)

    def _settle(self, entry: Entry, outcome: str) -> None:
        self._positions.settle(entry.position)
        self.outcomes[outcome] += 1

    def next_deadline(self) -> float | None:
        """When `take` will next have something: 0 for now, None while nothing waits for a moment."""
        deadlines = [
            when
            for when in (self._queue.next_deadline(), self._gatherer.next_deadline())
            if when is not None
        ]
        return min(deadlines, default=None)

    @property
    def muted(self) -> int:
        """How many alerts a maintenance window holds back."""
        return len(self._muted)

    def oldest(self) -> float | None:
        """Since when the alert waits that has waited longest to be posted (Unix seconds); None while none waits."""
        return self._queue.oldest()

    def marks(self) -> dict[int, Mark]:
        """What to commit: nothing beyond it is posted again by the next run."""
        own = {mark: state for mark, state in self._told_own.items() if mark in self._ledger.own}
        self._told_own = dict(own)
        return self._positions.marks(own)

    def __len__(self) -> int:
        return len(self._queue) + len(self._gatherer) + len(self._catch_up)
