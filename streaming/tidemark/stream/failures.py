"""Why the query failed, in one line with the way out: a damaged checkpoint does not heal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tidemark.core.errors import TidemarkError
from tidemark.stream.session import first_line

MAX_CAUSES: Final = 20
# Spark's files in a checkpoint.
_FILE: Final = re.compile(
    r"[^\s'\"()\[\]]*/(?:state/\d+/\d+/[\w.-]+|(?:offsets|commits)/\d+|metadata\b|sources/\d+/\d+)"
)
# Failures of the storage and not of what it holds: the next start may find it well.
_STORAGE: Final = re.compile(
    r"ConnectException|SocketTimeout|UnknownHost|AccessControl|AccessDenied|Permission denied"
    r"|NoRouteToHost|ClosedChannel|InterruptedException|SafeModeException"
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
CONTINUES: Final = "It continues from its checkpoint when started again."
JVM_ENDED: Final = (
    "Spark's JVM ended (killed, or out of memory? then raise spark.driver.memory in "
    "stream.spark). The query continues from its checkpoint when started again."
)


def describe_failure(causes: Sequence[str], checkpoint: str) -> str:
    """The causes of a failure, the first one outermost, as a sentence and its cure."""
    text = "\n".join(causes)
    reason = first_line(RuntimeError(causes[-1])) if causes else "unknown"
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
    file, is_json = _FILE.search(text), _JSON.search(text)
    if _STORAGE.search(text) or not (file or is_json or _CHECKPOINT.search(text)):
        named = first_line(RuntimeError(text))
        return f"the query failed: {named}. {CONTINUES}"
    if file is not None:
        place = file.group()
    elif is_json:
        place = f"metadata, or a file in offsets or sources, in {checkpoint}"
    else:
        place = f"a file in {checkpoint}/state"
    return f"the checkpoint is damaged: {place}: {reason}. Every start ends here: {way_out}"


@contextmanager
def spark_errors(checkpoint: str) -> Iterator[None]:
    """Makes one line of what Spark raises. Raises TidemarkError.

    PySpark has types of its own for few Java exceptions; the others, like the IllegalStateException
    of a context that has lost its master, reach the caller as py4j's.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise TidemarkError(describe_failure(start_causes(error), checkpoint)) from None
    except (Py4JError, ConnectionError):
        # The JVM does not answer any more, or closed the connection in an answer.
        raise TidemarkError(JVM_ENDED) from None


def java_causes(query: Any) -> list[str]:
    """The exception of a query that failed and its causes, outermost first; [] without one.

    PySpark's own exception has the outermost message only.
    """
    failure = query._jsq.exception()  # noqa: SLF001
    return _chain(failure.get() if failure.isDefined() else None)


def start_causes(error: Exception) -> list[str]:
    """The causes of an error of PySpark or py4j, outermost first."""
    java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    return _chain(java) or [str(error)]


def _chain(cause: Any) -> list[str]:
    found: list[str] = []
    while cause is not None and len(found) < MAX_CAUSES:
        found.append(str(cause.toString()))
        cause = cause.getCause()
    return found
