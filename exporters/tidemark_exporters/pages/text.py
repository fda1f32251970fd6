"""Figures, times and evidence as words. Everything here is plain text; the templates escape it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec

from tidemark_exporters.evidence import ranges

UNKNOWN: Final = "unknown"
# Of one alert's evidence: facts shown, and characters of each.
MAX_FACTS: Final = 64
MAX_CHARACTERS: Final = 2_000
_KEYS: Final = {"isr": "ISR", "ms": "ms", "elr": "ELR"}


def count(value: float | None) -> str:
    """12,345; unknown stays a word."""
    if value is None:
        return UNKNOWN
    # As a float a large whole number would lose its last digits.
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"


def offset(value: int | None) -> str:
    """Without separators: offsets are copied into other tools."""
    return UNKNOWN if value is None else str(value)


def members(brokers: list[int] | None) -> str:
    return UNKNOWN if brokers is None else ", ".join(map(str, brokers)) or "none"


def duration(milliseconds: float | None) -> str:
    """350 ms, 2.3 s, 4 min 5 s, 3 h 10 min, 2 d 4 h."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    seconds = int(min(milliseconds, 1e14) // 1000)
    for size, unit, below, smaller in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= size:
            rest = seconds % size // below
            return f"{seconds // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return UNKNOWN


def moment(at: float | None) -> str:
    """2027-01-15 08:00:00 UTC; what is no time of this age is unknown."""
    stamp = _datetime(at)
    return UNKNOWN if stamp is None else stamp.strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(at: float | None) -> str:
    stamp = _datetime(at)
    return "" if stamp is None else stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def age(at: float | None, now: float) -> str:
    """3 s ago; clocks differ, so a little ahead is now."""
    if at is None:
        return UNKNOWN
    seconds = max(0.0, now - at)
    return f"{seconds:.0f} s ago" if seconds < 59.5 else f"{duration(seconds * 1000)} ago"


def _datetime(at: Any) -> datetime | None:
    try:
        return datetime.fromtimestamp(at, tz=UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def address(path: str, **parameters: object) -> str:
    """A path with a query; what is null is left out. Relative, so that it works below any prefix."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given, errors='replace')}" if given else path


def web_address(text: str) -> str | None:
    """The text when it is an address that a link may lead to, else None."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return (
        text
        if parts.scheme in {"http", "https"}
        and parts.netloc
        and text.isprintable()
        and " " not in text
        else None
    )


class Lost(NamedTuple):
    """A range of lost offsets [start, end)."""

    start: int
    end: int
    proven: bool

    @property
    def words(self) -> str:
        records = self.end - self.start
        which = (
            f"offset {self.start}" if records == 1 else f"offsets {self.start} to {self.end - 1}"
        )
        return f"{which}, {records:,} record{'s' if records > 1 else ''}"


def lost_ranges(evidence: dict[str, Any]) -> list[Lost]:
    """What is proven gone, then what may be gone too."""
    return [
        Lost(*pair, proven=kind == "proven")
        for kind in ("proven", "exposed")
        for pair in ranges(evidence.get(kind))
    ]


def written_between(evidence: dict[str, Any]) -> str | None:
    """When the lost records were written, as far as it is known."""
    bounds = evidence.get("written_between")
    if not isinstance(bounds, list | tuple) or len(bounds) != 2:
        return None
    after, by = (moment(bound) if bound is not None else None for bound in bounds)
    return (
        " and ".join(words for words in (after and f"after {after}", by and f"by {by}") if words)
        or None
    )


def facts(evidence: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, words) of each fact. Evidence comes off a topic: what it holds may be anything, and is shown in bounds."""
    shown = [
        (name_of(key), _clipped(_words(key, value)))
        for key, value in list(evidence.items())[:MAX_FACTS]
    ]
    left = len(evidence) - len(shown)
    return [*shown, ("…", f"{left} more")] if left > 0 else shown


def name_of(key: str) -> str:
    words = [_KEYS.get(word, word) for word in key.removesuffix("_ms").split("_") if word]
    text = " ".join(words)
    return _clipped(text[:1].upper() + text[1:] or "?", 80)


def _clipped(text: str, most: int = MAX_CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _words(key: str, value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key in {"proven", "exposed"} and ranges(value):
        return "; ".join(
            f"[{start}, {end}): {Lost(start, end, proven=True).words}"
            for start, end in ranges(value)
        )
    if key == "written_between":
        return written_between({key: value}) or UNKNOWN
    if key.endswith("_at"):
        return ", then ".join(
            moment(each) for each in (value if isinstance(value, list) else [value])
        )
    if key.endswith("_ms") and isinstance(value, int | float):
        return duration(value)
    if key.startswith("lineage") and isinstance(value, list):
        return _lineage(value)
    if isinstance(value, list) and all(isinstance(each, int | str) for each in value):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, list) and all(isinstance(each, list) for each in value):
        return "; ".join(_row(each) for each in value[:100]) or "none"
    return value if isinstance(value, str) else _json(value)


def _lineage(value: list[Any]) -> str:
    if not all(isinstance(each, list) and len(each) == 2 for each in value):
        return _json(value)
    return ", ".join(f"epoch {epoch} ends at {end}" for epoch, end in value) or "no epochs"


def _row(cells: list[Any]) -> str:
    """Cells as words; a float of this age is a time."""
    return " · ".join(
        moment(cell) if isinstance(cell, float) and cell > 1e9 else str(cell) for cell in cells
    )


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        return UNKNOWN


# Anything that would move the text around it or hide what it says: controls, bidirectional overrides, lone surrogates.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def visible(text: object) -> str:
    """Text from a topic as it may stand on a page: what cannot be seen is made visible."""
    return _HIDDEN.sub("\ufffd", str(text))
