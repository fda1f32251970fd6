"""Why the query failed, in one line with the way out: a damaged checkpoint does not heal.

The exceptions of Spark's JVM say it: what each one says, and what the code that threw it was doing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tidemark.core.errors import TidemarkError
from tidemark.stream.session import first_line
from tidemark.stream.spark_internals import (
    CHECKPOINT_READERS,
    CHECKPOINT_WRITERS,
    java_exception,
    java_origin,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

MAX_CAUSES: Final = 20
# From the innermost frame. The code that reads a checkpoint is within 25 of it.
MAX_FRAMES: Final = 60

# Spark's files in a checkpoint.
_FILE: Final = re.compile(
    r"[^\s'\"()\[\]]*/(?:state/\d+/\d+/(?:_metadata/)?[\w.-]+|(?:offsets|commits)/\d+"
    r"|metadata(?![\w/-])|sources/\d+/\d+)"
)
# Failures of the storage and not of what it holds: the next start may find it well.
_STORAGE: Final = re.compile(
    r"ConnectException|SocketTimeout|SocketException|UnknownHost|NoRouteToHost|ClosedChannel"
    r"|SSLException|SSLHandshake|AccessControlException|AccessDenied|Permission denied"
    r"|Interrupted(?:IO)?Exception|SafeModeException|StandbyException|Too many open files"
    r"|OutOfMemoryError|CANNOT_WRITE_STATE_STORE"
)
_FULL: Final = re.compile(r"No space left on device|Disk quota exceeded|DSQuotaExceeded")
_CHECKPOINT: Final = re.compile(
    r"CANNOT_LOAD_STATE_STORE|CANNOT_READ_(?:DELTA|SNAPSHOT)|log file|streaming metadata"
    r"|stream metadata|state store"
)
# Nothing else that a query reads is JSON. The exception names no file.
_JSON: Final = re.compile(r"com\.fasterxml\.jackson\.|org\.json4s\.|Expected e\.g\. \{\"topicA\"")
# A batch that another process has written, or that is there although its offsets are gone.
_WRITTEN_TWICE: Final = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY")
# A file that is gone is damage, also where a server says so.
_GONE: Final = re.compile(r"FileNotFoundException|NoSuchFileException")
# Frames of code that waits for the network, or writes: no damaged file was read.
_NETWORK: Final = re.compile(
    r"(?:java\.base/)?(?:java\.net|javax\.net|sun\.security\.ssl|sun\.nio\.ch\.(?:Nio)?Socket\w+"
    r"|org\.apache\.kafka|org\.apache\.http|org\.apache\.hadoop\.(?:ipc|net)|io\.netty|okhttp3"
    r"|com\.amazonaws|software\.amazon|com\.google\.(?:cloud|api)|com\.(?:microsoft\.)?azure)\."
)
CONTINUES: Final = "It continues from its checkpoint when started again."
JVM_ENDED: Final = (
    "Spark's JVM ended (killed, or out of memory? then raise spark.driver.memory in "
    "stream.spark). The query continues from its checkpoint when started again."
)


class Cause(NamedTuple):
    """A Java exception: `text` is its class and message, `frames` its stack, innermost first."""

    text: str
    # As java.lang.StackTraceElement writes them: package.Class.method(File.scala:12).
    frames: tuple[str, ...] = ()


def query_causes(query: StreamingQuery) -> list[Cause]:
    """The exception of a query that failed and its causes, outermost first; [] without one.

    Raises Py4JError.
    """
    causes = _chain(java_exception(query))
    if causes:
        return causes
    failure = query.exception()
    return [] if failure is None else [Cause(str(failure))]


def error_causes(error: Exception) -> list[Cause]:
    """The causes of an error of PySpark or py4j, outermost first. Raises Py4JError."""
    return _chain(java_origin(error)) or [Cause(str(error))]


def _chain(exception: Any) -> list[Cause]:
    found: list[Cause] = []
    while exception is not None and len(found) < MAX_CAUSES:
        frames = islice(exception.getStackTrace(), MAX_FRAMES)
        found.append(
            Cause(str(exception.toString()), tuple(str(frame.toString()) for frame in frames))
        )
        exception = exception.getCause()
    return found


def describe_failure(causes: Sequence[Cause], checkpoint: str) -> str:
    """The causes of a failure, the first one outermost, as a sentence and its cure."""
    # Without the query's plan, which names the checkpoint, topics and options.
    text = "\n".join(cause.text.partition("\n=== Streaming Query ===")[0] for cause in causes)
    reason = first_line(RuntimeError(causes[-1].text)) if causes else "unknown"
    if _FULL.search(text):
        return (
            f"the query failed: no space is left ({reason}). Free space for {checkpoint} and "
            f"spark.local.dir. {CONTINUES}"
        )
    way_out = (
        f"restore the whole folder {checkpoint} from a copy, or "
        "set stream.checkpoint to a new folder. The state is then built again from the events "
        "that the topic still holds, and an alert that began within them keeps its id."
    )
    if _WRITTEN_TWICE.search(text):
        return (
            f"another stream uses the checkpoint {checkpoint}, or a file in its offsets is gone: "
            f"{reason}. Stop the other stream; if there is none, {way_out}"
        )
    place = _damaged_place(causes, text, checkpoint)
    if place is None:
        named = first_line(RuntimeError(text))
        return f"the query failed: {named}. {CONTINUES}"
    return f"the checkpoint is damaged: {place}: {reason}. Every start ends here: {way_out}"


def _damaged_place(causes: Sequence[Cause], text: str, checkpoint: str) -> str | None:
    """The damaged file, or where it is; None: the causes do not show damage."""
    elsewhere, read = _innermost_work(causes)
    if elsewhere or _STORAGE.search(text):
        return None
    # Not those of RocksDB's copy in a temporary folder.
    inside = f"/{checkpoint.rstrip('/').rpartition('/')[2]}/"
    for file in _FILE.findall(text):
        if inside in file:
            return str(file)
    if read is not None:
        return read.format(checkpoint)
    if _JSON.search(text):
        return f"metadata, or a file in offsets, commits or sources, in {checkpoint}"
    return f"a file in {checkpoint}/state" if _CHECKPOINT.search(text) else None


def _innermost_work(causes: Sequence[Cause]) -> tuple[bool, str | None]:
    """What failed: (whether it was no reading of the checkpoint, what was read).

    Many exceptions of a damaged file name no file, as a bare EOFException does. The same one
    comes from a connection that was closed. The frame nearest to the failure decides.
    """
    for cause in reversed(causes):
        gone = _GONE.search(cause.text) is not None
        for frame in cause.frames:
            if CHECKPOINT_WRITERS.search(frame) or (not gone and _NETWORK.match(frame)):
                return True, None
            for reader, place in CHECKPOINT_READERS:
                if reader.search(frame):
                    return False, place
    return False, None


@contextmanager
def spark_errors(checkpoint: str) -> Iterator[None]:
    """Makes one line of what Spark raises. Raises TidemarkError.

    PySpark has types of its own for few Java exceptions; the others, like the IllegalStateException
    of a context that has lost its master, reach the caller as py4j's.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            raise TidemarkError(describe_failure(error_causes(error), checkpoint)) from None
    except (Py4JError, ConnectionError):
        # The JVM does not answer any more, or closed the connection in an answer.
        raise TidemarkError(JVM_ENDED) from None
