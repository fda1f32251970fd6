"""The newest view of every key, as read from the compacted views topic. A tombstone deletes; nothing else forgets.

Bounded by the topic itself: one row per watched partition, broker and cluster. A partition's view stays as the bytes
that came, and is decoded when somebody looks: 100,000 decoded ones would take half a gigabyte. What the tallies need of
it is taken when it arrives, so that a refresh costs what changed and not what there is.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, zip_longest

from tidemark.core.records import OpenAlert, View, decode_record
from tidemark_exporters.export.facts import Motion, Shape, basis_of, motion_of, shape_of
from tidemark_exporters.export.tally import BrokerTally, Tally
from tidemark_exporters.export.text import label_set

# A cluster's name with a broker's number or a topic's name.
Pair = tuple[str, object]
# Shapes kept to be shared by rows; most partitions of a cluster have one of a few hundred.
MAX_SHARED = 20_000


class Row:
    """A partition's newest view, with what every refresh needs of it.

    `kept` rows hold the decoded view and their label sets: those that have series of their own.
    """

    __slots__ = (
        "_raw",
        "_view",
        "basis",
        "changed_at",
        "cluster",
        "kept",
        "last_leader",
        "motion",
        "naming",
        "shape",
        "topic",
    )

    def __init__(self, view: View, previous: Row | None, raw: bytes | None = None) -> None:
        """`raw` is the encoded view; without it the decoded one is held."""
        assert view.topic is not None, "a partition's view"
        self.cluster, self.topic = view.kafka_cluster, view.topic
        self.motion = motion_of(view)
        self.basis = basis_of(view, self.motion)
        unchanged = previous is not None and self.basis is not None and self.basis == previous.basis
        self.shape: Shape = previous.shape if previous is not None and unchanged else shape_of(view)
        if previous is not None and unchanged:
            self.basis = previous.basis
        self.kept: bool = previous is not None and previous.kept
        self._raw = raw
        self._view = view if self.kept or raw is None else None
        # The inside of the braces of the partition's series and of its replicas', once they were needed.
        self.naming: tuple[str, list[str]] | None = None
        # The last broker that led, and when the in-sync set last changed: for elections and expansions.
        self.last_leader = view.leader
        self.changed_at = view.isr_history[-1][0] if view.isr_history else 0.0
        if previous is not None:
            self.cluster, self.topic = previous.cluster, previous.topic
            if view.leader is None:
                self.last_leader = previous.last_leader
            if self.kept and [r.broker for r in previous.view.replicas] == [
                r.broker for r in view.replicas
            ]:
                self.naming = previous.naming

    @property
    def view(self) -> View:
        """The view; decoded anew each time unless the row is kept."""
        # Another thread may release the row in between.
        view = self._view
        if view is not None:
            return view
        assert self._raw is not None
        decoded = decode_record(self._raw)
        assert isinstance(decoded, View)
        return decoded

    def keep(self) -> None:
        """Holds on to the decoded view: the row has series of its own now."""
        self._view, self.kept = self.view, True

    def release(self) -> None:
        """Back to the bytes alone."""
        self.kept = False
        if self._raw is not None:
            self._view = self.naming = None

    @property
    def labels(self) -> str:
        """The inside of the braces of the partition's series."""
        return self._named()[0]

    @property
    def replica_labels(self) -> list[str]:
        """The same of its replicas' series, in the order of the view's replicas."""
        return self._named()[1]

    def _named(self) -> tuple[str, list[str]]:
        if self.naming is None:
            view = self.view
            labels = label_set(
                kafka_cluster=self.cluster, topic=self.topic, partition=view.partition
            )
            self.naming = (
                labels,
                [f'{labels},broker="{replica.broker}"' for replica in view.replicas],
            )
        return self.naming

    @property
    def under_replicated(self) -> bool:
        return self.shape.under_replicated

    @property
    def under_min(self) -> bool:
        return self.shape.under_min

    @property
    def at_min(self) -> bool:
        return self.shape.at_min

    @property
    def leaderless(self) -> bool:
        return self.shape.leaderless

    @property
    def blind(self) -> bool:
        return self.shape.blind

    @property
    def unhealthy(self) -> bool:
        """Whether an operator would want to see this partition's replicas."""
        return self.shape.unhealthy

    @property
    def lag_records(self) -> int | None:
        """The largest lag of a follower, in records."""
        return self.motion.lag_records

    @property
    def lag_ms(self) -> float | None:
        """The same in time."""
        return self.motion.lag_ms


