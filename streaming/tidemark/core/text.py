"""Times, durations, counts and tables as text: one form of each for every verb, page and alert."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

# The last second of the year 9999, in Unix seconds: the largest time that a datetime holds.
LAST_SECOND: Final = 253402300799.0
_HOSTS_NONE: Final = "does not host this partition"
_ANSWERS: Final = {
    "NOT_LEADER_OR_FOLLOWER": _HOSTS_NONE,
    "UNKNOWN_TOPIC_OR_PARTITION": _HOSTS_NONE,
    "REPLICA_NOT_AVAILABLE": _HOSTS_NONE,
    "UNKNOWN_TOPIC_ID": "does not know this topic",
    "INCONSISTENT_TOPIC_ID": "hosts a deleted topic of this name",
    "KAFKA_STORAGE_ERROR": "cannot use the disk of this partition",
    "FENCED_LEADER_EPOCH": "knows a later leader epoch",
    "UNKNOWN_LEADER_EPOCH": "does not know the leader epoch yet",
}
# With one of these begins what spreadsheets compute.
_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
_UNITS: Final = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


def rfc3339(seconds: float) -> str:
    """`2026-11-21T09:47:01.736Z`. A time outside the calendar becomes the nearest inside it."""
    moment = datetime.fromtimestamp(min(max(seconds, 0.0), LAST_SECOND), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc(seconds: float) -> str:
    """`2026-11-21 09:47:01.736`, UTC: the form for a column of times."""
    return rfc3339(seconds)[:-1].replace("T", " ")


def duration(milliseconds: float) -> str:
    """`350 ms`, `2.3 s`, `4 min 5 s`, `3 h 10 min`, `2 d 4 h`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    seconds = int(min(milliseconds, 1e14) // 1000)
    size, unit, below, smaller = next(row for row in _UNITS if seconds >= row[0])
    rest = seconds % size // below
    return f"{seconds // size} {unit}" + (f" {rest} {smaller}" if rest else "")


def known(value: object) -> str:
    """A value as text; `?` where it is unknown."""
    return "?" if value is None else str(value)


def counted(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def printable(text: str) -> str:
    """With JSON's escapes for what a terminal interprets: controls, line ends, marks of direction.

    As a separator and a format character do not print either, they are escaped too.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """As `printable`, line by line."""
    return "\n".join(map(printable, text.split("\n")))


def has_control_character(text: str) -> bool:
    """Whether it has one of C0 or C1: NUL, a tab, a line end, an escape."""
    return any(unicodedata.category(character) == "Cc" for character in text)


def table(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Rows of equal length as lines, in columns; those in `right` are flush right."""
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def csv_text(rows: Iterable[Iterable[object]], *, exact: bool = False) -> str:
    """Rows as CSV. None is empty. Unless `exact`, what spreadsheets compute begins with '."""
    out = io.StringIO()
    quoted = (
        [
            f"'{each}" if isinstance(each, str) and each.startswith(_FORMULAS) else each
            for each in row
        ]
        for row in rows
    )
    csv.writer(out, lineterminator="\n").writerows(rows if exact else quoted)
    return out.getvalue()


def is_answer(error: str) -> bool:
    """Whether a replica's error came from its broker: one of Kafka's protocol, by its name."""
    return error.isupper()


def answer_text(error: str) -> str:
    """What a replica's error says of its broker."""
    if error in _ANSWERS:
        return f"answers, and {_ANSWERS[error]}"
    return "answers with an error" if is_answer(error) else "does not answer"
