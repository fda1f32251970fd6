"""A still picture of the table, sorted and counted, shared by all requests of about a second.

The table belongs to the thread that reads views; here its maps are copied, each in one step under the interpreter's
lock. Views that come between two of these steps may stand in one and not yet in the other.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from tidemark.assess.safe_to_stop import Effect, StopImpact, stop_impacts
from tidemark.core.records import Alert, OpenAlert, View
from tidemark_exporters.export.table import Row, Table
from tidemark_exporters.export.tally import BrokerTally, Tally
from tidemark_exporters.pages.states import (
    HEALTHY,
    LEVELS,
    RANK,
    State,
    cluster_states,
    severity_level,
    states_of,
    worst,
)

# A picture is used for so long, and taking pictures costs at most a tenth of one core.
FRESH_SECONDS: Final = 1.0
SHARE: Final = 10.0

Key = tuple[str, str, int]


class Entry(NamedTuple):
    """A partition: its row of the table, what it is said to be, worst first, and its open alerts."""

    key: Key
    row: Row
    states: list[State]
    alerts: list[OpenAlert]

    @property
    def view(self) -> View:
        """Decoded when it is asked for: only what is shown is."""
        return self.row.view

    @property
    def state(self) -> State:
        return self.states[0]


class Sums:
    """What partitions add up to by cluster, topic and broker: the table's own tallies, as they stand now."""

    def __init__(self, table: Table) -> None:
        self.clusters = {
            name: _still(tally) for name, tally in table.cluster_tallies.copy().items()
        }
        self.topics = {pair: _still(tally) for pair, tally in table.topic_tallies.copy().items()}
        self.brokers = {pair: _still(tally) for pair, tally in table.broker_tallies.copy().items()}
        for tally in self.brokers.values():
            tally.effects = tally.effects.copy()

    def cluster(self, name: str) -> Tally:
        return self.clusters.get(name) or Tally()

    def topic(self, cluster: str, name: str) -> Tally:
        return self.topics.get((cluster, name)) or Tally()

    def broker(self, cluster: str, number: int) -> BrokerTally:
        return self.brokers.get((cluster, number)) or BrokerTally()


AnyTally = TypeVar("AnyTally", Tally, BrokerTally)


def _still(tally: AnyTally) -> AnyTally:
    made = copy.copy(tally)
    made.moving = made.moving.copy()
    return made


class Board:
    """Everything known at `now` (Unix seconds)."""

    def __init__(
        self, table: Table, now: float, stale_seconds: float, *, caught_up: bool = True
    ) -> None:
        """`caught_up`: whether the views topic was read to its end, so that none is missing."""
        rows, views = (
            table.partitions.copy(),
            [*table.clusters.copy().values(), *table.brokers.copy().values()],
        )
        self.now = now
        self.caught_up = caught_up
        self._stale_seconds = stale_seconds
        self.newest = table.newest.copy()
        self.views = {view.kafka_cluster: view for view in views if view.broker is None}
        self.broker_views = {
            (view.kafka_cluster, view.broker): view for view in views if view.broker is not None
        }
        alerts = table.alerts_by_key()
        self.entries = sorted(
            (_entry(key, row, alerts.get(key, [])) for key, row in rows.items()), key=_by_name
        )
        self.sums = Sums(table)
        self.by_topic: dict[tuple[str, str], list[Entry]] = {}
        for entry in self.entries:
            self.by_topic.setdefault(entry.key[:2], []).append(entry)
        self.clusters = sorted({*self.newest, *self.views})
        self.alerts = _open_alerts(self.entries, views, self.newest)

    def is_stale(self, cluster: str) -> bool:
        """Whether the newest judged pass of a cluster is too old to speak of now; not said before the views were read."""
        return self.caught_up and self.now - self.newest.get(cluster, 0.0) > self._stale_seconds

    def can_judge(self, cluster: str) -> bool:
        """Whether what is known of a cluster is something, whole and new enough to call a stop safe."""
        return self.caught_up and not self.is_stale(cluster) and self.sums.cluster(cluster).used

    @property
    def stale_clusters(self) -> list[str]:
        return [cluster for cluster in self.clusters if self.is_stale(cluster)]

    def entry(self, cluster: str, topic: str, partition: int) -> Entry | None:
        found = (
            entry for entry in self.by_topic.get((cluster, topic), []) if entry.key[2] == partition
        )
        return next(found, None)

    def states_of_cluster(self, cluster: str) -> list[State]:
        found = {
            entry.state
            for entry in self.entries
            if entry.state is not HEALTHY and entry.key[0] == cluster
        }
        about = [*self.views.values(), *self.broker_views.values()]
        alerts = [alert for view in about if view.kafka_cluster == cluster for alert in view.alerts]
        return cluster_states(
            alerts, found, stale=self.is_stale(cluster), empty=not self.sums.cluster(cluster).used
        )

    def state_of_topic(self, cluster: str, topic: str) -> State:
        return worst(entry.state for entry in self.by_topic[cluster, topic])

    def brokers_of(self, cluster: str) -> list[int]:
        """Brokers that a pass asked, a replica lives on or a partition is led by."""
        view = self.views.get(cluster)
        asked = {
            int(broker)
            for broker in (view.broker_outcomes if view is not None else {})
            if broker.isdecimal() and broker.isascii()
        }
        placed = {
            broker
            for name, broker in self.sums.brokers
            if name == cluster and isinstance(broker, int)
        }
        return sorted(
            asked | placed | {broker for name, broker in self.broker_views if name == cluster}
        )

    def outcome_of(self, cluster: str, broker: int) -> str | None:
        """How a broker answered the last pass; null: nobody told."""
        own, whole = self.broker_views.get((cluster, broker)), self.views.get(cluster)
        if own is not None and own.outcome is not None:
            return own.outcome
        return whole.broker_outcomes.get(str(broker)) if whole is not None else None

    def stop_counts(self, cluster: str, broker: int) -> dict[Effect, int]:
        """What stopping a broker alone would do: partitions by effect."""
        counts = self.sums.broker(cluster, broker).effects.copy()
        counts["unknown"] += self.sums.cluster(cluster).unplaced
        return counts

    def stop_impacts(self, cluster: str, broker: int) -> list[StopImpact]:
        """The partitions that stopping one broker would hurt, worst first."""
        touched = (
            entry for entry in self.entries if entry.key[0] == cluster and _minds(entry.row, broker)
        )
        return stop_impacts((entry.view for entry in touched), broker)

    def alert_counts(self, cluster: str | None = None) -> dict[str, int]:
        """Open alerts by severity, of one cluster or of all."""
        chosen = [
            a for a in self.alerts if cluster is None or a.labels.get("kafka_cluster") == cluster
        ]
        counts = Counter(severity_level(alert.labels.get("severity", "")) for alert in chosen)
        return {level: counts[level] for level in ("critical", "warning", "info")}


