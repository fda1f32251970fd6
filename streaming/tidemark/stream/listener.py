"""The health of the streaming query: a log line for each batch, and Prometheus metrics.

Both come from Spark's progress reports. Spark calls the listener on its own thread after the batch.
A failure here is logged and does not affect the query.

The event topic is not compacted, and collectors use no transactions, so every offset is a record.
Those that a batch planned to read and did not find were removed by retention, DeleteRecords or an
unclean election before they were read, or are the markers of another writer's transactions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
import structlog
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
)

from tidemark.metrics import MetricRegistry
from tidemark.stream.job import READ, WRITTEN

_Offsets = dict[str, dict[str, int]]

BATCH_SECONDS: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
# A longer batch is logged at warning level, with its longest phases.
SLOW_SECONDS: Final = 5.0
# Spark's name for the sum of all phases.
WHOLE: Final = "triggerExecution"
# The values of the label `kind`, as job.py names its counts.
KINDS: Final = ("views", "alerts", "dead_letters")

log = structlog.get_logger()


def overtaken_records(start: str | None, end: str | None, records: int) -> int:
    """By the JSON of Spark's Kafka offsets, and the records read. 0 where they do not say it."""
    try:
        before = msgspec.json.decode(start or "{}", type=_Offsets)
        after = msgspec.json.decode(end or "{}", type=_Offsets)
    except msgspec.DecodeError:
        return 0
    # A batch of a topic that was created again may end before its start: it plans nothing.
    planned = sum(
        max(0, offset - before[topic][partition])
        for topic, offsets in after.items()
        for partition, offset in offsets.items()
        if partition in before.get(topic, {})
    )
    return max(0, planned - records)


def progress_event(text: str) -> QueryProgressEvent:
    """From `StreamingQueryProgress.json`.

    It has the sources' offsets as documents, and leaves out rates that are not finite.
    """
    progress = json.loads(text)
    for source in progress["sources"]:
        source.setdefault("inputRowsPerSecond", math.nan)
        source.setdefault("processedRowsPerSecond", math.nan)
        for name in ("startOffset", "endOffset", "latestOffset"):
            source[name] = json.dumps(source.get(name))
    return QueryProgressEvent.fromJson({"progress": progress})


class StreamMetrics:
    """The stream's metrics in their own registry."""

    def __init__(self) -> None:
        self.registry = registry = MetricRegistry("stream")
        self.batch_seconds = registry.histogram(
            "tidemark_stream_batch_duration_seconds", BATCH_SECONDS
        )


class Listener(StreamingQueryListener):
    """Turns progress reports into metrics and log lines."""

    def __init__(self, metrics: StreamMetrics, moved: Callable[[], None] = lambda: None) -> None:
        """`moved` is called after each batch, and while there is nothing to do."""
        self.metrics = metrics
        self._moved = moved

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        log.info("query started", name=event.name, run=str(event.runId))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        self._moved()
        try:
            self._progress(event)
        except Exception as error:
            log.error("cannot read a progress report", error=f"{type(error).__name__}: {error}")

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802, ARG002 - Spark's name
        self._moved()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        log.info("query ended", failed=event.exception is not None)

    def _progress(self, event: QueryProgressEvent) -> None:
        progress, registry = event.progress, self.metrics.registry
        read = progress.observedMetrics.get(READ)
        written = progress.observedMetrics.get(WRITTEN)
        self._count_overtaken(progress.sources, 0 if read is None else int(read["records"] or 0))
        if read is None or not read["records"]:
            return
        # By the JVM's clock: the delay of this thread does not count.
        began_at = datetime.fromisoformat(progress.timestamp).timestamp()
        ended_at = began_at + progress.batchDuration / 1000
        age = ended_at - read["oldest_ms"] / 1000
        counts = {kind: int(written[kind]) if written is not None else 0 for kind in KINDS}
        self.metrics.batch_seconds.observe(progress.batchDuration / 1000)
        registry.counter("tidemark_stream_input_records_total").inc(read["records"])
        registry.gauge("tidemark_stream_end_to_end_age_seconds").set(age)
        registry.gauge("tidemark_stream_offsets_behind_average").set(
            sum(
                float(source.metrics.get("avgOffsetsBehindLatest", 0))
                for source in progress.sources
            )
        )
        registry.gauge("tidemark_stream_state_memory_bytes").set(
            sum(operator.memoryUsedBytes for operator in progress.stateOperators)
        )
        registry.gauge("tidemark_stream_last_batch_timestamp_seconds").set(ended_at)
        slow = progress.batchDuration > SLOW_SECONDS * 1000
        fields = {
            "number": progress.batchId,
            "ms": progress.batchDuration,
            "records": read["records"],
            "age_seconds": round(age, 2),
        }
        (log.warning if slow else log.info)(
            "batch",
            **fields,
            **counts,
            **({"phases": longest(progress.durationMs)} if slow else {}),
        )

    def _count_overtaken(self, sources: Sequence[SourceProgress], records: int) -> None:
        lost = sum(overtaken_records(each.startOffset, each.endOffset, records) for each in sources)
        if lost:
            self.metrics.registry.counter("tidemark_stream_overtaken_records_total").inc(lost)
            log.error(
                "events were removed from the topic before they were read",
                records=lost,
                meaning="their passes are missing: partitions were not observed in that time; or "
                "they are markers of transactions, which no collector uses",
                cure="keep the stream running, or raise retention.ms of the event topic above its "
                "longest stop; see who may write to the topic: tidemark check-config --acls",
            )


def longest(phases: Mapping[str, int], count: int = 3) -> str:
    """The longest phases of a batch, in Spark's names and milliseconds, longest first."""
    parts = sorted(((ms, name) for name, ms in phases.items() if name != WHOLE), reverse=True)
    return " ".join(f"{name}={ms}" for ms, name in parts[:count])
