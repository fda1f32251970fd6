"""What runs on the executors: the rows of one group, sorted by offset, through the reducer.

A group is one Kafka partition of the event topic. Its state is one opaque binary value that `core` alone reads. The
reducer drops what it folded before, so a batch that Spark runs again gives the same state and the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from tidemark.core.group import RawRecord, Row, fold_group
from tidemark.detect.thresholds import Detection
from tidemark.settings import Topics

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

STATE_SCHEMA: Final = "state binary"
ROW_SCHEMA: Final = "topic string, key binary, value binary"
# Of one frame that goes back to Spark.
MAX_ROWS: Final = 2_000

Fold = Callable[[tuple[Any, ...], Iterable[pd.DataFrame], "GroupState"], Iterator[pd.DataFrame]]


def make_fold(detection: Detection, topics: Topics) -> Fold:
    """The function that `applyInPandasWithState` calls once per group and batch."""
    groups = topics.partitions
    topic_of = {"views": topics.partition_views, "alerts": topics.alerts, "dead_letters": topics.dead_letters}

    def fold(key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        before = bytes(state.get[0]) if state.exists else None
        after, rows = fold_group(before, in_order(frames), detection, int(key[0]), groups)
        if after != before:
            state.update((after,))
        yield from to_frames(rows, topic_of)

    return fold


def in_order(frames: Iterable[pd.DataFrame]) -> list[RawRecord]:
    """The records of a group by offset; Spark hands them over in chunks and in no order."""
    records: list[RawRecord] = []
    for frame in frames:
        columns = (frame[name].tolist() for name in ("partition", "offset", "timestamp_ms", "value"))
        records += [RawRecord(*fields) for fields in zip(*columns, strict=True)]
    records.sort(key=lambda record: record.offset)
    return records


def to_frames(rows: list[Row], topic_of: dict[str, str]) -> Iterator[pd.DataFrame]:
    """Rows of the sink: each names its topic; a null value is a tombstone."""
    for start in range(0, len(rows), MAX_ROWS):
        part = rows[start : start + MAX_ROWS]
        yield pd.DataFrame(
            {
                "topic": [topic_of[row.destination] for row in part],
                "key": [row.key for row in part],
                "value": [row.value for row in part],
            }
        )
