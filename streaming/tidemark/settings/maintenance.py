"""Maintenance windows: when planned work is going on, and which alerts it explains.

Once (`start` and `end` with a date) or weekly (`days`, and times of day), in a time zone of their own. A weekly window
that ends before it starts ends on the next day. Times are what a clock on the wall shows there: a window from 22:00 to
02:00 ends at 02:00 also in the night when the clocks change.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct, field

from tidemark.core.errors import ConfigError

Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
DAYS: tuple[Day, ...] = (
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
)


class Maintenance(Struct, kw_only=True, forbid_unknown_fields=True):
    """Planned work. Matchers are regular expressions, matched whole; all of them must fit. An absent label is empty."""

    name: str
    clusters: list[str] = field(default_factory=lambda: [".*"])
    topics: list[str] = field(default_factory=lambda: [".*"])
    brokers: list[str] = field(default_factory=lambda: [".*"])
    alerts: list[str] = field(default_factory=lambda: [".*"])
    # "2026-11-21 22:00", or "22:00" where `days` are given. YAML may have made something else of it: see `_text`.
    start: Any
    end: Any
    days: list[Day] = []
    time_zone: str = "UTC"

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether an alert with these labels is of this work, whenever that is."""
        pairs = (
            ("kafka_cluster", self.clusters),
            ("topic", self.topics),
            ("broker", self.brokers),
            ("alertname", self.alerts),
        )
        return all(
            any(re.fullmatch(expression, labels.get(label, "")) for expression in wanted)
            for label, wanted in pairs
        )


class Span(msgspec.Struct, frozen=True):
    """When a window is open: naive local times of `zone`, or times of day with `days` (0 is Monday)."""

    zone: ZoneInfo
    once: tuple[datetime, datetime] | None = None
    days: frozenset[int] = frozenset()
    times: tuple[time, time] = (time(), time())

    def until(self, now: float) -> float | None:
        """When the window that is open at `now` ends (Unix seconds); None while it is closed."""
        here = datetime.fromtimestamp(now, self.zone).replace(tzinfo=None)
        for start, end in self._near(here.date()):
            if start <= here < end:
                return end.replace(tzinfo=self.zone).timestamp()
        return None

    def _near(self, today: date) -> list[tuple[datetime, datetime]]:
        if self.once is not None:
            return [self.once]
        start, end = self.times
        begun = [day for day in (today - timedelta(days=1), today) if day.weekday() in self.days]
        return [
            (
                datetime.combine(day, start),
                datetime.combine(day if end > start else day + timedelta(days=1), end),
            )
            for day in begun
        ]


def span_of(window: Maintenance) -> Span:
    """Reads a window's times. Raises ConfigError naming the window and the form that is expected."""
    told = f"configuration: maintenance `{window.name}`"
    try:
        zone = ZoneInfo(window.time_zone)
    except (OSError, ValueError, KeyError):
        raise ConfigError(
            f"{told}: there is no time zone `{window.time_zone}`; name one as Europe/Berlin or UTC."
        ) from None
    texts = _text(window.start), _text(window.end)
    try:
        if window.days:
            start, end = (time.fromisoformat(text) for text in texts)
            if start.tzinfo is not None or end.tzinfo is not None:
                raise ValueError
            return Span(
                zone, days=frozenset(DAYS.index(day) for day in window.days), times=(start, end)
            )
        begins, ends = (_local(text, zone) for text in texts)
    except ValueError:
        form = '"22:00"' if window.days else '"2026-11-21 22:00"'
        raise ConfigError(
            f"{told}: start `{texts[0]}` and end `{texts[1]}` must be written as {form}{'' if window.days else ' (or give `days`)'}."
        ) from None
    if ends <= begins:
        raise ConfigError(f"{told}: it ends before it starts.")
    return Span(zone, once=(begins, ends))


def _local(text: str, zone: ZoneInfo) -> datetime:
    if len(text) <= len("2026-11-21"):
        raise ValueError
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is None else moment.astimezone(zone).replace(tzinfo=None)


def _text(value: Any) -> str:
    """As it was written: without quotes YAML makes the minutes 1320 of 22:00, and a time stamp of a date."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 24 * 60:
        return f"{value // 60:02}:{value % 60:02}"
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