class Boards:
    """Hands out the newest picture, and takes another when it is old. Called by many threads."""

    def __init__(
        self,
        table: Table,
        stale_seconds: float,
        caught_up: Callable[[], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._table = table
        self._caught_up = caught_up
        self._stale_seconds = stale_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._board: Board | None = None
        self._until = 0.0

    def current(self) -> Board:
        with self._lock:
            if self._board is None or time.monotonic() >= self._until:
                began = time.monotonic()
                self._board = Board(
                    self._table, self._clock(), self._stale_seconds, caught_up=self._caught_up()
                )
                ended = time.monotonic()
                self._until = ended + max(FRESH_SECONDS, SHARE * (ended - began))
            return self._board


def rank(entry: Entry) -> tuple[int, float, Key]:
    """Sorts worst first; among equals the largest known lag first, then by name."""
    return RANK[entry.state.name], -(entry.row.lag_ms or 0.0), entry.key


def _by_name(entry: Entry) -> Key:
    return entry.key


def _entry(key: str, row: Row, alerts: list[OpenAlert]) -> Entry:
    """The partition's number is read off the key; a foreign key's view is asked."""
    number = key.rpartition("/")[2]
    partition = (
        int(number)
        if number.isdecimal() and number.isascii() and len(number) < 11
        else row.view.partition or 0
    )
    return Entry((row.cluster, row.topic, partition), row, states_of(row, alerts), alerts)


def _minds(row: Row, broker: int) -> bool:
    return row.shape.unplaced or any(
        host.broker == broker and host.effect is not None for host in row.shape.hosts
    )


def _open_alerts(entries: list[Entry], views: list[View], newest: dict[str, float]) -> list[Alert]:
    """As records of the alerts topic, worst severity first, then newest first."""
    found: dict[str, Alert] = {}
    for alert in [
        *(alert for entry in entries for alert in entry.alerts),
        *(alert for view in views for alert in view.alerts),
    ]:
        found[alert.fingerprint] = Alert(
            id=alert.id,
            fingerprint=alert.fingerprint,
            state="firing",
            labels=alert.labels,
            annotations=alert.annotations,
            evidence=alert.evidence,
            starts_at=alert.starts_at,
            at=newest.get(alert.labels.get("kafka_cluster", ""), alert.starts_at),
        )
    return sorted(
        found.values(),
        key=lambda alert: (
            LEVELS.index(severity_level(alert.labels.get("severity", ""))),
            -alert.starts_at,
        ),
    )
