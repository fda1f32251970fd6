"""Transitions of alerts without a record in the topic, and the exporter's own alerts. Pure.

Open alerts are part of the views, which the stream repeats every 60 s. An alert that no view
contains for five minutes while passes flow is over ("state_lost"). While passes do not flow, no
alert ends: TidemarkStreamStalled fires instead. An alert that a view contains and no record
announced (too old for the topic, or not readable) is taken from the view.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec import structs

from tidemark.core.identity import transition_id
from tidemark.core.own_alerts import STALLED, WATCHDOG, own_alert
from tidemark.core.records import Alert, OpenAlert, View

MAX_OPEN: Final = 50_000
LOST_SECONDS: Final = 300.0
# How long a configured cluster may take until its first view: Spark starts slowly.
FIRST_VIEW_SECONDS: Final = 120.0
# How much later than the view that contains it an alert's record may arrive: they are two topics.
UNANNOUNCED_SECONDS: Final = 30.0
# Views of a cluster come every 10 s, and a batch of a large one takes some seconds. After a longer
# silence records may be late too: a stream that ended within a batch writes it again.
SILENT_SECONDS: Final = 20.0
# How long passes flow before TidemarkStreamStalled resolves. A stream with repeated short stops
# raises it once. Alertmanager inhibits Prometheus' alerts of the same cause meanwhile; they resolve
# before this one does (a scrape and an evaluation, a minute each by default).
FRESH_SECONDS: Final = 120.0
# The readers tick once a second. After this long without a tick they count as dead.
ALIVE_SECONDS: Final = 60.0

STALLED_TEXT: Final = (
    "Until passes flow again no alert of this cluster fires or resolves. "
    "Look at `tidemark collect` and `tidemark stream`, "
    "and at the Kafka that carries Tidemark's topics."
)
FRESH_TEXT: Final = f"This alert ends once passes have flowed for {FRESH_SECONDS:.0f} s."


@dataclass(slots=True)
class _Open:
    alert: Alert
    # The newest pass whose record or view contained it.
    asserted_at: float


class _Unannounced(NamedTuple):
    """An alert of views without a record."""

    cluster: str
    # By the own clock.
    since: float
    # The newest pass whose view contained it.
    view_at: float


class OpenAlerts:
    """Open alerts, and when the stream last asserted each. Bounded: the oldest is forgotten."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._unannounced: OrderedDict[str, _Unannounced] = OrderedDict()
        # By cluster: the newest pass at the last call, and since which pass there was no gap.
        self._newest: dict[str, float] = {}
        self._flowing_since: dict[str, float] = {}
        # By cluster (own clock): when a newer pass arrived last, and since when without a silence.
        self._arrivals: dict[str, tuple[float, float]] = {}

    def take(self, alert: Alert) -> None:
        """One alert record, in the order of the topic."""
        self._unannounced.pop(alert.fingerprint, None)
        if alert.state == "resolved":
            self._open.pop(alert.fingerprint, None)
        elif (known := self._open.get(alert.fingerprint)) is not None:
            known.alert, known.asserted_at = alert, max(alert.at, known.asserted_at)
        else:
            self._open[alert.fingerprint] = _Open(alert, alert.at)
            if len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)

    def take_view(self, view: View, now: float) -> None:
        """A view asserts the alerts in it."""
        for alert in view.alerts:
            if (known := self._open.get(alert.fingerprint)) is not None:
                known.asserted_at = max(view.at, known.asserted_at)
                continue
            before = self._unannounced.get(alert.fingerprint)
            since = now if before is None else before.since
            found = _Unannounced(view.kafka_cluster, since, view.at)
            self._unannounced[alert.fingerprint] = found
            if len(self._unannounced) > MAX_OPEN:
                self._unannounced.popitem(last=False)

    def unannounced(self, open_now: Callable[[], Iterable[OpenAlert]], now: float) -> list[Alert]:
        """Alerts that views have contained for UNANNOUNCED_SECONDS without a record; each once.

        Meanwhile passes arrived. `open_now` returns the alerts of all views; it is called only when
        there may be any.
        """
        due = {
            fingerprint: each.view_at
            for fingerprint, each in self._unannounced.items()
            if now - each.since >= UNANNOUNCED_SECONDS and self._arrive(each.cluster, now)
        }
        found = {each.fingerprint: each for each in (open_now() if due else ())}
        alerts = [as_firing(found[fingerprint]) for fingerprint in due if fingerprint in found]
        for fingerprint in due:
            del self._unannounced[fingerprint]
        for alert in alerts:
            self.take(alert)
            self._open[alert.fingerprint].asserted_at = due[alert.fingerprint]
        return alerts

    def _arrive(self, cluster: str, now: float) -> bool:
        """Whether passes of the cluster arrived for UNANNOUNCED_SECONDS without a silence."""
        last, since = self._arrivals.get(cluster, (0.0, now))
        return now - last <= SILENT_SECONDS and now - since >= UNANNOUNCED_SECONDS

    def _note_arrivals(self, newest: dict[str, float], now: float) -> None:
        for cluster, pass_at in newest.items():
            last, since = self._arrivals.get(cluster, (0.0, now))
            if pass_at != self._newest.get(cluster):
                self._arrivals[cluster] = now, now if now - last > SILENT_SECONDS else since

    def ended_without_record(
        self, newest: dict[str, float], now: float, stale_seconds: float
    ) -> list[Alert]:
        """The ends of alerts that the stream asserts no longer; each once.

        `newest` is the newest pass by cluster. Where passes do not flow no alert ends, and after a
        gap the stream has five minutes to assert its alerts again.
        """
        self._note_arrivals(newest, now)
        for cluster, pass_at in newest.items():
            gap = pass_at - self._newest.get(cluster, pass_at)
            if now - pass_at > stale_seconds:
                self._flowing_since.pop(cluster, None)
            elif gap > stale_seconds or cluster not in self._flowing_since:
                self._flowing_since[cluster] = pass_at
        self._newest = dict(newest)
        ended = []
        for fingerprint, known in list(self._open.items()):
            cluster = known.alert.labels.get("kafka_cluster", "")
            since = self._flowing_since.get(cluster)
            if since is None:
                continue
            if newest[cluster] - max(since, known.asserted_at) > LOST_SECONDS:
                ended.append(
                    structs.replace(
                        known.alert,
                        id=transition_id(fingerprint, known.alert.starts_at, "state_lost"),
                        state="resolved",
                        ends_at=newest[cluster],
                        reason="state_lost",
                        at=newest[cluster],
                    )
                )
                del self._open[fingerprint]
        return ended


