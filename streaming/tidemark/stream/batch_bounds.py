"""The bounds of what one batch takes from Kafka: bytes of a record, and of a group's records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from tidemark.core.events import MAX_BYTES
from tidemark.reduce.rows import MAX_PAYLOAD, RawRecord

if TYPE_CHECKING:
    import pandas as pd

# Of a record; collectors write a quarter of it at most.
MAX_VALUE_BYTES: Final = 4 * MAX_BYTES
# Of a group in one batch. A batch at the default of stream.max_offsets_per_trigger, all of it in
# one Kafka partition, has less from collectors. A worker of much more would be killed.
MAX_GROUP_BYTES: Final = 2**30


def bounded_records(frames: Iterable[pd.DataFrame]) -> list[RawRecord]:
    """All records of a group in this batch, in no order: the reducer sorts them.

    What exceeds MAX_GROUP_BYTES is cut, and so becomes a dead letter.
    """
    records: list[RawRecord] = []
    read = 0
    for frame in frames:
        columns = zip(
            frame["partition"].tolist(),
            frame["offset"].tolist(),
            frame["timestamp_ms"].tolist(),
            frame["value"].tolist(),
            frame["size"].tolist(),
            strict=True,
        )
        for partition, offset, milliseconds, value, size in columns:
            read += size
            is_whole = size <= MAX_VALUE_BYTES and read <= MAX_GROUP_BYTES
            kept, whole = (value, None) if is_whole else ((value or b"")[:MAX_PAYLOAD], size)
            records.append(RawRecord(partition, offset, milliseconds / 1000, kept, whole))
    return records
