"""Maintenance windows: when planned work takes place, and which alerts it explains.

A window opens once (`start` and `end` with a date) or weekly (`days`, and times of day). A weekly
window that ends before it starts ends on the next day. All times are local times of the window's
time zone: a window from 22:00 to 02:00 ends at 02:00 also in a night when the clocks change.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

from msgspec import Struct, field

Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class Maintenance(Struct, kw_only=True, forbid_unknown_fields=True):
    """One window. Matchers are regular expressions, matched whole; an absent label is empty."""

    name: str
    clusters: list[str] = field(default_factory=lambda: [".*"])
    topics: list[str] = field(default_factory=lambda: [".*"])
    brokers: list[str] = field(default_factory=lambda: [".*"])
    alerts: list[str] = field(default_factory=lambda: [".*"])
    # "2026-11-21 22:00", or "22:00" with `days`. YAML may have parsed it already: see `_as_text`.
    start: Any
    end: Any
    days: list[Day] = []
    time_zone: str = "UTC"

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether all matchers fit an alert's labels, at any time."""
        matchers = {
            "kafka_cluster": self.clusters,
            "topic": self.topics,
            "broker": self.brokers,
            "alertname": self.alerts,
        }
        return all(
            any(re.fullmatch(expression, labels.get(label, "")) for expression in expressions)
            for label, expressions in matchers.items()
        )


class Schedule(Struct, frozen=True):
    """When a window is open: local times of `zone`, or times of day on `days` (0 is Monday)."""

    zone: ZoneInfo
    once: tuple[datetime, datetime] | None = None
    days: frozenset[int] = frozenset()
    times: tuple[time, time] = (time(), time())

    def open_until(self, now: float) -> float | None:
        """The end of the window that is open at `now`, both Unix seconds; None while closed."""
        local_now = datetime.fromtimestamp(now, self.zone).replace(tzinfo=None)
        for start, end in self._windows_around(local_now.date()):
            if start <= local_now < end:
                return end.replace(tzinfo=self.zone).timestamp()
        return None

    def _windows_around(self, today: date) -> list[tuple[datetime, datetime]]:
        if self.once is not None:
            return [self.once]
        start, end = self.times
        length = timedelta(days=0 if end > start else 1)
        return [
            (datetime.combine(day, start), datetime.combine(day + length, end))
            for day in (today - timedelta(days=1), today)
            if day.weekday() in self.days
        ]


def read_schedule(window: Maintenance) -> Schedule:
    """Parses a window's times. Raises ValueError with the option and the expected form."""
    try:
        zone = ZoneInfo(window.time_zone)
    except (OSError, ValueError, KeyError):
        raise ValueError(
            "there is no such time_zone; use a name such as Europe/Berlin or UTC"
        ) from None
    start, end = _as_text(window.start), _as_text(window.end)
    try:
        if window.days:
            days = frozenset(get_args(Day).index(day) for day in window.days)
            return Schedule(zone, days=days, times=(_time_of_day(start), _time_of_day(end)))
        once = _local_time(start, zone), _local_time(end, zone)
    except ValueError:
        form = '"22:00"' if window.days else '"2026-11-21 22:00" (or give `days`)'
        raise ValueError(f"start and end must be written as {form}") from None
    if once[1] <= once[0]:
        raise ValueError("it ends before it starts")
    return Schedule(zone, once=once)


def _time_of_day(text: str) -> time:
    parsed = time.fromisoformat(text)
    if parsed.tzinfo is not None:
        raise ValueError
    return parsed


def _local_time(text: str, zone: ZoneInfo) -> datetime:
    if len(text) <= len("2026-11-21"):
        raise ValueError
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo is None else parsed.astimezone(zone).replace(tzinfo=None)


def _as_text(value: Any) -> str:
    """The value as written. YAML reads an unquoted 22:00 as 1320 and a date as a datetime."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 24 * 60:
        return f"{value // 60:02}:{value % 60:02}"
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
