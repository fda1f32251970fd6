"""Takes the records of the alerts topic for one receiver: routed, and each record once. Pure.

The kinds of receivers (`webhook`, `alertmanager`) keep the alerts, choose the next post to each
address, and judge its answer. `now` is Unix seconds.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import structs

from tidemark.core.records import Alert
from tidemark.settings import Notify, Route
from tidemark_exporters.notify.derived_alerts import Heartbeat
from tidemark_exporters.notify.groups import Groups
from tidemark_exporters.notify.holdback import Backlog
from tidemark_exporters.notify.offsets import KnownState, Offsets, Position
from tidemark_exporters.notify.queue import Entry
from tidemark_exporters.notify.seen_ids import SeenIds

FIRING: Final = "firing"
RESOLVED: Final = "resolved"
READY_SECONDS: Final = 60.0

# The name of the maintenance window that holds an alert back at a moment, if any.
Mute = Callable[[Alert, float], str | None]


def wants(route: Route, alert: Alert) -> bool:
    """Whether severity, cluster and alert name all match (regular expressions, matched whole)."""
    labels = alert.labels
    wanted = (("kafka_cluster", route.clusters), ("alertname", route.alerts))
    return labels.get("severity") in route.severities and all(
        any(re.fullmatch(expression, labels.get(label, "")) for expression in expressions)
        for label, expressions in wanted
    )


def refreshed(alert: Alert, update: Alert) -> Alert:
    """An alert with the newest annotations and evidence."""
    return structs.replace(alert, annotations=update.annotations, evidence=update.evidence)


class ReceiverState(ABC):
    """The alerts of one receiver on their way. Not locked.

    `outcomes` counts alerts: delivered, rejected (refused for good), dropped (too many waited),
    history (too old to be news), muted (came and went within a maintenance window), duplicate.
    """

    def __init__(
        self,
        route: Route,
        notify: Notify,
        offsets: Offsets,
        mute: Mute,
        now: float,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        self.route = route
        self.offsets = offsets
        self.outcomes: Counter[str] = Counter()
        self._notify = notify
        self._mute = mute
        self._heartbeat = heartbeat
        self._seen = SeenIds()
        self._groups = Groups()
        self._backlog = Backlog(notify.queue_size)
        self._stale: dict[str, float] = {}
        # The first tick comes once the topics were read to their ends. Do not wait longer for it.
        self._ready_at = now + READY_SECONDS
        # Firing alerts that a maintenance window holds back, oldest first.
        self.muted: OrderedDict[str, Entry] = OrderedDict()

    def attach(self, offsets: Offsets) -> None:
        """Takes what earlier runs committed. Until then only `offer_own` is called.

        The states of own alerts posted meanwhile are newer.
        """
        for fingerprint, known in self.offsets.own.items():
            offsets.own[fingerprint] = known
        self.offsets = offsets

    def offer(self, alert: Alert, position: Position, now: float) -> None:
        """Takes one record of the alerts topic, in order."""
        new, wanted = self._seen.add(alert.id), wants(self.route, alert)
        if self.offsets.settled_before(position):
            ended = self.offsets.own.get(alert.fingerprint) == (RESOLVED, alert.starts_at)
            if wanted and new and not (ended and alert.state == FIRING):
                self._recall_grouped(alert, now)
            return
        self.offsets.begin(position)
        self.offsets.replace(alert)
        if not wanted:
            self.offsets.settle(position)
        elif not new:
            self._settle(position, "duplicate")
        elif alert.state == "update":
            self._groups.refresh(alert)
            self._refresh(alert, now)
            self.offsets.settle(position)
        elif alert.state == FIRING:
            self._fire(alert, position, now)
        else:
            self._resolve(alert, position, now)

    def offer_own(self, alert: Alert, now: float) -> None:
        """Takes an alert without a record, in the state that it should be in now."""
        known = self._known(alert.fingerprint) or KnownState(RESOLVED, 0.0)
        if not wants(self.route, alert):
            return
        if alert.state == FIRING and known.state != FIRING:
            self._fire(alert, None, now)
        elif alert.state == FIRING:
            self._refresh(alert, now)
        elif known.state == FIRING:
            self._resolve(structs.replace(alert, starts_at=known.starts_at), None, now)

    def adopt(self, alert: Alert, now: float, *, is_old: bool) -> None:
        """Takes an alert that is open in a view although no record of it was read.

        `is_old`: its record may be older than what was read, so an earlier run posted it.
        """
        known = self._known(alert.fingerprint)
        newer = known is None or (known.state == RESOLVED and known.starts_at < alert.starts_at)
        if newer and wants(self.route, alert):
            if is_old and not self.offsets.fresh:
                self._recall_grouped(alert, now)
            else:
                self._fire(alert, None, now)

    def tick(self, newest: dict[str, float], stale: dict[str, float], now: float) -> int:
        """Advances to `now`. Returns how many alerts a maintenance window no longer holds back.

        By cluster, `newest` is the time of the newest pass, and `stale` is the time since which
        none came where that is too long.
        """
        self._stale, self._ready_at = stale, min(self._ready_at, now)
        if self._heartbeat is not None:
            self._heartbeat.ticked_at = now
        for entry in self._backlog.release(newest, now):
            self._release(entry, now)
        ready = [each for each in self.muted.values() if self._mute(each.alert, now) is None]
        for entry in ready:
            del self.muted[entry.alert.fingerprint]
            self._send(entry, now)
        return len(ready)

    def _recall_grouped(self, alert: Alert, now: float) -> None:
        """An earlier run posted this record, and its group with it."""
        if alert.state == FIRING:
            self._groups.fire(alert)
            self._groups.of(alert).note_posted([alert], alert.at)
        elif alert.state == RESOLVED:
            self._groups.end(alert.fingerprint)
        else:
            self._groups.refresh(alert)
        self._recall(alert, now)

    def _fire(self, alert: Alert, position: Position | None, now: float) -> None:
        known = self._known(alert.fingerprint)
        if known is not None and known.state == FIRING:
            self._settle(position, "duplicate")
            return
        self._groups.fire(alert)
        entry = Entry(alert, position, now)
        self._begin(entry)
        if position is None or not self._backlog.hold(entry, now):
            self._release(entry, now)

    def _release(self, entry: Entry, now: float) -> None:
        """A firing alert is to be posted, unless a maintenance window explains it."""
        if self._mute(entry.alert, now) is None:
            self._send(entry, now)
        else:
            self.muted[entry.alert.fingerprint] = entry

    def _resolve(self, alert: Alert, position: Position | None, now: float) -> None:
        known, ended = self._known(alert.fingerprint), Entry(alert, position, now)
        self._groups.end(alert.fingerprint)
        held = self._backlog.take(alert.fingerprint, now)
        if known is not None and known.state == RESOLVED:
            self._settle(position, "duplicate")
        elif held is not None and self._backlog.is_old(alert, now):
            self._skip(held, ended, "history")
        else:
            if held is not None:
                self._release(held, now)
            muted = self.muted.pop(alert.fingerprint, None)
            if muted is not None:
                self._skip(muted, ended, "muted")
            else:
                self._end(ended, now)

    def _skip(self, fired: Entry, ended: Entry, outcome: str) -> None:
        """An alert came and went, and neither is posted."""
        self._forget(ended.alert)
        self._settle(fired.position, outcome)
        self._settle(ended.position, outcome)

    def _settle(self, position: Position | None, outcome: str) -> None:
        self.offsets.settle(position)
        self.outcomes[outcome] += 1

    @abstractmethod
    def _known(self, fingerprint: str) -> KnownState | None:
        """The state and start that an alert was taken in with last."""

    @abstractmethod
    def _recall(self, alert: Alert, now: float) -> None:
        """An earlier run posted this record."""

    @abstractmethod
    def _refresh(self, alert: Alert, now: float) -> None:
        """New annotations and evidence of an open alert, for the posts to come."""

    @abstractmethod
    def _begin(self, entry: Entry) -> None:
        """An alert fires that was not known as firing."""

    @abstractmethod
    def _send(self, entry: Entry, now: float) -> None:
        """A firing alert is to be posted."""

    @abstractmethod
    def _end(self, entry: Entry, now: float) -> None:
        """An alert resolves that was not known as resolved."""

    @abstractmethod
    def _forget(self, ended: Alert) -> None:
        """An alert resolves that was not posted, and is not to be."""

    @abstractmethod
    def request(self, number: int, now: float) -> tuple[bytes, str | None] | None:
        """(body, message id) to post to address `number` now, if anything.

        The same transitions have the same message id. Answered by `delivered`, `refused` or
        `failed` before the next request to this address.
        """

    @abstractmethod
    def delivered(self, number: int, now: float) -> None:
        """The receiver has taken the request."""

    @abstractmethod
    def refused(self, number: int, now: float) -> list[Alert]:
        """Not taken, because of the content. Returns the alerts at fault, given up but for losses.

        While they are several, none is returned: smaller requests follow, down to one alert.
        """

    @abstractmethod
    def failed(self, number: int) -> None:
        """Not taken, but may be later."""

    @abstractmethod
    def waiting(self, number: int, now: float) -> tuple[int, float | None]:
        """How many alerts wait to be posted to an address, and since when the oldest of them."""

    def next_at(self) -> float | None:
        """When `request` next returns something because time has passed; None where not known."""
        return None
