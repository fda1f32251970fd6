"""The files of a broker, while it may replace them: one small file as a whole, or segments by size.

Of segments (LogFileUtils), `<base offset>.log` with `.index` (offset to position), `.timeindex`
(time to offset), and where there are transactions `.txnindex`, only names and sizes are read.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from tidemark.core.errors import TidemarkError

# Kafka replaces a file by an atomic rename, so that a reader finds the old or the new one. File
# systems without such a rename leave a moment without a file.
TRIES: Final = 3
RETRY_SECONDS: Final = 0.01

_SEGMENT: Final = re.compile(r"[0-9]{20}\.(log|index|timeindex|txnindex)")


class LogDirectoryError(TidemarkError):
    """A file or folder of a log directory that cannot be read: its path, the reason, the cure."""


class FileContent(NamedTuple):
    """A file's bytes, and when it was written (Unix seconds, by the clock of its host)."""

    data: bytes
    modified_at: float


def read_file(path: Path, limit: int, tries: int = TRIES) -> FileContent | None:
    """The content of a file; None where there is none. Raises LogDirectoryError."""
    for again in reversed(range(tries)):
        try:
            return _read(path, limit)
        except FileNotFoundError:
            if again:
                time.sleep(RETRY_SECONDS)
        except OSError as error:
            raise failure(path, error) from None
    return None


def failure(path: Path, error: OSError) -> LogDirectoryError:
    """The error for a path that the system refuses to read."""
    cure = "Check the disk."
    if isinstance(error, PermissionError):
        cure = "Run Tidemark as a user that may read the log directories."
    return LogDirectoryError(f"cannot read {path}: {error.strerror}. {cure}")


def _read(path: Path, limit: int) -> FileContent:
    # Opening a pipe must not wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise LogDirectoryError(f"{path} is not a file. Give a copy of a broker's log.dirs.")
        if found.st_size > limit:
            raise LogDirectoryError(
                f"{path} has {found.st_size} bytes, more than the {limit} of such a file. "
                "It is not one of Kafka's."
            )
        chunks, rest = [], limit + 1
        while rest > 0 and (chunk := os.read(descriptor, rest)):
            chunks.append(chunk)
            rest -= len(chunk)
        if rest <= 0:
            raise LogDirectoryError(f"{path} grew beyond {limit} bytes. It is not one of Kafka's.")
        return FileContent(b"".join(chunks), found.st_mtime)
    finally:
        os.close(descriptor)


class Segments(NamedTuple):
    """Number of segments, their bytes, and the bytes of their indexes."""

    segments: int
    log_bytes: int
    index_bytes: int


def read_segments(folder: Path) -> Segments:
    """The segments of a partition. Raises LogDirectoryError where the folder is not readable."""
    logs: list[int] = []
    indexes: list[int] = []
    try:
        for path in folder.iterdir():
            if match := _SEGMENT.fullmatch(path.name):
                # Unless the segment was deleted meanwhile.
                with suppress(FileNotFoundError):
                    (logs if match[1] == "log" else indexes).append(path.stat().st_size)
    except OSError as error:
        raise failure(folder, error) from None
    return Segments(len(logs), sum(logs), sum(indexes))
