"""The exceptions of Spark's JVM: what each one says, and what the code that threw it was doing."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final, NamedTuple

MAX_CAUSES: Final = 20
# From the innermost frame. The code that reads a checkpoint is within 25 of it.
MAX_FRAMES: Final = 60


class Cause(NamedTuple):
    """A Java exception: `text` is its class and message, `frames` its stack, innermost first."""

    text: str
    # As java.lang.StackTraceElement writes them: package.Class.method(File.scala:12).
    frames: tuple[str, ...] = ()


def query_causes(query: Any) -> list[Cause]:
    """The exception of a query that failed and its causes, outermost first; [] without one.

    PySpark's own exception has the outermost message only. Raises Py4JError.
    """
    failure = query._jsq.exception()  # noqa: SLF001
    return _chain(failure.get() if failure.isDefined() else None)


def error_causes(error: Exception) -> list[Cause]:
    """The causes of an error of PySpark or py4j, outermost first. Raises Py4JError."""
    java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    return _chain(java) or [Cause(str(error))]


def _chain(exception: Any) -> list[Cause]:
    found: list[Cause] = []
    while exception is not None and len(found) < MAX_CAUSES:
        frames = islice(exception.getStackTrace(), MAX_FRAMES)
        found.append(
            Cause(str(exception.toString()), tuple(str(frame.toString()) for frame in frames))
        )
        exception = exception.getCause()
    return found
