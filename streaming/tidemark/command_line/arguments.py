"""Flags and arguments that several verbs read. A wrong value is one line, exit 2."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from tidemark.core.errors import ConfigError

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
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
