"""The reducer over recorded lines instead of Kafka records, with all partitions in one group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tidemark.core.errors import TidemarkError, WireError
from tidemark.core.records import Alert, DeadLetter, Record, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.observations.recorded_lines import STDIN, Line, unreadable
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.rows import Destination, RawRecord, Row, dead_letter_row


class LineReducer:
    """Reduces line by line. In dead letters `partition` is the source and `offset` the line - 1."""

    def __init__(self, detection: Detection, fold: Fold | None = None) -> None:
        self._fold = fold or Fold(GroupState(), detection, 0, 1)
        # Of lines: whether there was one, and whether one could be read.
        self._noted = self._readable = False

    def reduce(self, line: Line) -> list[Row]:
        """The rows to publish after a line."""
        record = RawRecord(line.source, line.number - 1, 0.0, line.data)
        if line.fault is not None:
            self.note(readable=False)
            return [dead_letter_row(record, WireError(line.fault), line.data)]
        self._fold.record(record)
        rows, self._fold.rows = self._fold.rows, []
        is_dead = bool(rows) and all(row.destination == "dead_letters" for row in rows)
        self.note(readable=not is_dead)
        return rows

    def note(self, *, readable: bool) -> None:
        """Remembers whether a line could be read, also one that does not go into the reducer."""
        self._noted = True
        self._readable |= readable

    def check_readable(self, sources: Sequence[str]) -> None:
        """Raises TidemarkError where there were lines, and none of them could be read."""
        if self._noted and not self._readable:
            names = ("standard input" if name == STDIN else name for name in sources)
            raise TidemarkError(
                f"no line of {', '.join(names)} can be read. Give a file with one batch of events "
                "per line, such as `tidemark collect --to FILE` writes."
            )

    def records(self, line: Line, *destinations: Destination) -> Iterator[Record]:
        """The records for these destinations after a line, decoded, without tombstones."""
        for row in self.reduce(line):
            if row.destination in destinations and row.value is not None:
                yield decode_record(row.value)

    def alerts(
        self, line: Line, sources: Sequence[str], report: Callable[[str], object]
    ) -> list[Alert]:
        """The alerts after a line. `report` gets what of it cannot be read."""
        records = list(self.records(line, "alerts", "dead_letters"))
        for letter in records:
            if isinstance(letter, DeadLetter):
                report(unreadable_letter(letter, sources))
        return [record for record in records if isinstance(record, Alert)]


def unreadable_letter(letter: DeadLetter, sources: Sequence[str]) -> str:
    """Where and why a line, or an event in it, could not be read."""
    return unreadable(sources[letter.partition], letter.offset + 1, letter.field, letter.reason)
