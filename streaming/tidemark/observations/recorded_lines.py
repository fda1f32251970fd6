"""Lines of recorded events, from files or a pipe, gzipped or not, and the reducer over them.

At their end are the views, for verbs that judge a recording instead of a live cluster.

Every line is read or reported with the reason why it cannot be, and reading continues after it.
"""

from __future__ import annotations

import gzip
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from tidemark.command_line.options import require_one
from tidemark.command_line.output import echo
from tidemark.core.codec import MAX_RECORD_BYTES
from tidemark.core.errors import ConfigError, TidemarkError, WireError
from tidemark.core.records import Alert, DeadLetter, Record, decode_record
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.cluster_views import ClusterViews, CompletingFold
from tidemark.reduce.group import Fold
from tidemark.reduce.rows import Destination, RawRecord, Row, dead_letter_row

STDIN: Final = "-"
# Makes a recording.
RECORD: Final = "tidemark collect --to - --passes 60 > events.jsonl"
GZIP_MAGIC: Final = b"\x1f\x8b"
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
PROGRESS_SECONDS: Final = 5.0


class Line(NamedTuple):
    """One line without its end. With a `fault` it is unreadable and `data` is its beginning."""

    # The index of the source.
    source: int
    # Counted from 1.
    number: int
    data: bytes
    fault: str | None = None


def check_sources(sources: Sequence[str]) -> None:
    """Raises ConfigError for a file that cannot be opened, or where `-` is given twice."""
    if sources.count(STDIN) > 1:
        raise ConfigError("standard input can be read only once: give - a single time.")
    for source in sources:
        try:
            if source != STDIN:
                Path(source).open("rb").close()
        except OSError as error:
            raise ConfigError(
                f"cannot read {source or 'a file without a name'}: {error.strerror}. Give a file "
                "with one batch per line, gzipped or not, or - for standard input."
            ) from None


def read_lines(
    sources: Sequence[str], report: Callable[[str], object] | None = None
) -> Iterator[Line]:
    """The lines of all sources in order, without empty ones.

    `report` gets the progress every few seconds. A pipe has none: its end is unknown.
    """
    files = [Path(source) for source in sources if source != STDIN]
    if len(files) < len(sources) or not all(file.is_file() for file in files):
        report = None
    sizes = [file.stat().st_size for file in files]
    report_at = time.monotonic() + PROGRESS_SECONDS
    for index, source in enumerate(sources):
        with ExitStack() as stack:
            raw: Any = (
                sys.stdin.buffer
                if source == STDIN
                else stack.enter_context(Path(source).open("rb"))
            )
            for line in _read_source(raw, index):
                if line.data or line.fault:
                    yield line
                if report and line.number % 64 == 0 and time.monotonic() >= report_at:
                    report_at = time.monotonic() + PROGRESS_SECONDS
                    percent = 100 * (sum(sizes[:index]) + raw.tell()) // sum(sizes)
                    report(f"{source}: line {line.number}, {percent} % of all")


def unreadable(source: str, number: int, field: str, reason: object) -> str:
    """Where a line could not be read, and why. `field` is a JSON path, $ for the whole line."""
    where = "" if field == "$" else f", {field}"
    return f"unreadable  {source} line {number}{where}: {reason}"


def _read_source(raw: Any, source: int) -> Iterator[Line]:
    stream: Any = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == GZIP_MAGIC else raw
    number = 0
    try:
        for number, (data, fault) in enumerate(_bounded_lines(stream), 1):
            # Editors and shells of Windows write a byte order mark at the start of a file.
            content = data.removeprefix(BYTE_ORDER_MARK) if number == 1 else data
            yield Line(source, number, content, fault)
    except EOFError:
        yield Line(source, number + 1, b"", "the gzip stream ends early")
    except (OSError, zlib.error) as error:
        yield Line(source, number + 1, b"", f"it cannot be read on: {error}")


def _bounded_lines(stream: IO[bytes]) -> Iterator[tuple[bytes, str | None]]:
    """Lines up to the maximum size of a record; of a longer one the beginning, with a fault."""
    while data := stream.readline(MAX_RECORD_BYTES + 1):
        if len(data) <= MAX_RECORD_BYTES or data.endswith(b"\n"):
            yield data.strip(), None
            continue
        length = len(data)
        while (rest := stream.readline(MAX_RECORD_BYTES)) and not rest.endswith(b"\n"):
            length += len(rest)
        length += len(rest.rstrip(b"\n"))
        yield data, f"the line has {length} bytes, more than the {MAX_RECORD_BYTES} a reader takes"


class LineReducer:
    """Reduces line by line. In dead letters `partition` is the source and `offset` the line - 1."""

    def __init__(self, detection: Detection, fold: Fold | None = None) -> None:
        self._fold = fold or CompletingFold(detection)
        # Of lines: whether there was one, and whether one could be read.
        self._noted = self._readable = False
        # Of the first line that could not be read: where, and why.
        self._first: DeadLetter | None = None

    def reduce(self, line: Line) -> list[Row]:
        """The rows to publish after a line."""
        record = RawRecord(line.source, line.number - 1, 0.0, line.data)
        if line.fault is None:
            self._fold.record(record)
            rows, self._fold.rows = self._fold.rows, []
        else:
            rows = [dead_letter_row(record, WireError(line.fault), line.data)]
        is_dead = bool(rows) and all(row.destination == "dead_letters" for row in rows)
        self.note(readable=not is_dead)
        if is_dead and self._first is None:
            letter = decode_record(rows[0].value or b"")
            self._first = letter if isinstance(letter, DeadLetter) else None
        return rows

    def note(self, *, readable: bool) -> None:
        """Remembers whether a line could be read, also one that does not go into the reducer."""
        self._noted = True
        self._readable |= readable

    def check_readable(self, sources: Sequence[str]) -> None:
        """Raises TidemarkError where there were lines, and none of them could be read."""
        if self._noted and not self._readable:
            names = ["standard input" if name == STDIN else name for name in sources]
            first = self._first
            reason = "" if first is None else f"Line {first.offset + 1}: {first.reason}. "
            raise TidemarkError(
                f"no line of {', '.join(names)} can be read. {reason}Give a file with one batch of "
                f"events per line, such as `{RECORD}` writes."
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


def read_recording(
    source: str, detection: Detection, verb: str, name: str | None = None
) -> tuple[ClusterViews, str]:
    """The views at the end of a recording, and the cluster with this name, or the only one.

    Reports unreadable lines on standard error. Raises ConfigError where it has no such cluster.
    """
    check_sources([source])
    found = ClusterViews(detection)
    reducer = LineReducer(detection, found.fold)
    for line in read_lines([source]):
        reducer.alerts(line, [source], lambda text: echo(f"{verb}: {text}", err=True))
    return found, choose_recorded(found.clusters, name, source)


def choose_recorded(clusters: list[str], name: str | None, source: str) -> str:
    """The cluster with this name, or the only one. Raises ConfigError."""
    if not clusters:
        raise ConfigError(f"{source} holds no pass over a cluster; record one with `{RECORD}`.")
    if name is not None and name not in clusters:
        raise ConfigError(f"no cluster is called `{name}`; there are {', '.join(clusters)}.")
    if name is None:
        require_one(clusters)
    return name or clusters[0]
