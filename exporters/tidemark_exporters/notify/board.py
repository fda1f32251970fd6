"""What one set of Alertmanagers should know now: every open alert, and the ends of the last 15 minutes. No I/O.

Alertmanager forgets at a restart, and takes an alert for over that is not posted again. So it is told states and not
transitions: all that is open every 30 s, what is new at once. The instances of a set hear the same, each in its time; what
one of them took counts as delivered, for they share what they notified of.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec import structs

from tidemark.core.records import Alert
from tidemark.settings import Route
from tidemark_exporters.notify.catch_up import CatchUp
from tidemark_exporters.notify.gather import LOSS, URGENT, Entry
from tidemark_exporters.notify.heartbeat import Heartbeat
from tidemark_exporters.notify.ledger import FIRING, RESOLVED, Ledger
from tidemark_exporters.notify.maintenance import Mute, never
from tidemark_exporters.notify.positions import Mark, Position, Positions, read_metadata
from tidemark_exporters.notify.routing import wants

RESEND_SECONDS: Final = 30.0
# How long the end of an alert is repeated, as Prometheus does.
RESOLVED_SECONDS: Final = 900.0
# An alert that an instance refused is tried again this often.
REFUSED_SECONDS: Final = 300.0
# Until the topics were read to their ends only losses are told; but not for ever.
READY_SECONDS: Final = 60.0
MAX_ROWS: Final = 50_000


@dataclass(slots=True)
class Row:
    """One alert as it is now, firing or ended."""

    alert: Alert
    arrived: float
    # When it began to fire: a pass or more after its condition began.
    fired_at: float
    # Records that no instance was told of, with their state.
    positions: list[tuple[str, Position]] = field(default_factory=list)
    # Whether some instance knows that it fires; what ended before that is told as firing first, so that it is notified.
    told: bool = False
    ended: float = 0.0
    # Fired and ended unheard: its end is not told before this.
    end_after: float = 0.0

    @property
    def is_loss(self) -> bool:
        return self.alert.labels.get("alertname") == LOSS

    @property
    def is_over(self) -> bool:
        return self.alert.state == RESOLVED


class Item(NamedTuple):
    """One alert to post, as `state`; `positions` are the records that are settled by it."""

    alert: Alert
    state: str
    fired_at: float
    positions: tuple[tuple[str, Position], ...] = ()
    stale_since: float | None = None

    @property
    def key(self) -> tuple[str, float]:
        return self.state, self.alert.starts_at


@dataclass(slots=True)
class Instance:
    """What one instance was told: (state, start) by fingerprint. `next_full` is when it is told everything again."""

    told: dict[str, tuple[str, float]] = field(default_factory=dict)
    # Alerts that it refused, and until when they are left out.
    refused: dict[str, float] = field(default_factory=dict)
    next_full: float = 0.0

    def failed(self) -> None:
        """It may have forgotten everything when it answers again."""
        self.next_full = 0.0


class Board:
    """The rows of one set of Alertmanagers. Not locked; `now` is Unix seconds. Bounded to MAX_ROWS: losses go last.

    `outcomes` counts alerts: delivered, rejected, dropped (the board was full), history, muted, duplicate.
    """

    def __init__(
        self,
        route: Route,
        marks: dict[int, Mark],
        partitions: Iterable[int],
        started_at: float,
        limit: int,
        mute: Mute = never,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        self._route = route
        self._positions = Positions(marks, partitions)
        own = read_metadata(marks[min(marks)].metadata).own if marks else {}
        self._ledger = Ledger(own)
        self._rows: OrderedDict[str, Row] = OrderedDict()
        self._catch_up = CatchUp(limit)
        self._mute = mute
        self._heartbeat = heartbeat
        self._stale: dict[str, float] = {}
        self._ready_at = started_at + READY_SECONDS
        self.outcomes: Counter[str] = Counter()

    def offer(self, alert: Alert, position: Position, now: float) -> None:
        """Takes one record of the alerts topic, in order."""
        new = self._ledger.first_sight(alert.id)
        wanted = wants(self._route, alert)
        if self._positions.settled_before(*position):
            if wanted:
                self._recall(alert, now)
            return
        self._positions.begin(*position)
        if not wanted or alert.state == "update":
            self._refresh(alert)
            self._positions.settle(position)
        elif not new:
            self._settle(position, "duplicate")
        elif alert.state == FIRING:
            self._fire(alert, position, now)
        else:
            self._resolve(alert, position, now)

    def offer_own(self, alert: Alert, now: float) -> None:
        """Takes an alert of the exporter itself, in the state that it should be in."""
        row = self._rows.get(alert.fingerprint)
        open_now = row is not None and not row.is_over
        if not wants(self._route, alert):
            return
        if alert.state == FIRING and not open_now:
            self._fire(alert, None, now)
        elif alert.state == FIRING:
            self._refresh(alert)
        elif row is not None and open_now:
            # The record of its end may never come: that it is over is remembered beside the offsets.
            ended = structs.replace(alert, starts_at=row.alert.starts_at)
            self._ledger.note(ended, own=True)
            self._resolve(ended, None, now)

    def adopt(self, alert: Alert, horizon: float, now: float) -> None:
        """Takes an alert that is open in a view although no record of it was read; see Outbox.adopt."""
        row = self._rows.get(alert.fingerprint)
        if not wants(self._route, alert) or (
            row is not None and (not row.is_over or row.alert.starts_at >= alert.starts_at)
        ):
            return
        known = alert.starts_at < horizon and not self._positions.fresh
        self._put(Row(alert, now, alert.at, told=known))

    def _recall(self, alert: Alert, now: float) -> None:
        """An earlier run told of this record."""
        mark = alert.fingerprint
        if alert.state == "update":
            self._refresh(alert)
        elif alert.state == FIRING:
            if self._ledger.own.get(mark) != (RESOLVED, alert.starts_at):
                self._put(Row(alert, now, alert.at, told=True))
        elif now - alert.at < RESOLVED_SECONDS:
            self._put(Row(alert, now, self._fired_at(alert), told=True, ended=alert.at))
        else:
            self._rows.pop(mark, None)

    def _fire(self, alert: Alert, position: Position | None, now: float) -> None:
        row = self._rows.get(alert.fingerprint)
        if row is not None and not row.is_over:
            self._settle(position, "duplicate")
            return
        if row is not None:
            self._settle_all(row, "history")
        entry = Entry(alert, position, now)
        self._put(Row(alert, now, alert.at, [(FIRING, position)] if position is not None else []))
        if position is not None and self._catch_up.old(entry, now):
            # What has to be let go for it is held by nothing any more, and so is told.
            self._catch_up.hold(entry, now)

    def _resolve(self, alert: Alert, position: Position | None, now: float) -> None:
        row = self._rows.get(alert.fingerprint)
        held = self._catch_up.take(alert.fingerprint, now)
        if row is None:
            # Its firing was read by an earlier run, if by any: what an Alertmanager does not know it takes no notice of.
            self._put(Row(alert, now, alert.starts_at, told=True, ended=now))
            self._settle(position, "history")
        elif row.is_over:
            self._settle(position, "duplicate")
        elif not row.told and held is not None and self._catch_up.old(Entry(alert, position), now):
            self._forget(row, position, "history")
        elif not row.told and self._mute(row.alert, now):
            self._forget(row, position, "muted")
        else:
            row.alert, row.ended, row.arrived = alert, now, now
            if position is not None:
                row.positions.append((RESOLVED, position))

    def _fired_at(self, ended: Alert) -> float:
        """When an alert that is over began to fire; its start where nobody knows any more."""
        row = self._rows.get(ended.fingerprint)
        return (
            row.fired_at
            if row is not None and row.alert.starts_at == ended.starts_at
            else ended.starts_at
        )

    def _forget(self, row: Row, position: Position | None, outcome: str) -> None:
        """It came and went, and nobody is to hear of it."""
        self._settle_all(row, outcome)
        self._settle(position, outcome)
        del self._rows[row.alert.fingerprint]

    def _refresh(self, alert: Alert) -> None:
        row = self._rows.get(alert.fingerprint)
        if row is not None and not row.is_over:
            row.alert = structs.replace(
                row.alert, annotations=alert.annotations, evidence=alert.evidence
            )

    def _put(self, row: Row) -> None:
        self._rows.pop(row.alert.fingerprint, None)
        self._rows[row.alert.fingerprint] = row
        if len(self._rows) > MAX_ROWS:
            self._shrink()

    def _shrink(self) -> None:
        """Lets go of a hundredth at once, for to find them takes a look at all: what has ended first, then the oldest."""
        marks = sorted(
            (mark for mark, row in self._rows.items() if not row.is_loss),
            key=lambda mark: not self._rows[mark].is_over,
        )
        for mark in marks[: max(1, MAX_ROWS // 100)]:
            row = self._rows.pop(mark)
            if row.told and not row.is_over:
                # Alertmanager will take it for over.
                self.outcomes["dropped"] += 1
            self._settle_all(row, "dropped")

    def tick(self, newest: dict[str, float], stale: dict[str, float], now: float) -> None:
        """Time goes on. `newest`: the newest pass by cluster; `stale`: since when none came, by cluster, where that is too long."""
        self._ready_at = min(self._ready_at, now)
        self._stale = stale
        self._catch_up.release(newest, now)
        for mark, row in list(self._rows.items()):
            if (
                row.is_over
                and now - row.ended >= RESOLVED_SECONDS
                and (row.told or not row.is_loss)
            ):
                # An end that nobody could be told: Alertmanager has found it by itself, from endsAt.
                self._settle_all(row, "history")
                del self._rows[mark]
        if self._heartbeat is not None:
            self._heartbeat.alive(now)

    def due(self, instance: Instance, now: float) -> list[Item]:
        """What to post to the instance now, what is urgent first; answered by `delivered`, or by the instance's `failed`."""
        full = now >= instance.next_full
        items = [
            item
            for item in self._items(now)
            if full or instance.told.get(item.alert.fingerprint) != item.key
        ]
        allowed = [
            item for item in items if instance.refused.get(item.alert.fingerprint, 0.0) <= now
        ]
        return sorted(allowed, key=lambda item: item.alert.labels.get("alertname") not in URGENT)

    def _items(self, now: float) -> Iterable[Item]:
        if self._heartbeat is not None and self._heartbeat.beats(now):
            beat = self._heartbeat.alert(now)
            yield Item(beat, FIRING, beat.starts_at)
        for row in self._rows.values():
            if row.is_over and row.told and now >= row.end_after:
                yield Item(row.alert, RESOLVED, row.fired_at, tuple(row.positions))
            elif row.told or not self._held(row, now):
                fired = tuple(each for each in row.positions if each[0] == FIRING)
                yield Item(
                    row.alert,
                    FIRING,
                    row.fired_at,
                    fired,
                    self._stale.get(row.alert.labels.get("kafka_cluster", "")),
                )

    def _held(self, row: Row, now: float) -> bool:
        """Whether nobody is to hear of it yet."""
        if row.is_loss:
            return False
        if now < self._ready_at or self._catch_up.find(row.alert.fingerprint) is not None:
            return True
        return not row.is_over and self._mute(row.alert, now)

    def delivered(
        self, instance: Instance, items: Iterable[Item], refused: dict[str, str], now: float
    ) -> None:
        """The instance took all `items` but those `refused` (reason by fingerprint)."""
        for item in items:
            mark = item.alert.fingerprint
            row = self._rows.get(mark)
            if mark in refused:
                instance.refused[mark] = now + REFUSED_SECONDS
                if row is not None and not row.is_loss:
                    self._settle_items(row, item, "rejected")
                continue
            instance.refused.pop(mark, None)
            instance.told[mark] = item.key
            if row is None:
                continue
            if (
                item.state == FIRING
                and not row.told
                and row.alert.starts_at == item.alert.starts_at
            ):
                row.told = True
                row.end_after = now + RESEND_SECONDS if row.is_over else 0.0
            self._settle_items(row, item, "delivered")

    def complete(self, instance: Instance, now: float) -> None:
        """The instance was told everything that was due."""
        if now >= instance.next_full:
            instance.next_full = now + RESEND_SECONDS
        known = self._rows.keys() | (
            {self._heartbeat.alert(now).fingerprint} if self._heartbeat is not None else set()
        )
        for memory in (instance.told, instance.refused):
            for mark in memory.keys() - known:
                del memory[mark]

    def _settle_items(self, row: Row, item: Item, outcome: str) -> None:
        for each in item.positions:
            if each in row.positions:
                row.positions.remove(each)
                self._settle(each[1], outcome)

    def _settle_all(self, row: Row, outcome: str) -> None:
        for _, position in row.positions:
            self._settle(position, outcome)
        row.positions.clear()

    def _settle(self, position: Position | None, outcome: str) -> None:
        self._positions.settle(position)
        self.outcomes[outcome] += 1

    def muted(self, now: float) -> int:
        """How many alerts a maintenance window holds back."""
        return sum(
            not row.told and not row.is_over and self._mute(row.alert, now)
            for row in self._rows.values()
        )

    def waiting(self, instance: Instance, now: float) -> tuple[int, float | None]:
        """How many alerts the instance should know differently, and since when the oldest of them waits."""
        since = [
            self._rows[item.alert.fingerprint].arrived
            for item in self._items(now)
            if instance.told.get(item.alert.fingerprint) != item.key
            and item.alert.fingerprint in self._rows
        ]
        return len(since), min(since, default=None)

    def marks(self) -> dict[int, Mark]:
        """What to commit: nothing beyond it is news to the next run."""
        return self._positions.marks(dict(self._ledger.own))

    def __len__(self) -> int:
        return len(self._rows)
