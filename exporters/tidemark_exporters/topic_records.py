"""The records of topics: decoded where they are read, counted where they are not.

What cannot be decoded is counted, named in the log and skipped. Of topics that are not read, the
records are counted by how far their ends move.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

import structlog
from prometheus_client import Counter

from tidemark.core.errors import ClusterError, WireError
from tidemark.core.records import decode_record
from tidemark.kafka.topic_reader import Message, TopicReader
from tidemark_exporters.export.own_metrics import ExportMetrics

T = TypeVar("T")
log = structlog.get_logger()


class TopicCounts:
    """`counters`: topic -> what counts its records, asked for once the topic can be described.

    A topic that the user may not describe is not counted, and tried again.
    """

    def __init__(
        self,
        open_topic: Callable[[str], TopicReader],
        counters: Mapping[str, Callable[[], Counter]],
    ) -> None:
        self._open_topic = open_topic
        self._counters = counters
        self.readers: dict[str, TopicReader] = {}
        self._known: dict[str, int] = {}
        # Topics of which the log says that they are not counted.
        self._named: set[str] = set()

    def open(self) -> None:
        """Opens the topics that are not open yet."""
        for topic in self._counters.keys() - self.readers.keys():
            try:
                reader = self._open_topic(topic)
            except ClusterError as error:
                if topic not in self._named:
                    log.warning("records are not counted", topic=topic, reason=str(error))
                self._named.add(topic)
                continue
            self.readers[topic] = reader
            self._known[topic] = sum(reader.end.values())
            # From now on its count is known: 0.
            self._counters[topic]()

    def watch(self, stopped: threading.Event, seconds: float) -> None:
        """Counts every `seconds` until `stopped`. Asking for the ends may block."""
        self.open()
        while not stopped.wait(seconds):
            self.open()
            for topic, reader in self.readers.items():
                ends = reader.end_now()
                if ends is not None:
                    self._counters[topic]().inc(max(0, sum(ends.values()) - self._known[topic]))
                    self._known[topic] = sum(ends.values())
        for reader in self.readers.values():
            reader.close()


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
