"""Reads a query string. Every error is one line that names the parameter and its valid values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import parse_qsl

MAX_QUERY: Final = 4_096
MAX_FIELDS: Final = 32
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
MAX_OFFSET: Final = 2**63 - 1


class BadRequestError(Exception):
    """A parameter that is not valid: one line that names it."""


class NotFoundError(Exception):
    """A cluster, topic, partition, broker or path that is not known: one line that names it."""


class Query:
    """The parameters of a request. An empty one, as a form sends it, counts as not given."""

    def __init__(self, raw: str, known: Collection[str]) -> None:
        """Raises BadRequestError for a parameter that is unknown, repeated or not UTF-8."""
        if len(raw) > MAX_QUERY:
            raise BadRequestError(
                f"the query string has {len(raw)} characters; the maximum is {MAX_QUERY}."
            )
        try:
            pairs = parse_qsl(
                raw, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
            )
        except ValueError:
            raise BadRequestError(
                f"the query string must be UTF-8 and have at most {MAX_FIELDS} parameters."
            ) from None
        self.given: dict[str, str] = {}
        for name, value in pairs:
            if name not in known:
                names = ", ".join(known) or "none"
                raise BadRequestError(
                    f"unknown parameter {quote(name)}; known parameters: {names}."
                )
            if name in self.given:
                raise BadRequestError(f"{name} is given twice.")
            if value:
                self.given[name] = value

    def required(self, name: str) -> str:
        """Raises BadRequestError when it is not given."""
        value = self.given.get(name)
        if value is None:
            raise BadRequestError(f"{name} is missing.")
        return value

    def required_number(self, name: str, high: int = MAX_OFFSET) -> int:
        """Raises BadRequestError when it is not given or not a whole number up to `high`."""
        self.required(name)
        return self.number(name, 0, high) or 0

    def number(self, name: str, low: int = 0, high: int = MAX_OFFSET) -> int | None:
        """Raises BadRequestError when it is not a whole number from `low` to `high`."""
        value = self.given.get(name)
        if value is None:
            return None
        is_number = value.isascii() and value.isdecimal() and len(value) <= 19
        if not is_number or not low <= int(value) <= high:
            raise BadRequestError(
                f"{name} must be a whole number from {low} to {high}, not {quote(value)}."
            )
        return int(value)

    def choice(self, name: str, choices: Collection[str]) -> str | None:
        """Raises BadRequestError when it is none of `choices`."""
        value = self.given.get(name)
        if value is not None and value not in choices:
            listed = ", ".join(choices)
            raise BadRequestError(f"{name} must be one of {listed}, not {quote(value)}.")
        return value

    def paging(self) -> tuple[int, int]:
        """(page, limit)."""
        page, limit = self.number("page", 1, 1_000_000), self.number("limit", 1, MAX_LIMIT)
        return page or 1, limit or DEFAULT_LIMIT


def quote(value: str) -> str:
    """A value as part of one line of text."""
    shown = value if len(value) <= 60 else value[:59] + "…"
    return "`" + "".join(c if c.isprintable() else "�" for c in shown) + "`"
