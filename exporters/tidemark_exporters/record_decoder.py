"""Decodes records of the topics; what cannot be used is counted, named in the log and skipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog
from prometheus_client import Counter

from tidemark.core.errors import WireError
from tidemark.core.records import decode_record
from tidemark.kafka.topic_reader import Message
from tidemark_exporters.export.own_metrics import ExportMetrics

T = TypeVar("T")
log = structlog.get_logger()


class RecordDecoder:
    """From any thread."""

    def __init__(self, metrics: ExportMetrics) -> None:
        self._metrics = metrics
        # Looked up once: `labels` costs more than to count.
        self._read: dict[str, Counter] = {}

    def take(self, message: Message, topic: str, apply: Callable[[Message, object], T]) -> T | None:
        """What `apply` makes of the record, which is None for a tombstone.

        A record that cannot be used never ends the process, whatever it passed before.
        """
        read = self._read.get(topic)
        if read is None:
            read = self._read[topic] = self._metrics.records_read.labels(topic=topic)
        read.inc()
        try:
            return apply(message, None if message.value is None else decode_record(message.value))
        except Exception as error:
            self._skip(message, topic, error)
            return None

    def _skip(self, message: Message, topic: str, error: Exception) -> None:
        self._metrics.undecodable.labels(topic=topic).inc()
        field = f", field {error.field}" if isinstance(error, WireError) else ""
        log.warning(
            "skipped a record that cannot be used",
            topic=topic,
            partition=message.partition,
            offset=message.offset,
            reason=f"{str(error) or type(error).__name__}{field}"[:200],
        )