class Horizon:
    """Since when the alerts topic was read. Bounded by the names of clusters.

    Records are in no order of time: a batch of the stream writes one group after the other. So a
    record before those that are read again may be newer than the oldest of them, but is hardly
    newer than the newest of them.
    """

    def __init__(self, started_at: float) -> None:
        self._oldest = self._started_at = started_at
        self._oldest_of: dict[str, float] = {}
        self._newest_again: dict[str, float] = {}

    def take(self, alert: Alert, *, again: bool = False) -> None:
        """One alert record; `again`: earlier runs have settled it for every receiver."""
        cluster = alert.labels.get("kafka_cluster", "")
        if again:
            self._newest_again[cluster] = max(self._newest_again.get(cluster, 0.0), alert.at)
        self._oldest = min(self._oldest, alert.at)
        self._oldest_of[cluster] = min(self._oldest_of.get(cluster, alert.at), alert.at)

    def is_old(self, alert: Alert) -> bool:
        """Whether the record with which it fired may be older than what was read."""
        cluster = alert.labels.get("kafka_cluster", "")
        if alert.starts_at <= self._newest_again.get(cluster, 0.0):
            return True
        oldest = self._oldest_of.get(cluster, self._oldest)
        # The clock of the cluster's collectors may be ahead of this one.
        return alert.starts_at < (oldest if oldest > self._started_at else self._oldest)


def as_firing(alert: OpenAlert) -> Alert:
    """An alert of a view as the record with which it fired."""
    return Alert(
        **structs.asdict(alert),
        state="firing",
        at=alert.starts_at,
    )


class StalledStreams:
    """Whether passes reach the exporter, by cluster: TidemarkStreamStalled.

    The clocks of exporter and collectors must agree to a few seconds.
    """

    def __init__(self, clusters: Iterable[str], stale_seconds: float, started_at: float) -> None:
        self._clusters = set(clusters)
        self._stale_seconds = stale_seconds
        self._started_at = started_at
        # By cluster of which the alert fires: when it was last without passes.
        self._stale_at: dict[str, float] = {}

    def alerts(self, newest: dict[str, float], now: float) -> list[Alert]:
        """The alert of each cluster, configured or seen, in the state that it should be in now.

        Its evidence has `stale_since` while no pass arrives.
        """
        return [
            self._alert(cluster, newest.get(cluster), now)
            for cluster in sorted(self._clusters | set(newest))
        ]

    def _alert(self, cluster: str, pass_at: float | None, now: float) -> Alert:
        if pass_at is None:
            since, limit = self._started_at, max(FIRST_VIEW_SECONDS, self._stale_seconds)
            observed = "no view of it has arrived since the exporter started"
        else:
            since, limit = pass_at, self._stale_seconds
            observed = f"the newest pass that the stream has judged is {now - since:.0f} s old"
        stale = now - since > limit
        if stale:
            self._stale_at[cluster] = now
        elif now - self._stale_at.get(cluster, now) >= FRESH_SECONDS:
            del self._stale_at[cluster]
        alert = own_alert(
            STALLED,
            "warning",
            "No fresh passes reach the exporter.",
            f"Cluster {cluster}: {observed}. {STALLED_TEXT if stale else FRESH_TEXT}",
            starts_at=since,
            at=now,
            firing=cluster in self._stale_at,
            labels={"kafka_cluster": cluster},
            evidence={"newest_pass_at": pass_at, "stale_since": since} if stale else {},
        )
        # The same transition has the same id after a restart.
        return structs.replace(alert, id=transition_id(alert.fingerprint, since, alert.state))


class Heartbeat:
    """TidemarkWatchdog, the dead man's switch: an alert that always fires.

    It is posted by the receiver's own thread, and only while the exporter's readers tick. Whatever
    would keep a real alert from being delivered stops it too.
    """

    def __init__(self, seconds: float, started_at: float) -> None:
        self._seconds = seconds
        self._started_at = started_at
        self._next = started_at
        # When the readers ticked last.
        self.ticked_at = started_at

    def beats(self, now: float) -> bool:
        return now - self.ticked_at <= ALIVE_SECONDS

    def due(self, now: float) -> bool:
        """Whether to post it now. The next call returns False until the next time."""
        if now < self._next or not self.beats(now):
            return False
        self._next = now + self._seconds
        return True

    def alert(self, now: float) -> Alert:
        """Each has an id of its own."""
        return own_alert(
            WATCHDOG,
            "info",
            "Tidemark delivers alerts.",
            "This alert always fires. When it stops arriving, Tidemark can deliver no alert.",
            starts_at=self._started_at,
            at=now,
        )
