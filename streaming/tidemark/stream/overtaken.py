"""How many records a batch of the query planned to read and did not find.

The event topic has no transactions and is not compacted, so every offset is a record. Those that
are missing were removed by retention, DeleteRecords or an unclean election before they were read.
"""

from __future__ import annotations

import msgspec

_Offsets = dict[str, dict[str, int]]


def overtaken_records(start: str | None, end: str | None, records: int) -> int:
    """By the JSON of Spark's Kafka offsets, and the records read. 0 where they do not say it."""
    try:
        before = msgspec.json.decode(start or "{}", type=_Offsets)
        after = msgspec.json.decode(end or "{}", type=_Offsets)
    except msgspec.DecodeError:
        return 0
    # A batch of a topic that was created again may end before its start: it plans nothing.
    planned = sum(
        max(0, offset - before[topic][partition])
        for topic, offsets in after.items()
        for partition, offset in offsets.items()
        if partition in before.get(topic, {})
    )
    return max(0, planned - records)
