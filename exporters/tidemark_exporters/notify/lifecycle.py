"""Closes three holes in the life of an alert: a stream that forgot it, one that fell silent, and a record that never came.

Open alerts stand in the views, which the stream repeats every 60 s. One that no view holds for five minutes while
passes flow is over ("state_lost"). When passes do not flow nothing is over: the watchdog says so instead. One that a
view holds and no record of the alerts topic told of (aged out, or not readable) is taken from the view.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from tidemark.core.identity import fingerprint
from tidemark.core.records import Alert, OpenAlert, View

MAX_OPEN: Final = 50_000
LOST_SECONDS: Final = 300.0
# How long a configured cluster may take until its first view, from the exporter's start: Spark starts slowly.
FIRST_VIEW_SECONDS: Final = 120.0
# How long the record of an alert may take longer than the view that holds it: they are two topics.
UNHEARD_SECONDS: Final = 30.0
# Passes flow again for so long before the watchdog's alert ends: a stream that stumbles on is told once, and what
# Prometheus says of the same cause, which Alertmanager withholds meanwhile, is over before (a scrape and an evaluation,
# a minute each by default).
FRESH_SECONDS: Final = 120.0
STALE: Final = "TidemarkStreamStalled"
STALE_TEXT: Final = (
    "Until passes flow again no alert of this cluster fires or resolves. "
    "Look at `tidemark collect` and `tidemark stream`, and at the Kafka that carries Tidemark's topics."
)
FRESH_TEXT: Final = f"This alert ends once passes have flowed for {FRESH_SECONDS:.0f} s."


class Assertions:
    """Open alerts and when the stream last vouched for each. Bounded to MAX_OPEN, the oldest forgotten."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Alert] = OrderedDict()
        self._asserted: dict[str, float] = {}
        # Alerts in views that no record told of: since when (the exporter's clock), and the newest such view.
        self._unheard: OrderedDict[str, tuple[float, float]] = OrderedDict()
        # By cluster: the newest pass when it was last looked at, and the pass since which they flow without a gap.
        self._newest: dict[str, float] = {}
        self._flowing_since: dict[str, float] = {}

    def take(self, alert: Alert) -> None:
        """One alert record, in the order of the topic."""
        mark = alert.fingerprint
        self._unheard.pop(mark, None)
        if alert.state == "resolved":
            self._forget(mark)
            return
        self._open[mark] = alert
        self._asserted[mark] = max(alert.at, self._asserted.get(mark, 0.0))
        if len(self._open) > MAX_OPEN:
            self._forget(next(iter(self._open)))

    def vouch(self, view: View, now: float) -> None:
        """A view vouches for the alerts in it."""
        for alert in view.alerts:
            mark = alert.fingerprint
            if mark in self._asserted:
                self._asserted[mark] = max(view.at, self._asserted[mark])
                continue
            self._unheard[mark] = (self._unheard.get(mark, (now, 0.0))[0], view.at)
            if len(self._unheard) > MAX_OPEN:
                self._unheard.popitem(last=False)

    def unheard(self, open_now: Callable[[], Iterable[OpenAlert]], now: float) -> list[Alert]:
        """Firings of alerts that views have held for UNHEARD_SECONDS and still hold, while no record told of them.

        `open_now` is asked only when there may be any. Each is returned once.
        """
        due = {
            mark: at
            for mark, (since, at) in self._unheard.items()
            if now - since >= UNHEARD_SECONDS
        }
        if not due:
            return []
        for mark in due:
            del self._unheard[mark]
        found = {
            alert.fingerprint: _as_firing(alert) for alert in open_now() if alert.fingerprint in due
        }
        for mark, alert in found.items():
            self.take(alert)
            self._asserted[mark] = due[mark]
        return list(found.values())

    def lost(self, newest: dict[str, float], now: float, stale_seconds: float) -> list[Alert]:
        """Resolutions of the alerts that nobody vouches for any more; each is returned once.

        `newest`: the newest pass by cluster. A cluster whose passes do not flow loses nothing, and after a gap the stream
        has five minutes to vouch anew.
        """
        self._look(newest, now, stale_seconds)
        ended = []
        for mark, alert in list(self._open.items()):
            cluster = alert.labels.get("kafka_cluster", "")
            since = self._flowing_since.get(cluster)
            if (
                since is not None
                and newest[cluster] - max(since, self._asserted[mark]) > LOST_SECONDS
            ):
                ended.append(_state_lost(alert, newest[cluster]))
                self._forget(mark)
        return ended

    def _look(self, newest: dict[str, float], now: float, stale_seconds: float) -> None:
        for cluster, seen in newest.items():
            gap = seen - self._newest.get(cluster, seen)
            if now - seen > stale_seconds:
                self._flowing_since.pop(cluster, None)
            elif gap > stale_seconds or cluster not in self._flowing_since:
                self._flowing_since[cluster] = seen
        self._newest = dict(newest)

    def _forget(self, mark: str) -> None:
        self._open.pop(mark, None)
        self._asserted.pop(mark, None)


