"""Flags and arguments that several verbs read. A wrong value is one line, exit 2."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from tidemark.core.errors import ConfigError

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PLACE: Final = re.compile(rf"({_TOPIC.pattern})(?::(\d{{1,9}}))?")
# Exit status of a verb that found what an operator looks for.
FINDING: Final = 3


class FiniteRange(click.FloatRange):
    """A number within both bounds. click's own range takes `nan`, which no bound excludes."""

    def __init__(self, minimum: float, maximum: float) -> None:
        super().__init__(minimum, maximum)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{number} is not in the range {self._describe_range()}.", param, ctx)
        return number


def topic_name(text: str) -> str:
    """The type of a topic's argument: the characters that Kafka allows."""
    if not _TOPIC.fullmatch(text):
        topic, _, partition = text.rpartition("/")
        is_place = _TOPIC.fullmatch(topic) and partition.isdecimal()
        allowed = "a name has letters, digits, `.`, `_` and `-`"
        cure = f"write {topic} {partition}" if is_place else allowed
        # click would drop the text of a ValueError.
        raise click.BadParameter(f"{text!r} is no topic; {cure}.")
    return text


def topic_or_partition(text: str) -> tuple[str, int | None]:
    """The type of an argument that names a topic, or one partition of it: `orders`, `orders:3`."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is no topic; write TOPIC or TOPIC:PARTITION.")
    return match[1], None if match[2] is None else int(match[2])


def parse_since(text: str, now: float, option: str = "--since") -> float:
    """Unix seconds of `24h`, `90m` or `7d` before `now`, or of an ISO 8601 time (default UTC)."""
    age = re.fullmatch(r"(\d{1,9})([smhd])", text)
    try:
        if age is not None:
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])}).total_seconds()
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{option} {text}: give an age (90m, 24h, 7d) or a time (2026-11-21T14:00:00Z)."
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
