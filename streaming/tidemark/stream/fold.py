"""Runs on the executors: passes one group's records through the reducer, its rows to the sink.

A group is one Kafka partition of the event topic. Its state is one opaque binary value that only
the reducer reads. A batch that Spark repeats starts from the same state and gives the same rows.

The checkpoint stores the state compressed: Spark hands the whole state to Python and back in each
batch, and pickles it byte by byte, which costs more than to compress it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tidemark.core.errors import StateError
from tidemark.detect.default_thresholds import Detection
from tidemark.garbage_collector import collection_paused
from tidemark.reduce.group import fold_group
from tidemark.reduce.rows import MAX_ROW_BYTES, Row
from tidemark.settings import Topics
from tidemark.stream.batch_bounds import bounded_records

# The first byte.
COMPRESSED: Final = 2
# Then the size of the state, and a zstd frame.
_SIZE_BYTES: Final = 8
_START: Final = 1 + _SIZE_BYTES
# A value of Spark's has at most 2 GiB.
MAX_STATE_BYTES: Final = 2**31

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

STATE_SCHEMA: Final = "state binary"
ROW_SCHEMA: Final = "topic string, key binary, value binary"
# In one frame returned to Spark.
MAX_ROWS: Final = 2_000

FoldFunction = Callable[
    [tuple[Any, ...], Iterable["pd.DataFrame"], "GroupState"], Iterator["pd.DataFrame"]
]


def to_stored(state: bytes) -> bytes:
    """The state of a group as the checkpoint stores it."""
    frame = _codec().compress(state, asbytes=True)
    return b"".join((bytes((COMPRESSED,)), len(state).to_bytes(_SIZE_BYTES, "big"), frame))


def from_stored(stored: bytes | bytearray) -> bytes:
    """The inverse of `to_stored`. Raises StateError."""
    if not stored or stored[0] != COMPRESSED:
        raise StateError(f"its form is {bytes(stored[:1]).hex() or 'empty'}, not {COMPRESSED:02x}")
    size = int.from_bytes(stored[1:_START], "big")
    if len(stored) <= _START or size > MAX_STATE_BYTES:
        raise StateError(f"a compressed state of {len(stored)} bytes")
    try:
        state: bytes = _codec().decompress(stored[_START:], size, asbytes=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StateError(error) from None
    if len(state) != size:
        raise StateError(f"a compressed state of {size} bytes has {len(state)}")
    return state


def _codec() -> pa.Codec:
    return pa.Codec("zstd", compression_level=1)


def make_fold(
    detection: Detection, topics: Topics, max_row_bytes: int = MAX_ROW_BYTES
) -> FoldFunction:
    """The function that `applyInPandasWithState` calls once per group and batch."""
    groups = topics.partitions
    topic_of = {
        "partition_views": topics.partition_views,
        "alerts": topics.alerts,
        "dead_letters": topics.dead_letters,
    }

    def fold(
        key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        group = int(key[0])
        before = from_stored(state.get[0]) if state.exists else None
        records = bounded_records(frames)
        with collection_paused():
            after, rows = fold_group(before, records, detection, group, groups, max_row_bytes)
        if after != before or not state.exists:
            state.update((to_stored(after),))
        yield from to_frames(rows, topic_of)

    return fold


def to_frames(rows: list[Row], topic_of: dict[str, str]) -> Iterator[pd.DataFrame]:
    """Rows of the sink: each names its topic; a null value is a tombstone."""
    # The driver imports it beside the start of Java, see `start.import_packages`.
    import pandas as pd

    for start in range(0, len(rows), MAX_ROWS):
        part = rows[start : start + MAX_ROWS]
        yield pd.DataFrame(
            {
                "topic": [topic_of[row.destination] for row in part],
                "key": [row.key for row in part],
                "value": [row.value for row in part],
            }
        )
