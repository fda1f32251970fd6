"""The event topic behind a checkpoint: deleted and created again, it is read from its start.

The checkpoint's offsets are those of the topic that was read. Spark goes on at them in any topic of
that name, and skips what a new one has below them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog
from msgspec.structs import replace

from tidemark.kafka.topic_identity import is_another_topic
from tidemark.kafka.topic_reader import TopicReader
from tidemark.kafka.topics import describe_topic, ensure_topics, mismatch
from tidemark.settings import Settings
from tidemark.stream.checkpoint import CheckpointFolder
from tidemark.stream.step_over import kafka_offsets

# Between two looks at the topic while the query runs.
LOOK_SECONDS: Final = 10.0

log = structlog.get_logger()


class EventTopic:
    """Which topic the checkpoint's offsets are of, and whether it still is the one in Kafka."""

    def __init__(
        self, settings: Settings, folder: CheckpointFolder | None, replaced: Callable[[], None]
    ) -> None:
        """`replaced` is called for each topic that took the place of the one before."""
        self._kafka, self._topics = settings.kafka, settings.topics
        self._folder, self._replaced = folder, replaced
        self._partitions: int | None = settings.topics.partitions
        self._topic_id: str | None = None
        # Whether there is another topic than at the last check.
        self.is_another = False

    def check(self) -> None:
        """Before a query: has it begin at the start of a topic that is not the one before.

        Also creates missing topics. Raises ClusterError, or TidemarkError where the checkpoint
        cannot be read or written.
        """
        ensure_topics(self._kafka, self._topics)
        found, folder, name = self._look(), self._folder, self._topics.replica_state
        self._topic_id, self.is_another = found, False
        known = None if folder is None else folder.fixed_settings()
        if folder is None or known is None or (found is not None and known.topic_id == found):
            return
        with TopicReader(self._kafka, name) as reader:
            positions = kafka_offsets(folder, folder.batches()[1], name)
            if is_another_topic(known.topic_id, found, positions, reader.end):
                folder.begin_again(name, reader.beginning)
                self._replaced()
                log.error(
                    "the event topic was deleted and created again: it is read from its start",
                    topic=name,
                    meaning="what the stream had not read of the deleted one is lost",
                    cure="see who may delete the topic: tidemark check-config --acls",
                )
        folder.write(replace(known, topic_id=found))

    def keep_looking(self, stop: threading.Event) -> None:
        """Looks at the topic every LOOK_SECONDS until `stop`, in a thread of its own."""
        while not stop.wait(LOOK_SECONDS):
            # The query meets an outage too, and says so.
            with suppress(Exception):
                if self._look() not in (None, self._topic_id):
                    self.is_another = self._topic_id is not None

    def _look(self) -> str | None:
        """The topic's id. Says once that partitions were added, and what to do then."""
        name = self._topics.replica_state
        partitions, _, topic_id = describe_topic(self._kafka, name)
        if partitions not in (None, self._partitions):
            log.error(mismatch(name, partitions, self._topics.partitions, self._topics))
            self._partitions = partitions
        return topic_id
