"""Records as JSON lines, as CSV and as a table. Pure."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tidemark.core.text import csv_text, rfc3339, table
from tidemark.verbs.salvage.records import SavedRecord

# In this order in CSV, and as keys of the JSON form; new ones come last.
COLUMNS: Final = (
    *("topic", "partition", "offset", "leader_epoch", "timestamp_ms", "timestamp_type"),
    *("key", "key_encoding", "value", "value_encoding", "headers"),
    *("producer_id", "producer_epoch", "sequence", "transaction"),
)
HEADING: Final = (
    *("OFFSET", "EPOCH", "TIME", "PRODUCER", "SEQUENCE", "TRANSACTION", "HEADERS"),
    *("KEY", "VALUE"),
)
# What a table shows of a key and of a value.
MAX_CELL: Final = 40
_RIGHT: Final = (0, 1, 3, 4, 6)


def json_line(record: SavedRecord, *, text: bool) -> bytes:
    """One JSON object. Headers are [name, value, encoding]; null is absent or unknown."""
    return msgspec.json.encode(_document(record, text=text))


def csv_line(record: SavedRecord, *, text: bool) -> str:
    """One line with its end. Unknown values are empty, and headers JSON."""
    document = _document(record, text=text)
    document["headers"] = msgspec.json.encode(document["headers"]).decode()
    return csv_text([[document[name] for name in COLUMNS]], exact=not text)


def table_lines(records: Sequence[SavedRecord]) -> list[str]:
    """Aligned columns; of keys and values the beginning, with escapes for what does not print."""
    return table([HEADING, *map(_row, records)], _RIGHT)


def encoded(data: bytes | None, *, text: bool) -> tuple[str | None, str | None]:
    """Bytes as a string, and how: `text` where they are UTF-8 and text is wanted, else base64."""
    if data is None:
        return None, None
    if text:
        try:
            return data.decode(), "text"
        except UnicodeDecodeError:
            pass
    return base64.b64encode(data).decode(), "base64"


def _document(record: SavedRecord, *, text: bool) -> dict[str, Any]:
    key, key_encoding = encoded(record.key, text=text)
    value, value_encoding = encoded(record.value, text=text)
    found = record._asdict() | {
        "key": key,
        "key_encoding": key_encoding,
        "value": value,
        "value_encoding": value_encoding,
        "headers": [[name, *encoded(data, text=text)] for name, data in record.headers],
    }
    return {name: found[name] for name in COLUMNS}


def _row(record: SavedRecord) -> tuple[str, ...]:
    time = "?" if record.timestamp_ms is None else rfc3339(record.timestamp_ms / 1000)
    producer = "-" if record.producer_id is None else str(record.producer_id)
    return (
        str(record.offset),
        "?" if record.leader_epoch is None else str(record.leader_epoch),
        time,
        producer,
        "-" if record.sequence is None else str(record.sequence),
        record.transaction or "-",
        str(len(record.headers)),
        _cell(record.key),
        _cell(record.value),
    )


def _cell(data: bytes | None) -> str:
    """`null`, or the beginning as a quoted string; control characters never reach a terminal."""
    if data is None:
        return "null"
    shown = data[:MAX_CELL].decode(errors="backslashreplace")
    quoted = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    return f'"{quoted}"' + (f" … {len(data):,} bytes" if len(data) > MAX_CELL else "")
