"""The reducer over lines instead of Kafka records: one group that holds everything."""

from __future__ import annotations

from tidemark.core.errors import WireError
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.rows import RawRecord, Row, dead_letter_row
from tidemark.verbs.replay.reading import Line


class Replay:
    """Feeds lines to one fold. A dead letter's `partition` is the number of the source, its `offset` the line's, from 0."""

    def __init__(self, detection: Detection) -> None:
        self.fold = Fold(GroupState(), detection, 0, 1)

    def feed(self, line: Line) -> list[Row]:
        """The rows that a line gives."""
        record = RawRecord(line.source, line.number - 1, 0.0, line.data)
        if line.fault is not None:
            return [dead_letter_row(record, WireError(line.fault), line.data)]
        self.fold.record(record)
        rows, self.fold.rows = self.fold.rows, []
        return rows