def _as_firing(alert: OpenAlert) -> Alert:
    return Alert(
        id=alert.id,
        fingerprint=alert.fingerprint,
        state="firing",
        labels=alert.labels,
        annotations=alert.annotations,
        evidence=alert.evidence,
        starts_at=alert.starts_at,
        at=alert.starts_at,
    )


def _state_lost(alert: Alert, at: float) -> Alert:
    return Alert(
        id=f"{alert.fingerprint}.{round(alert.starts_at * 1000):x}.state_lost",
        fingerprint=alert.fingerprint,
        state="resolved",
        labels=alert.labels,
        annotations=alert.annotations,
        evidence=alert.evidence,
        starts_at=alert.starts_at,
        ends_at=at,
        reason="state_lost",
        at=at,
    )


class Watchdog:
    """Whether passes reach the exporter, by cluster. Its clock and the collectors' must agree to a few seconds."""

    def __init__(
        self, clusters: Iterable[str], stale_seconds: float, runbook_url: str, started_at: float
    ) -> None:
        self._clusters = set(clusters)
        self._stale_seconds = stale_seconds
        self._runbook_url = runbook_url
        self._started_at = started_at
        # Clusters whose alert fires, and when no pass came last.
        self._stale_at: dict[str, float] = {}

    def judge(self, newest: dict[str, float], now: float) -> list[Alert]:
        """The alert of each cluster, configured or seen, in the state that it should be in now.

        Its evidence has `stale_since` while no pass comes.
        """
        return [
            self._alert(cluster, newest.get(cluster), now)
            for cluster in sorted(self._clusters | set(newest))
        ]

    def _alert(self, cluster: str, seen: float | None, now: float) -> Alert:
        stale, told = self._look(seen, now)
        if stale:
            self._stale_at[cluster] = now
        elif now - self._stale_at.get(cluster, now) >= FRESH_SECONDS:
            del self._stale_at[cluster]
        firing = cluster in self._stale_at
        labels = {"kafka_cluster": cluster, "alertname": STALE, "severity": "warning"}
        mark = fingerprint(labels)
        since = self._started_at if seen is None else seen
        return Alert(
            id=f"{mark}.{round(since * 1000):x}.{'firing' if firing else 'resolved'}",
            fingerprint=mark,
            state="firing" if firing else "resolved",
            labels=labels,
            annotations={
                "summary": "No fresh passes reach the exporter.",
                "description": f"Cluster {cluster}: {told}. {STALE_TEXT if stale else FRESH_TEXT}",
                "runbook_url": f"{self._runbook_url}#{STALE.lower()}",
            },
            evidence={"newest_pass_at": seen, "stale_since": since} if stale else {},
            starts_at=since,
            ends_at=None if firing else now,
            at=now,
        )

    def _look(self, seen: float | None, now: float) -> tuple[bool, str]:
        """Whether no pass comes, and in words."""
        if seen is None:
            patience = max(FIRST_VIEW_SECONDS, self._stale_seconds)
            return (
                now - self._started_at > patience,
                "no view of it has arrived since the exporter started",
            )
        return (
            now - seen > self._stale_seconds,
            f"the newest pass that the stream has judged is {now - seen:.0f} s old",
        )
