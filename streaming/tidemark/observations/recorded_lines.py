"""Lines of recorded events, from files or a pipe, gzipped or not.

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

from tidemark.core.codec import MAX_RECORD_BYTES
from tidemark.core.errors import ConfigError

STDIN: Final = "-"
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
                f"cannot read {source}: {error.strerror}. Give a file with one batch per line, "
                "gzipped or not, or - for standard input."
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