class Table:
    """Views by key, and what they add up to. Not locked: one thread applies records and renders.

    Others may read: they copy a dictionary before they walk over it.
    """

    def __init__(self) -> None:
        self.partitions: dict[str, Row] = {}
        self.brokers: dict[str, View] = {}
        self.clusters: dict[str, View] = {}
        # The newest pass that a view of the cluster speaks of, in Unix seconds by its collector's clock. It stays when
        # the views go: it bounds to one entry per cluster name.
        self.newest: dict[str, float] = {}
        self.cluster_tallies: dict[str, Tally] = {}
        self.topic_tallies: dict[Pair, Tally] = {}
        self.broker_tallies: dict[Pair, BrokerTally] = {}
        self.unhealthy: dict[str, None] = {}
        self.replicas = 0
        # Counted from one view of a partition to its next once `live`: before, the topic's past is being read.
        self.live = False
        self.elections: Counter[str] = Counter()
        self.expands: Counter[Pair] = Counter()
        self._alerts: dict[str, list[OpenAlert]] = {}
        self._shapes: dict[Shape, Shape] = {}

    def apply(self, key: str, view: View | None, raw: bytes | None = None) -> None:
        """Takes one record of the topic; None is a tombstone. An unknown key's tombstone is no error.

        `raw` is the encoded view; without it the decoded one is kept.
        """
        if view is None:
            self._forget(key)
            return
        if view.alerts:
            self._alerts[key] = view.alerts
        else:
            self._alerts.pop(key, None)
        if view.scope == "partition":
            self._apply_partition(key, view, raw)
        elif view.scope == "broker":
            self.brokers[key] = view
        else:
            self.clusters[key] = view
        self.newest[view.kafka_cluster] = max(view.at, self.newest.get(view.kafka_cluster, 0.0))

    def open_alerts(self) -> list[OpenAlert]:
        """Every alert that some view holds open."""
        return [alert for alerts in self._alerts.values() for alert in alerts]

    def alerts_by_key(self) -> dict[str, list[OpenAlert]]:
        """The same by the key of their view, copied: any thread may ask."""
        return self._alerts.copy()

    def _apply_partition(self, key: str, view: View, raw: bytes | None) -> None:
        previous = self.partitions.get(key)
        row = self.partitions[key] = Row(view, previous, raw)
        if previous is None or row.shape is not previous.shape:
            row.shape = self._shared(row.shape)
        shape = row.shape
        if previous is None or previous.shape is not shape:
            if previous is not None:
                self._count(previous, -1)
            self._count(row, 1)
            if shape.unhealthy:
                self.unhealthy[key] = None
            else:
                self.unhealthy.pop(key, None)
        if previous is None or previous.motion != row.motion:
            self._move(key, previous, row)
        else:
            row.motion = previous.motion
        if previous is not None and previous.shape.hosts != shape.hosts:
            self._drop_unused(previous)
        if previous is not None and self.live:
            self._count_changes(previous, row, view)

    def _shared(self, shape: Shape) -> Shape:
        if len(self._shapes) > MAX_SHARED:
            self._shapes.clear()
        return self._shapes.setdefault(shape, shape)

    def _forget(self, key: str) -> None:
        self._alerts.pop(key, None)
        self.brokers.pop(key, None)
        self.clusters.pop(key, None)
        row = self.partitions.pop(key, None)
        if row is None:
            return
        self._count(row, -1)
        self._move(key, row, None)
        self.unhealthy.pop(key, None)
        if not self.topic_tallies[row.cluster, row.topic].used:
            del self.topic_tallies[row.cluster, row.topic]
        self._drop_unused(row)

    def _drop_unused(self, row: Row) -> None:
        """Forgets brokers of a row that is no more, where nothing else is known of them."""
        named = {host.broker for host in row.shape.hosts} | {
            broker for broker, _, _ in row.motion.followers
        }
        for broker in named | {row.shape.leader, row.shape.preferred}:
            tally = self.broker_tallies.get((row.cluster, broker))
            if tally is not None and not tally.used:
                del self.broker_tallies[row.cluster, broker]

    def _count(self, row: Row, sign: int) -> None:
        """Adds what the row is, or takes it away."""
        shape = row.shape
        self.replicas += sign * shape.replicas
        self.cluster_tallies.setdefault(row.cluster, Tally()).count(shape, sign)
        self._topic(row.cluster, row.topic).count(shape, sign)
        for host in shape.hosts:
            self._broker(row.cluster, host.broker).count(host, sign)
        if shape.leader is not None:
            self._broker(row.cluster, shape.leader).leaders += sign
        if shape.preferred is not None:
            self._broker(row.cluster, shape.preferred).preferred += sign

    def _move(self, key: str, previous: Row | None, row: Row | None) -> None:
        """Lets the row's lags stand in the tallies in place of the previous ones."""
        some = row or previous
        assert some is not None
        motion = row.motion if row is not None else Motion()
        self.cluster_tallies[some.cluster].move(key, motion)
        self._topic(some.cluster, some.topic).move(key, motion)
        old = previous.motion.followers if previous is not None else ()
        changed = [(was, now) for was, now in zip_longest(old, motion.followers) if was != now]
        for was, now in changed:
            if was is None or now is None or was[0] != now[0] or None in was or None in now:
                break
        else:
            # The usual case by far: the same followers, and both their lags are known as they were.
            for _, now in changed:
                self._broker(some.cluster, now[0]).move(key, now)
            return
        # All that go before any that come: a follower may stand at another place now.
        for was, _ in changed:
            if was is not None:
                self._broker(some.cluster, was[0]).follow(key, was, -1)
        for _, now in changed:
            if now is not None:
                self._broker(some.cluster, now[0]).follow(key, now, 1)

    def _count_changes(self, previous: Row, row: Row, view: View) -> None:
        if view.leader is not None and previous.last_leader not in (None, view.leader):
            self.elections[row.cluster] += 1
        if row.changed_at > previous.changed_at:
            for (_, before), (at, after) in pairwise(view.isr_history):
                if at > previous.changed_at:
                    for broker in set(after) - set(before):
                        self.expands[row.cluster, broker] += 1

    def _topic(self, cluster: str, topic: str) -> Tally:
        tally = self.topic_tallies.get((cluster, topic))
        if tally is None:
            tally = self.topic_tallies[cluster, topic] = Tally()
        return tally

    def _broker(self, cluster: str, broker: int) -> BrokerTally:
        tally = self.broker_tallies.get((cluster, broker))
        if tally is None:
            tally = self.broker_tallies[cluster, broker] = BrokerTally()
        return tally
