"""Lines of recorded events, from files or a pipe, plain or gzipped. What cannot be read is named and the rest goes on."""

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
    """One line without its end. `fault` tells why it cannot be used at all; its bytes are then what was read of it."""

    source: int
    # Counted from 1.
    number: int
    data: bytes
    fault: str | None = None


def check_sources(sources: Sequence[str]) -> None:
    """Raises ConfigError for the first file that cannot be opened, and where standard input is named twice."""
    if sources.count(STDIN) > 1:
        raise ConfigError("standard input can be read once: give - a single time.")
    for source in sources:
        if source == STDIN:
            continue
        try:
            with Path(source).open("rb"):
                pass
        except OSError as error:
            raise ConfigError(
                f"cannot read {source}: {error.strerror}. Give a file of batches, one a line (gzipped or not), or - for standard input."
            ) from None


def read_lines(
    sources: Sequence[str], tell: Callable[[str], object] | None = None
) -> Iterator[Line]:
    """The lines of all sources in order, empty ones left out. `tell` is called every few seconds with how far it came."""
    progress = _Progress(sources, tell)
    for index, source in enumerate(sources):
        with ExitStack() as stack:
            raw: Any = (
                sys.stdin.buffer
                if source == STDIN
                else stack.enter_context(Path(source).open("rb"))
            )
            packed = raw.peek(2)[:2] == GZIP_MAGIC
            lines: Any = stack.enter_context(gzip.GzipFile(fileobj=raw)) if packed else raw
            number = 0
            try:
                for number, line in enumerate(_lines_of(lines, index), 1):
                    # Editors and shells of Windows begin files with it.
                    data = line.data.removeprefix(BYTE_ORDER_MARK) if number == 1 else line.data
                    if data or line.fault:
                        yield line._replace(number=number, data=data)
                    progress.at(source, raw, number)
            except (EOFError, OSError, zlib.error) as error:
                reason = (
                    "the gzip stream ends early"
                    if isinstance(error, EOFError)
                    else f"it cannot be read on: {error}"
                )
                yield Line(index, number + 1, b"", reason)
            progress.past(source)


def _lines_of(stream: IO[bytes], index: int) -> Iterator[Line]:
    """Lines of bounded length; of a longer one the beginning, with the fault."""
    while data := stream.readline(MAX_RECORD_BYTES + 1):
        if len(data) <= MAX_RECORD_BYTES or data.endswith(b"\n"):
            yield Line(index, 0, data.strip())
            continue
        length = len(data)
        while (rest := stream.readline(MAX_RECORD_BYTES)) and not rest.endswith(b"\n"):
            length += len(rest)
        length += len(rest.rstrip(b"\n"))
        yield Line(
            index,
            0,
            data,
            f"the line has {length} bytes, more than the {MAX_RECORD_BYTES} a reader takes",
        )


class _Progress:
    """Says how far a long reading of files came; a pipe has no end to measure against."""

    def __init__(self, sources: Sequence[str], tell: Callable[[str], object] | None) -> None:
        self._tell = tell if STDIN not in sources else None
        self._sizes = {source: Path(source).stat().st_size for source in sources if source != STDIN}
        self._total = max(sum(self._sizes.values()), 1)
        self._done = 0
        self._next = time.monotonic() + PROGRESS_SECONDS

    def at(self, source: str, raw: IO[bytes], number: int) -> None:
        if self._tell is None or number % 64 or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PROGRESS_SECONDS
        self._tell(
            f"{source}: line {number}, {100 * (self._done + raw.tell()) // self._total} % of all"
        )

    def past(self, source: str) -> None:
        self._done += self._sizes.get(source, 0)
