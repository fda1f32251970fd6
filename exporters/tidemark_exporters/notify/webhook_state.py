"""A webhook as a receiver: each transition of an alert is posted once, in batches. Pure.

Of updates only those of an offline partition are: they name other brokers to bring back.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import structs

from tidemark.core.records import Alert
from tidemark.settings import Notify, Receiver
from tidemark_exporters.notify.derived_alerts import Heartbeat
from tidemark_exporters.notify.groups import OFFLINE, Group, is_loss
from tidemark_exporters.notify.offsets import KnownState, Offsets
from tidemark_exporters.notify.payload import webhook_body
from tidemark_exporters.notify.queue import AlertBatch, Entry, Queue
from tidemark_exporters.notify.receiver_state import (
    FIRING,
    RESOLVED,
    Mute,
    ReceiverState,
    refreshed,
)

MAX_STATES: Final = 50_000
# Fired, but dropped or refused before it was posted: its end is not posted either.
DROPPED: Final = "dropped"


class WebhookState(ReceiverState):
    """The queue of one webhook, and the last state of each alert. It has one address."""

    def __init__(
        self,
        route: Receiver,
        notify: Notify,
        offsets: Offsets,
        mute: Mute,
        now: float,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        super().__init__(route, notify, offsets, mute, now, heartbeat)
        self._receiver = route
        self._queue = Queue(notify.queue_size, notify.gather_seconds)
        # Bounded: an alert that is forgotten may be posted a second time.
        self._states: OrderedDict[str, KnownState] = OrderedDict(offsets.own)
        # The heartbeat that is being posted, instead of a batch of the queue.
        self._beat: Alert | None = None

    def attach(self, offsets: Offsets) -> None:
        super().attach(offsets)
        for fingerprint, known in offsets.own.items():
            self._states.setdefault(fingerprint, known)

    def _known(self, fingerprint: str) -> KnownState | None:
        return self._states.get(fingerprint)

    def _note(self, alert: Alert, state: str) -> None:
        self._states.pop(alert.fingerprint, None)
        self._states[alert.fingerprint] = KnownState(state, alert.starts_at)
        if len(self._states) > MAX_STATES:
            self._states.popitem(last=False)

    def _recall(self, alert: Alert, _now: float) -> None:
        taken_from_view = self.offsets.own.get(alert.fingerprint)
        overtaken = taken_from_view is not None and taken_from_view.starts_at > alert.starts_at
        if alert.state != "update" and not overtaken:
            self._note(alert, alert.state)

    def _refresh(self, alert: Alert, now: float) -> None:
        fingerprint = alert.fingerprint
        entry = (
            self._backlog.find(fingerprint)
            or self.muted.get(fingerprint)
            or self._queue.find(fingerprint)
        )
        if entry is not None and entry.alert.state == FIRING:
            entry.alert = refreshed(entry.alert, alert)
        elif (
            entry is None
            and alert.labels.get("alertname") == OFFLINE
            and self._states.get(fingerprint) == (FIRING, alert.starts_at)
        ):
            # It was posted, and now another broker is to be brought back.
            self._send(Entry(structs.replace(alert, state=FIRING), None, now), now)

    def _begin(self, entry: Entry) -> None:
        self._note(entry.alert, FIRING)

    def _release(self, entry: Entry, now: float) -> None:
        super()._release(entry, now)
        if len(self.muted) > self._notify.queue_size:
            self._drop(self.muted.popitem(last=False)[1], "dropped")

    def _send(self, entry: Entry, now: float) -> None:
        alert = entry.alert
        group = self._queue.group_of(alert.fingerprint) or self._groups.of(alert)
        if alert.state == FIRING:
            self._groups.move(alert, group)
        self._push(entry, group, now)

    def _push(self, entry: Entry, group: Group, now: float) -> None:
        for dropped in self._queue.push(entry, group, now):
            self._drop(dropped, "dropped")

    def _drop(self, entry: Entry, outcome: str) -> None:
        alert = entry.alert
        if self._states.get(alert.fingerprint) == (FIRING, alert.starts_at):
            self._note(alert, DROPPED)
            self._groups.end(alert.fingerprint)
        self._settle(entry.position, outcome)

    def _end(self, entry: Entry, now: float) -> None:
        known = self._states.get(entry.alert.fingerprint)
        self._note(entry.alert, RESOLVED)
        if known is None and self._backlog.is_old(entry.alert, now) and self.offsets.fresh:
            # Its firing has left the topic, and this receiver never got it.
            self._settle(entry.position, "history")
        elif known is not None and known.state == DROPPED:
            self._settle(entry.position, "dropped")
        elif self._receiver.send_resolved:
            self._send(entry, now)
        else:
            self.offsets.settle(entry.position)

    def _forget(self, ended: Alert) -> None:
        self._note(ended, RESOLVED)

    def request(self, _number: int, now: float) -> tuple[bytes, str | None] | None:
        self._beat, group, is_update = None, Group({}), False
        if self._heartbeat is not None and self._heartbeat.due(now):
            self._beat = self._heartbeat.alert(now)
            alerts = [self._beat]
        elif (batch := self._take(now)) is not None:
            alerts = [entry.alert for entry in batch.entries.values()]
            group, is_update = batch.group, batch.is_update
        else:
            return None
        return webhook_body(
            alerts,
            group,
            self._receiver,
            self._notify,
            is_update=is_update,
            open_elsewhere=not group.open <= self.muted.keys(),
        )

    def _take(self, now: float) -> AlertBatch | None:
        """The batch to post. The first of a cause takes in what waits and belongs to it."""
        cause = self._queue.beginning(now)
        if cause is not None:
            for waiting in self._queue.withdraw(cause):
                self._groups.move(waiting.alert, cause)
                self._push(waiting, cause, now)
        return self._queue.take(now)

    def delivered(self, _number: int, _now: float) -> None:
        entries = [] if self._beat is not None else self._queue.delivered()
        for entry in entries:
            self._settle(entry.position, "delivered")
            if entry.position is None:
                self.offsets.remember(entry.alert)

    def refused(self, _number: int, now: float) -> list[Alert]:
        if self._beat is not None:
            return [self._beat]
        refused = self._queue.refused(now)
        for entry in refused:
            if not is_loss(entry.alert):
                self._drop(entry, "rejected")
                if entry.position is None:
                    self.offsets.remember(entry.alert)
        return [entry.alert for entry in refused]

    def failed(self, _number: int) -> None:
        """A heartbeat that failed is replaced by the next."""
        if self._beat is None:
            self._queue.failed()

    def next_at(self) -> float | None:
        return self._queue.next_at()

    def waiting(self, _number: int, now: float) -> tuple[int, float | None]:
        count, oldest = self._queue.waiting(now)
        return count + len(self._backlog), oldest
