"""The evidence of an alert as text, within bounds: it comes from a topic and can hold anything."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from tidemark_exporters.evidence import ranges
from tidemark_exporters.pages.text import UNKNOWN, counted, duration, utc_time

# Shown of one alert: facts, and characters of each.
MAX_FACTS: Final = 64
MAX_CHARACTERS: Final = 2_000
MAX_NAME: Final = 80
MAX_ROWS: Final = 100
# Words of a fact's name that are not written in lower case.
_ABBREVIATIONS: Final = {"isr": "ISR", "elr": "ELR"}


class LostRange(NamedTuple):
    """The lost offsets [start, end)."""

    start: int
    end: int
    proven: bool

    @property
    def text(self) -> str:
        records = self.end - self.start
        offsets = f"offsets {self.start} to {self.end - 1}"
        return f"{offsets if records > 1 else f'offset {self.start}'}, {counted(records, 'record')}"


def lost_ranges(evidence: dict[str, Any]) -> list[LostRange]:
    """Proven ranges, then ranges that are possibly lost too."""
    return [
        LostRange(start, end, proven=kind == "proven")
        for kind in ("proven", "exposed")
        for start, end in ranges(evidence.get(kind))
    ]


def written_between(evidence: dict[str, Any]) -> str | None:
    """When the lost records were written; None: unknown."""
    bounds = evidence.get("written_between")
    if not isinstance(bounds, list | tuple) or len(bounds) != 2:
        return None
    named = zip(("after", "by"), bounds, strict=True)
    return " and ".join(f"{w} {utc_time(at)}" for w, at in named if at is not None) or None


def evidence_facts(evidence: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, text) of each fact."""
    shown = [
        (_fact_name(key), _clipped(_fact_text(key, value)))
        for key, value in list(evidence.items())[:MAX_FACTS]
    ]
    left = len(evidence) - len(shown)
    return [*shown, ("…", f"{left} more")] if left > 0 else shown


def _fact_name(key: str) -> str:
    words = key.removesuffix("_ms").split("_")
    name = " ".join(_ABBREVIATIONS.get(word, word) for word in words if word)
    return _clipped(name[:1].upper() + name[1:] or "?", MAX_NAME)


def _clipped(text: str, most: int = MAX_CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _fact_text(key: str, value: Any) -> str:
    match value:
        case None:
            return UNKNOWN
        case bool():
            return "yes" if value else "no"
        case _ if key in {"proven", "exposed"} and ranges(value):
            lost = [LostRange(start, end, proven=True) for start, end in ranges(value)]
            return "; ".join(f"[{each.start}, {each.end}): {each.text}" for each in lost)
        case _ if key == "written_between":
            return written_between({key: value}) or UNKNOWN
        # An integer is where something was cut: an offset.
        case _ if key.endswith("_at") and not isinstance(value, int):
            return ", then ".join(map(utc_time, value if isinstance(value, list) else [value]))
        case int() | float() if key.endswith("_ms"):
            return duration(value)
        case list() if key.startswith("lineage"):
            return _lineage(value)
        case list() if all(isinstance(each, int | str) for each in value):
            return ", ".join(map(str, value)) or "none"
        case list() if all(isinstance(each, list) for each in value):
            return "; ".join(map(_row, value[:MAX_ROWS])) or "none"
        case str():
            return value
    return _json(value)


def _lineage(value: list[Any]) -> str:
    if not all(isinstance(each, list) and len(each) == 2 for each in value):
        return _json(value)
    return ", ".join(f"epoch {epoch} ends at {end}" for epoch, end in value) or "no epochs"


def _row(cells: list[Any]) -> str:
    """The cells of one row. A float of the size of a Unix time is a time."""
    return " · ".join(
        utc_time(cell) if isinstance(cell, float) and cell > 1e9 else str(cell) for cell in cells
    )


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        return UNKNOWN
