"""Numbers, times and addresses as the pages show them. Plain text: the templates escape it."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlencode

from tidemark.core import text

UNKNOWN: Final = "unknown"
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def count(value: float | None) -> str:
    """`12,345`; null is unknown."""
    if value is None:
        return UNKNOWN
    # A float would lose the last digits of a large whole number.
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"


def counted(number: int, noun: str) -> str:
    """`1 record`, `12,345 records`: with separators, as every count on a page."""
    return text.counted(number, noun).replace(str(number), count(number), 1)


def size(value: int | None) -> str:
    """`512 B`, `1.5 GiB`; null is unknown."""
    if value is None:
        return UNKNOWN
    amount, unit = float(value), 0
    while amount >= 1024 and unit < len(_SIZES) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_SIZES[unit]}" if unit else f"{value} B"


def offset(value: int | None) -> str:
    """Without separators: offsets are copied into other tools."""
    return UNKNOWN if value is None else str(value)


def broker_list(brokers: list[int] | None) -> str:
    return UNKNOWN if brokers is None else ", ".join(map(str, brokers)) or "none"


def duration(milliseconds: float | None) -> str:
    return UNKNOWN if milliseconds is None else text.duration(milliseconds)


def utc_time(at: Any) -> str:
    """`2027-01-15 08:00:00 UTC`, to the second; anything that is not a time is unknown."""
    return f"{text.utc(at).partition('.')[0]} UTC" if _is_time(at) else UNKNOWN


def iso_time(at: Any) -> str:
    return text.rfc3339(at) if _is_time(at) else ""


def age(at: float | None, now: float) -> str:
    """`3 s ago`. Clocks differ: a time that is slightly ahead is `0 s ago`."""
    if at is None:
        return UNKNOWN
    seconds = max(0.0, now - at)
    return f"{seconds:.0f} s ago" if seconds < 59.5 else f"{duration(seconds * 1000)} ago"


def page_address(path: str, **parameters: object) -> str:
    """A path with a query, without null parameters. Relative: it works behind any prefix."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given, errors='replace')}" if given else path


# Characters that reorder or hide the text around them: controls, bidirectional overrides,
# invisible format characters, lone surrogates.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def visible(value: object) -> str:
    """Text from a topic, with every hidden character replaced by a visible one."""
    return _HIDDEN.sub("\ufffd", str(value))


def _is_time(at: Any) -> bool:
    return isinstance(at, int | float) and 0 <= at <= text.LAST_SECOND
