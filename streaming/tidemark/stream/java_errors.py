"""The exceptions of Spark's JVM: what each one says, and what the code that threw it was doing."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tidemark.stream.spark_internals import java_exception, java_origin

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

MAX_CAUSES: Final = 20
# From the innermost frame. The code that reads a checkpoint is within 25 of it.
MAX_FRAMES: Final = 60


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
