"""Counts the records of topics that are not read, by how far their ends move."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import structlog
from prometheus_client import Counter

from tidemark.core.errors import ClusterError
from tidemark.kafka.topic_reader import TopicReader

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
