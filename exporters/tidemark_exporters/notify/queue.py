"""Alerts that wait for one webhook: by group, paced, and bounded. Pure.

The first post of a group is due `gather_seconds` after the time of its first alert, but half a
second after its arrival at the earliest and `gather_seconds` after it at the latest. Updates of the
group are due a pause after the post before. The first loss of a group and its first
offline partition are due at once, with all that waits, and go first. `now` is Unix seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from tidemark.core.records import Alert
from tidemark_exporters.notify.groups import URGENT, Group, is_loss, is_urgent, urgency
from tidemark_exporters.notify.offsets import Position

MIN_GATHER_SECONDS: Final = 0.5
# The pause after the first post of a group, and after each further one, in times that alerts are
# gathered: 10 s and 30 s by default.
PAUSES: Final = (5, 15)
MAX_BATCH: Final = 500
# A loss that was refused is posted again this often, until it is taken.
REFUSED_SECONDS: Final = 60.0


@dataclass(slots=True, eq=False)
class Entry:
    """An alert, its record in the alerts topic (None: it has none), and when it arrived."""

    alert: Alert
    position: Position | None = None
    arrived: float = 0.0


@dataclass(slots=True, eq=False)
class AlertBatch:
    """Alerts of one post, by fingerprint. All are of one group."""

    group: Group
    due_at: float
    entries: dict[str, Entry] = field(default_factory=dict)
    # It goes before others that are due.
    urgent: bool = False
    # It was posted: the receiver may have it, so it takes no alert in.
    tried: bool = False
    # The group was posted before.
    is_update: bool = False
    # It has one state of a loss that was refused, alone: the loss holds no other alert back.
    refused: bool = False

    @property
    def size(self) -> int:
        """The number of its alerts that count towards the bound of the queue."""
        return sum(not is_loss(entry.alert) for entry in self.entries.values())


class Queue:
    """First in, first out, urgent batches before others. Holds `limit` alerts besides the losses.

    While a receiver is down, what is of one group becomes one post. Losses are bounded by what can
    be lost: one alert for each partition and incident.

    All waiting states of an alert are of one group, and the batches of a group are posted in order:
    none is due later, or less urgent, than the next one. Apart from them, and in order too, wait
    the states of a loss that was refused.
    """

    def __init__(self, limit: int, gather_seconds: float) -> None:
        self._limit = limit
        self._gather_seconds = gather_seconds
        self._batches: list[AlertBatch] = []
        self._size = 0
        # The batch that is being posted: nothing of it is dropped.
        self._in_flight: AlertBatch | None = None

    def push(self, entry: Entry, group: Group, now: float) -> list[Entry]:
        """Takes an alert in. Returns the alerts that are dropped for it, the oldest first."""
        alert, fingerprint = entry.alert, entry.alert.fingerprint
        apart = [each for each in self._batches if each.refused and fingerprint in each.entries]
        if apart:
            # The receiver may take the loss by now, so its end does not wait for the next turn.
            _hasten(apart, now)
            urgent = apart[-1].urgent
            alone = AlertBatch(group, now, {fingerprint: entry}, urgent, refused=True)
            self._batches.append(alone)
            return []
        batches = [each for each in self._batches if each.group is group and not each.refused]
        same = [each for each in batches if fingerprint in each.entries]
        last = batches[-1] if batches else None
        if last is None or last.tried or last in same or len(last.entries) == MAX_BATCH:
            due_at = self._due_at(alert, group, now)
            last = AlertBatch(group, due_at if last is None else max(due_at, last.due_at))
            batches.append(last)
            self._batches.append(last)
        last.entries[fingerprint] = entry
        if len(last.entries) == MAX_BATCH:
            _hasten(batches, now)
        if urgency(alert) < len(URGENT):
            for each in batches:
                each.urgent = True
            if urgency(alert) < group.urgency:
                _hasten(batches, now)
        if same and group.posts and not same[-1].tried:
            # Both are updates, which go together.
            _hasten(batches, same[-1].due_at)
        elif same:
            _hasten(batches[: batches.index(same[-1]) + 1], now)
        self._size += not is_loss(alert)
        dropped = []
        while self._size > self._limit and (oldest := self._drop_oldest()) is not None:
            dropped.append(oldest)
        return dropped

    def _due_at(self, alert: Alert, group: Group, now: float) -> float:
        """When the next batch of a group is due, if the alert is not urgent."""
        gathered = max(alert.at + self._gather_seconds, now + MIN_GATHER_SECONDS)
        due_at = min(now + self._gather_seconds, gathered)
        if not group.posts or group.began_at is None:
            # Only what follows a page waits: a group without one is open for long.
            return due_at
        pause = PAUSES[min(group.posts, len(PAUSES)) - 1] * self._gather_seconds
        return max(due_at, min(group.posted_at, now) + pause)

    def withdraw(self, cause: Group) -> list[Entry]:
        """Removes the alerts of other groups that belong to a cause, which begins.

        A group that was posted keeps its alerts. So does an alert of which two states wait.
        """
        batches = [each for each in self._batches if each.group.began_at is None and not each.tried]
        found = []
        for batch in batches:
            for fingerprint, entry in list(batch.entries.items()):
                if entry.alert.state != "firing" or not cause.is_related(entry.alert):
                    continue
                if sum(fingerprint in each.entries for each in self._batches) == 1:
                    found.append(batch.entries.pop(fingerprint))
        self._size -= sum(not is_loss(entry.alert) for entry in found)
        self._batches = [each for each in self._batches if each.entries]
        return found

    def group_of(self, fingerprint: str) -> Group | None:
        """The group in which an alert waits."""
        found = (batch.group for batch in self._batches if fingerprint in batch.entries)
        return next(found, None)

    def _drop_oldest(self) -> Entry | None:
        """The oldest alert that is neither urgent nor being posted, else the oldest but a loss."""
        for is_kept in (is_urgent, is_loss):
            for batch in self._batches:
                found = (mark for mark, e in batch.entries.items() if not is_kept(e.alert))
                fingerprint = None if batch is self._in_flight else next(found, None)
                if fingerprint is not None:
                    entry = batch.entries.pop(fingerprint)
                    self._size -= 1
                    self._batches = [each for each in self._batches if each.entries]
                    return entry
        return None

    def _next(self, now: float) -> AlertBatch | None:
        due = [batch for batch in self._batches if batch.due_at <= now]
        return min(due, key=lambda batch: not batch.urgent, default=None)

    def beginning(self, now: float) -> Group | None:
        """The cause that the next batch to post begins, if it does."""
        batch = self._next(now)
        begins = batch is not None and batch.group.began_at is not None and not batch.group.posts
        return batch.group if batch is not None and begins else None

    def take(self, now: float) -> AlertBatch | None:
        """The batch to post now, if any; answered by `delivered`, `refused` or `failed`."""
        batch = self._in_flight = self._next(now)
        if batch is not None and not batch.tried:
            batch.tried, batch.is_update = True, batch.group.posts > 0
            batch.group.note_posted((entry.alert for entry in batch.entries.values()), now)
        return batch

    def failed(self) -> None:
        """The batch comes first again."""
        self._in_flight = None

    def delivered(self) -> list[Entry]:
        """The alerts that the receiver has taken."""
        return self._replace()

    def refused(self, now: float) -> list[Entry]:
        """The refused alert, which is given up; a loss stays, to be posted again.

        Of several alerts none is returned: the halves of the batch take its place.
        """
        assert self._in_flight is not None
        entries = list(self._in_flight.entries.items())
        middle = len(entries) // 2
        if middle:
            self._replace(entries[:middle], entries[middle:])
            return []
        ((fingerprint, entry),) = entries
        if not is_loss(entry.alert):
            return self._replace()
        waits = self._replace(entries)
        self._set_apart(fingerprint, now + REFUSED_SECONDS)
        return waits

    def _set_apart(self, fingerprint: str, due_at: float) -> None:
        """All waiting states of a refused loss are due together, each in a batch of its own."""
        batches = []
        for each in self._batches:
            entry = each.entries.pop(fingerprint, None)
            if each.entries:
                batches.append(each)
            if entry is not None:
                alone = {fingerprint: entry}
                batches.append(replace(each, due_at=due_at, entries=alone, refused=True))
        self._batches = batches

    def _replace(self, *parts: list[tuple[str, Entry]]) -> list[Entry]:
        """Puts parts of the posted batch in its place. Returns its alerts."""
        batch, self._in_flight = self._in_flight, None
        assert batch is not None
        rest = [replace(batch, entries=dict(part)) for part in parts]
        place = self._batches.index(batch)
        self._batches[place : place + 1] = rest
        self._size += sum(each.size for each in rest) - batch.size
        return list(batch.entries.values())

    def next_at(self) -> float | None:
        """When `take` next returns a batch, None while nothing waits."""
        return min((batch.due_at for batch in self._batches), default=None)

    def find(self, fingerprint: str) -> Entry | None:
        """The newest state of an alert that waits."""
        found = (batch.entries.get(fingerprint) for batch in reversed(self._batches))
        return next((entry for entry in found if entry is not None), None)

    def waiting(self, now: float) -> tuple[int, float | None]:
        """How many alerts wait, and when the oldest arrived of those that are due or were tried."""
        late = [batch for batch in self._batches if batch.tried or batch.due_at <= now]
        arrived = [entry.arrived for batch in late for entry in batch.entries.values()]
        return sum(len(batch.entries) for batch in self._batches), min(arrived, default=None)


def _hasten(batches: list[AlertBatch], due_at: float) -> None:
    """None of these is due later."""
    for batch in batches:
        batch.due_at = min(batch.due_at, due_at)
