"""Reads a query string. Whatever is wrong with it is told in one line."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

MAX_QUERY: Final = 4_096
MAX_FIELDS: Final = 32
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
MAX_OFFSET: Final = 2**63 - 1


class BadRequestError(Exception):
    """A parameter that cannot be: one line that names it and what it may be."""


class UnknownError(Exception):
    """A cluster, topic, partition, broker or path that is not there: one line that names it."""


class Paging(NamedTuple):
    page: int
    limit: int


class Query:
    """The parameters of a request. An empty one, as a form sends it, is one that was not given."""

    def __init__(self, raw: str, known: Collection[str]) -> None:
        """Raises BadRequestError for what is not in `known`, given twice, too long or no UTF-8."""
        if len(raw) > MAX_QUERY:
            raise BadRequestError(
                f"the query has {len(raw)} characters; at most {MAX_QUERY} are read."
            )
        try:
            pairs = parse_qsl(
                raw, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
            )
        except ValueError:
            raise BadRequestError(
                f"the query cannot be read: it needs UTF-8 and at most {MAX_FIELDS} parameters."
            ) from None
        self.given: dict[str, str] = {}
        for name, value in pairs:
            if name not in known:
                listed = ", ".join(known) if known else "none"
                raise BadRequestError(f"unknown parameter {quoted(name)}; there are: {listed}.")
            if name in self.given:
                raise BadRequestError(f"{name} is given twice.")
            if value:
                self.given[name] = value

    def text(self, name: str) -> str | None:
        return self.given.get(name)

    def needed(self, name: str) -> str:
        """Raises BadRequestError when it is not given."""
        value = self.text(name)
        if value is None:
            raise BadRequestError(f"{name} is missing.")
        return value

    def number(self, name: str, low: int = 0, high: int = MAX_OFFSET) -> int | None:
        """Raises BadRequestError when it is no whole number from `low` to `high`."""
        value = self.text(name)
        if value is None:
            return None
        if not (
            value.isascii() and value.isdecimal() and len(value) <= 19 and low <= int(value) <= high
        ):
            raise BadRequestError(
                f"{name} must be a whole number from {low} to {high}, not {quoted(value)}."
            )
        return int(value)

    def choice(self, name: str, choices: Collection[str]) -> str | None:
        """Raises BadRequestError when it is none of `choices`."""
        value = self.text(name)
        if value is not None and value not in choices:
            raise BadRequestError(
                f"{name} must be one of {', '.join(choices)}, not {quoted(value)}."
            )
        return value

    def paging(self) -> Paging:
        return Paging(
            self.number("page", 1, 1_000_000) or 1,
            self.number("limit", 1, MAX_LIMIT) or DEFAULT_LIMIT,
        )


def quoted(value: str) -> str:
    """A value as it can stand in one line."""
    shown = value if len(value) <= 60 else value[:59] + "…"
    return "`" + "".join(c if c.isprintable() else "�" for c in shown) + "`"
