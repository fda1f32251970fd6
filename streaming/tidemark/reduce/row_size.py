"""The bound of a row: what is larger is cut by rule, and says so, or becomes a dead letter.

A record of Kafka's has a largest size, and the sink ends the query at a larger one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidemark.core.errors import WireError
from tidemark.core.records import Alert, OpenAlert, Record, View, decode_record, encode_record
from tidemark.reduce.rows import RawRecord, Row, dead_letter_row

# Of key and value, not compressed. Kafka's default of max.message.bytes is 1,048,588.
MAX_ROW_BYTES: Final = 1_000_000
# A dead letter fits in it, and most views do: a smaller bound is not tried.
LEAST_ROW_BYTES: Final = 125_000


def fitting(row: Row, record: RawRecord, bound: int = MAX_ROW_BYTES) -> Row:
    """The row, cut to the bound where it is larger. `record`: what it follows from.

    Of a view go, in this order and as far as needed, the JMX figures of nodes that are no brokers
    and the evidence of its open alerts; `cut` names them. Of an alert goes the evidence. Which
    brokers answer, leadership, replicas and alerts are never cut: a row that is still larger
    becomes a dead letter.
    """
    if _size(row) <= bound:
        return row
    assert row.value is not None
    try:
        content = decode_record(row.value)
    except WireError as unreadable:
        return dead_letter_row(record, unreadable, row.value)
    cut = row
    for _ in _cuts(content):
        cut = row._replace(value=encode_record(content))
        if _size(cut) <= bound:
            return cut
    key = row.key.decode(errors="replace")
    reason = f"a row of {row.destination} with the key {key} has {_size(row)} bytes, and cut by the"
    error = WireError(f"{reason} rules {_size(cut)}: the bound is {bound}")
    return dead_letter_row(record, error, row.value)


def _cuts(content: Record) -> Iterator[None]:
    """Cuts more of the content at each step."""
    if isinstance(content, Alert):
        _cut_evidence(content)
        yield
    elif isinstance(content, View):
        if content.jmx_of_nodes:
            content.jmx_of_nodes, content.cut = {}, ["jmx_of_nodes"]
            yield
        for alert in content.alerts:
            _cut_evidence(alert)
        content.cut.append("alerts.evidence")
        yield


def _size(row: Row) -> int:
    return len(row.key) + len(row.value or b"")


def _cut_evidence(alert: Alert | OpenAlert) -> None:
    alert.evidence = {"cut": True}
