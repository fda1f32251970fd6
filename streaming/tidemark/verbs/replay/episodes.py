"""Which alerts would have come, and which not, under other thresholds: two foldings of one recording, compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from tidemark.core.records import Alert, Severity, decode_record
from tidemark.reduce.rows import Row
from tidemark.verbs.replay.timeline import moment

# What people are called or written for; the rest is a note.
COMPARED: Final[dict[Severity, str]] = {"critical": "page", "warning": "ticket"}


@dataclass(slots=True)
class Episode:
    """One alert from its firing to its end; null while it is open when the recording ends."""

    labels: dict[str, str]
    description: str
    fired_at: float
    ended_at: float | None = None

    def overlaps(self, other: Episode) -> bool:
        """Whether both were open at one time."""
        infinite = float("inf")
        return self.fired_at <= (other.ended_at or infinite) and other.fired_at <= (
            self.ended_at or infinite
        )


@dataclass(slots=True)
class Change:
    """An alert that only one of the two thresholds gives."""

    change: Literal["come", "gone"]
    kind: str
    episode: Episode

    def line(self) -> str:
        """For people."""
        labels = self.episode.labels
        place = "/".join(
            labels[name] for name in ("kafka_cluster", "topic", "partition") if name in labels
        )
        broker = f" broker {labels['broker']}" if "broker" in labels else ""
        ended = (
            "open at the end"
            if self.episode.ended_at is None
            else f"for {self.episode.ended_at - self.episode.fired_at:.1f} s"
        )
        sign = "+" if self.change == "come" else "-"
        start = moment(self.episode.fired_at)
        return f"{sign} {start}  {self.kind:6}  {labels['alertname']}  {place}{broker}  {ended}: {self.episode.description}"

    def document(self) -> dict[str, Any]:
        """For machines; times are Unix seconds."""
        episode = self.episode
        return {
            "type": "change",
            "change": self.change,
            "kind": self.kind,
            "labels": episode.labels,
            "description": episode.description,
            "fired_at": episode.fired_at,
            "ended_at": episode.ended_at,
        }


class Episodes:
    """Collects the episodes of one folding, by fingerprint. Grows with the number of alerts in the recording."""

    def __init__(self) -> None:
        self.by_fingerprint: dict[str, list[Episode]] = defaultdict(list)

    def take(self, rows: Iterable[Row]) -> None:
        for row in rows:
            record = (
                decode_record(row.value)
                if row.destination == "alerts" and row.value is not None
                else None
            )
            if isinstance(record, Alert):
                self._take(record)

    def _take(self, alert: Alert) -> None:
        known = self.by_fingerprint[alert.fingerprint]
        if alert.state == "firing":
            known.append(Episode(alert.labels, alert.annotations["description"], alert.at))
        elif alert.state == "resolved" and known and known[-1].ended_at is None:
            known[-1].ended_at = alert.at

    def counts(self) -> dict[str, int]:
        """Pages and tickets."""
        found = dict.fromkeys(COMPARED.values(), 0)
        for episodes in self.by_fingerprint.values():
            kind = _kind(episodes)
            if kind is not None:
                found[kind] += len(episodes)
        return found


def compare(old: Episodes, new: Episodes) -> list[Change]:
    """Pages and tickets of one folding that the other does not have, by time.

    An alert that fires earlier or later under the new thresholds, while the old one is open, is the same alert; of one that
    flapped and no longer does, the further episodes are gone.
    """
    changes: list[Change] = []
    for mark in {**old.by_fingerprint, **new.by_fingerprint}:
        before, after = old.by_fingerprint.get(mark, []), new.by_fingerprint.get(mark, [])
        kind = _kind(before or after)
        if kind is None:
            continue
        left = list(after)
        for episode in before:
            match = next((other for other in left if episode.overlaps(other)), None)
            if match is None:
                changes.append(Change("gone", kind, episode))
            else:
                left.remove(match)
        changes += [Change("come", kind, episode) for episode in left]
    return sorted(
        changes,
        key=lambda change: (
            change.episode.fired_at,
            change.kind,
            sorted(change.episode.labels.items()),
        ),
    )


def summary(old: Episodes, new: Episodes, changes: list[Change]) -> str:
    """One line: how many there were, how many there would be."""
    before, after = old.counts(), new.counts()
    parts = []
    for kind in COMPARED.values():
        come = sum(change.kind == kind and change.change == "come" for change in changes)
        gone = sum(change.kind == kind and change.change == "gone" for change in changes)
        parts.append(
            f"{kind}s: {before[kind]} before, {after[kind]} with the new thresholds (+{come} -{gone})"
        )
    return "; ".join(parts)


def _kind(episodes: list[Episode]) -> str | None:
    severity: Any = episodes[0].labels["severity"] if episodes else None
    return COMPARED.get(severity)
