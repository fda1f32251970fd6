"""A set of Alertmanagers as a receiver: all open alerts, and the ends of the last 15 minutes. Pure.

Alertmanager forgets at a restart, and ends an alert that is not posted again. So states are posted
and not transitions: what is new at once, and all that is open every 30 s. Every instance of a set
gets the same. An alert is delivered once one of them took it: they share what they notified of.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from tidemark.core.records import Alert
from tidemark.settings import Alertmanager, Notify
from tidemark_exporters.notify.derived_alerts import Heartbeat
from tidemark_exporters.notify.groups import is_loss, urgency
from tidemark_exporters.notify.offsets import KnownState, Offsets, Position
from tidemark_exporters.notify.payload import alertmanager_alert
from tidemark_exporters.notify.queue import MAX_BATCH, Entry
from tidemark_exporters.notify.receiver_state import (
    FIRING,
    RESOLVED,
    Mute,
    ReceiverState,
    refreshed,
)

RESEND_SECONDS: Final = 30.0
# A firing alert that is not posted again ends at Alertmanager after four turns, as Prometheus' do.
ENDS_AFTER_SECONDS: Final = 4 * RESEND_SECONDS
# How long the end of an alert is repeated, as Prometheus does.
RESOLVED_SECONDS: Final = 900.0
# An alert that an instance refused is posted to it again this often.
REFUSED_SECONDS: Final = 300.0
MAX_ALERTS: Final = 50_000


@dataclass(slots=True, eq=False)
class CurrentAlert:
    """One alert as it is now, firing or resolved."""

    alert: Alert
    arrived: float
    # When it began to fire: some passes after its condition began.
    fired_at: float
    # Whether an instance knows that it fires. What resolved before is posted as firing first.
    posted: bool = False
    resolved_at: float = 0.0
    # The end of an alert that was posted only after it had resolved is not posted before this.
    end_after: float = 0.0
    # The records, by state, that no instance has taken.
    positions: dict[str, Position] = field(default_factory=dict)

    @property
    def state(self) -> KnownState:
        return KnownState(RESOLVED if self.is_resolved else FIRING, self.alert.starts_at)

    @property
    def is_resolved(self) -> bool:
        return self.alert.state == RESOLVED


class Item(NamedTuple):
    """An alert to post, as firing or resolved."""

    current: CurrentAlert
    posted_as: str

    @property
    def fingerprint(self) -> str:
        return self.current.alert.fingerprint

    @property
    def state(self) -> KnownState:
        return KnownState(self.posted_as, self.current.alert.starts_at)


@dataclass(slots=True)
class Instance:
    """One instance of the set: alerts that it has taken, and batches to post to it."""

    posted: dict[str, KnownState] = field(default_factory=dict)
    # Alerts that it refused, and until when each is left out.
    refused: dict[str, float] = field(default_factory=dict)
    batches: list[list[Item]] = field(default_factory=list)
    # When everything is posted to it again.
    next_full: float = 0.0


class AlertmanagerState(ReceiverState):
    """The alerts of one set. Bounded to MAX_ALERTS: resolved ones go first, losses never."""

    def __init__(
        self,
        route: Alertmanager,
        notify: Notify,
        offsets: Offsets,
        mute: Mute,
        now: float,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        super().__init__(route, notify, offsets, mute, now, heartbeat)
        self._alerts: OrderedDict[str, CurrentAlert] = OrderedDict()
        self._instances = [Instance() for _ in route.urls]

    def tick(self, newest: dict[str, float], stale: dict[str, float], now: float) -> int:
        for fingerprint, current in list(self._alerts.items()):
            repeated = current.is_resolved and now - current.resolved_at >= RESOLVED_SECONDS
            if repeated and (current.posted or not is_loss(current.alert)):
                # An end that no instance took: Alertmanager has found it from endsAt.
                self._settle_all(current, "history")
                del self._alerts[fingerprint]
        return super().tick(newest, stale, now)

    def _known(self, fingerprint: str) -> KnownState | None:
        current = self._alerts.get(fingerprint)
        return None if current is None else current.state

    def _recall(self, alert: Alert, now: float) -> None:
        known = self._alerts.get(alert.fingerprint)
        if alert.state == "update":
            self._refresh(alert, now)
        elif known is not None and known.positions:
            # It repeated a record that is not delivered yet.
            return
        elif alert.state == FIRING:
            self._put(CurrentAlert(alert, now, alert.at, posted=True))
        elif now - alert.at < RESOLVED_SECONDS:
            fired_at = alert.starts_at
            if known is not None and known.alert.starts_at == alert.starts_at:
                fired_at = known.fired_at
            self._put(CurrentAlert(alert, now, fired_at, posted=True, resolved_at=alert.at))
        else:
            self._alerts.pop(alert.fingerprint, None)

    def _refresh(self, alert: Alert, _now: float) -> None:
        current = self._alerts.get(alert.fingerprint)
        if current is not None and not current.is_resolved:
            current.alert = refreshed(current.alert, alert)

    def _begin(self, entry: Entry) -> None:
        alert, known = entry.alert, self._alerts.get(entry.alert.fingerprint)
        if known is not None:
            self._settle_all(known, "history")
        current = CurrentAlert(alert, entry.arrived, alert.at)
        if entry.position is not None:
            current.positions[FIRING] = entry.position
        self._put(current)

    def _send(self, entry: Entry, now: float) -> None:
        """Nothing to do: `_items` finds what is due."""

    def _end(self, entry: Entry, now: float) -> None:
        alert, current = entry.alert, self._alerts.get(entry.alert.fingerprint)
        if entry.position is None:
            # No record may ever announce this end.
            self.offsets.remember(alert)
        if current is None:
            # Its firing was read by an earlier run, if any. Alertmanager ignores the end of an
            # alert that it does not know.
            self._put(CurrentAlert(alert, now, alert.starts_at, posted=True, resolved_at=now))
            self._settle(entry.position, "history")
            return
        current.alert, current.resolved_at, current.arrived = alert, now, now
        if entry.position is not None:
            current.positions[RESOLVED] = entry.position

    def _forget(self, ended: Alert) -> None:
        self._alerts.pop(ended.fingerprint, None)

    def _put(self, current: CurrentAlert) -> None:
        self._alerts.pop(current.alert.fingerprint, None)
        self._alerts[current.alert.fingerprint] = current
        if len(self._alerts) <= MAX_ALERTS:
            return
        # Drops 1 % at a time, because each search reads all: resolved ones first, then the oldest.
        fingerprints = [
            fingerprint for fingerprint, each in self._alerts.items() if not is_loss(each.alert)
        ]
        fingerprints.sort(key=lambda fingerprint: not self._alerts[fingerprint].is_resolved)
        for fingerprint in fingerprints[: max(1, MAX_ALERTS // 100)]:
            dropped = self._alerts.pop(fingerprint)
            self.muted.pop(fingerprint, None)
            # An open alert that was posted ends at Alertmanager: it is not posted again.
            self.outcomes["dropped"] += dropped.posted and not dropped.is_resolved
            self._settle_all(dropped, "dropped")

    def _settle_all(self, current: CurrentAlert, outcome: str, until: str = RESOLVED) -> None:
        """Settles the alert's records up to this state."""
        for state in {FIRING, until} & current.positions.keys():
            self._settle(current.positions.pop(state), outcome)

    def _items(self, now: float) -> Iterator[Item]:
        """All that an instance should know now."""
        if self._heartbeat is not None and self._heartbeat.beats(now):
            beat = self._heartbeat.alert(now)
            yield Item(CurrentAlert(beat, now, beat.starts_at), FIRING)
        for current in self._alerts.values():
            if current.is_resolved and current.posted and now >= current.end_after:
                yield Item(current, RESOLVED)
            elif current.posted or not self._is_held(current.alert, now):
                yield Item(current, FIRING)

    def _is_held(self, alert: Alert, now: float) -> bool:
        """Until the topics were read to their ends only losses are posted."""
        held = alert.fingerprint in self.muted or self._backlog.find(alert.fingerprint) is not None
        return held or (now < self._ready_at and not is_loss(alert))

    def request(self, number: int, now: float) -> tuple[bytes, str | None] | None:
        instance = self._instances[number]
        instance.batches = instance.batches or self._plan(instance, now)
        if not instance.batches:
            return None
        return msgspec.json.encode([self._body(item, now) for item in instance.batches[0]]), None

    def _plan(self, instance: Instance, now: float) -> list[list[Item]]:
        """Batches of the items that are due to an instance now, urgent alerts first."""
        items = {item.fingerprint: item for item in self._items(now)}
        if now >= instance.next_full:
            instance.next_full = now + RESEND_SECONDS
            instance.refused = {m: until for m, until in instance.refused.items() if m in items}
            instance.posted = {m: state for m, state in instance.posted.items() if m in items}
            due = list(items.values())
        else:
            due = [item for m, item in items.items() if instance.posted.get(m) != item.state]
        due = [item for item in due if instance.refused.get(item.fingerprint, 0.0) <= now]
        due.sort(key=lambda item: urgency(item.current.alert))
        return [due[start : start + MAX_BATCH] for start in range(0, len(due), MAX_BATCH)]

    def _body(self, item: Item, now: float) -> dict[str, object]:
        current, stale_since = item.current, None
        if item.posted_as == FIRING:
            stale_since = self._stale.get(current.alert.labels.get("kafka_cluster", ""))
        return alertmanager_alert(
            current.alert,
            item.posted_as,
            current.fired_at,
            now,
            ENDS_AFTER_SECONDS,
            self._notify,
            stale_since,
            self._groups.cause_of(item.fingerprint),
        )

    def delivered(self, number: int, now: float) -> None:
        instance = self._instances[number]
        for item in instance.batches.pop(0):
            instance.refused.pop(item.fingerprint, None)
            instance.posted[item.fingerprint] = item.state
            current = item.current
            if item.posted_as == FIRING and not current.posted:
                current.posted = True
                current.end_after = now + RESEND_SECONDS if current.is_resolved else 0.0
            self._settle_all(current, "delivered", item.posted_as)

    def refused(self, number: int, now: float) -> list[Alert]:
        instance = self._instances[number]
        batch = instance.batches.pop(0)
        middle = len(batch) // 2
        if middle:
            instance.batches[:0] = [batch[:middle], batch[middle:]]
            return []
        for item in batch:
            instance.refused[item.fingerprint] = now + REFUSED_SECONDS
            if not is_loss(item.current.alert):
                self._settle_all(item.current, "rejected", item.posted_as)
        return [item.current.alert for item in batch]

    def failed(self, number: int) -> None:
        """The instance may have forgotten everything when it answers again."""
        self._instances[number].batches = []
        self._instances[number].next_full = 0.0

    def waiting(self, number: int, now: float) -> tuple[int, float | None]:
        posted = self._instances[number].posted
        since = [
            item.current.arrived
            for item in self._items(now)
            if posted.get(item.fingerprint) != item.state and item.fingerprint in self._alerts
        ]
        return len(since), min(since, default=None)
