"""Alerts that come or go under other thresholds: the results of two reducers, compared."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from tidemark.core.alert_records import place
from tidemark.core.records import Alert
from tidemark.core.text import duration, utc

# By severity. Info alerts call for no reaction and are not compared.
KINDS: Final = {"critical": "page", "warning": "ticket"}


@dataclass(slots=True)
class Episode:
    """One alert from firing to its end. Null: still open when the recording ends."""

    kind: str
    alert: Alert
    ended_at: float | None = None

    def overlaps(self, other: Episode) -> bool:
        """Whether both were open at the same time."""
        return self.alert.at <= (other.ended_at or math.inf) and other.alert.at <= (
            self.ended_at or math.inf
        )


class Change(NamedTuple):
    """An episode under one set of thresholds only: the new ones (come) or the old ones (gone)."""

    change: Literal["come", "gone"]
    episode: Episode

    def line(self) -> str:
        kind, alert, ended_at = self.episode.kind, self.episode.alert, self.episode.ended_at
        broker = f" broker {alert.labels['broker']}" if "broker" in alert.labels else ""
        seconds = (ended_at or alert.at) - alert.at
        length = "open at the end" if ended_at is None else f"for {duration(1000 * seconds)}"
        where = f"{alert.labels['alertname']}  {place(alert)}{broker}"
        text = f"{utc(alert.at)}  {kind:6}  {where}  {length}: {alert.annotations['description']}"
        return f"{'+' if self.change == 'come' else '-'} {text}"

    def document(self) -> dict[str, Any]:
        """The JSON form. Times are Unix seconds."""
        alert = self.episode.alert
        return {
            "type": "change",
            "change": self.change,
            "kind": self.episode.kind,
            "labels": alert.labels,
            "description": alert.annotations["description"],
            "fired_at": alert.at,
            "ended_at": self.episode.ended_at,
        }


class Episodes:
    """The episodes of one reducer by fingerprint. Grows with the alerts in the recording."""

    def __init__(self) -> None:
        self.by_fingerprint: dict[str, list[Episode]] = defaultdict(list)

    def add(self, alert: Alert) -> None:
        known = self.by_fingerprint[alert.fingerprint]
        kind = KINDS.get(alert.labels["severity"])
        if alert.state == "firing" and kind is not None:
            known.append(Episode(kind, alert))
        elif alert.state == "resolved" and known and known[-1].ended_at is None:
            known[-1].ended_at = alert.at

    def counts(self) -> dict[str, int]:
        """The number of pages and tickets."""
        kinds = [episode.kind for known in self.by_fingerprint.values() for episode in known]
        return {kind: kinds.count(kind) for kind in KINDS.values()}


def compare(old: Episodes, new: Episodes) -> list[Change]:
    """Pages and tickets of only one side, by time.

    An alert that fires while the other side's is open is the same alert. Where an alert flapped and
    now fires once, its other episodes are gone.
    """
    changes: list[Change] = []
    for fingerprint in {**old.by_fingerprint, **new.by_fingerprint}:
        unmatched = list(new.by_fingerprint.get(fingerprint, []))
        for episode in old.by_fingerprint.get(fingerprint, []):
            match = next((other for other in unmatched if episode.overlaps(other)), None)
            if match is None:
                changes.append(Change("gone", episode))
            else:
                unmatched.remove(match)
        changes += [Change("come", episode) for episode in unmatched]
    return sorted(changes, key=_by_time)


def _by_time(change: Change) -> tuple[float, str, list[tuple[str, str]]]:
    alert = change.episode.alert
    return alert.at, change.episode.kind, sorted(alert.labels.items())


def summary(old: Episodes, new: Episodes, changes: list[Change]) -> str:
    """The numbers of pages and tickets on both sides, in one line."""
    before, after = old.counts(), new.counts()
    numbers = Counter((change.change, change.episode.kind) for change in changes)
    return "; ".join(
        f"{kind}s: {before[kind]} before, {after[kind]} with the new thresholds "
        f"(+{numbers['come', kind]} -{numbers['gone', kind]})"
        for kind in KINDS.values()
    )
