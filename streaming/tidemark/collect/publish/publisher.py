"""Publishes a collector's records: what every publisher offers, and lines to standard output."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import BinaryIO

from tidemark.collect.codecs.metadata_image import TopicPartition
from tidemark.collect.publish.pack import EventRecord
from tidemark.core.errors import TidemarkError


class Publisher:
    """Takes the records of a pass without waiting. `groups`: the Kafka partitions of the topic."""

    def __init__(self, groups: int) -> None:
        self.groups = groups
        self.published = 0
        self.dropped = 0
        # When a record was last acknowledged or written (monotonic).
        self.published_at = time.monotonic()
        # What waiting does not mend, such as a topic with another number of partitions.
        self.failure: TidemarkError | None = None
        # The reader of the lines has gone.
        self.broken = False

    def waits_for(self) -> str | None:
        """Why nothing can be published now, as far as it is known."""
        return None

    def is_alive(self) -> bool:
        """Whether what is put is still taken."""
        return True

    def spool_bytes(self) -> int:
        """How much waits on disk."""
        return 0

    def put(self, records: list[EventRecord]) -> None:
        raise NotImplementedError

    def take_missed(self, cluster: str) -> set[TopicPartition]:  # noqa: ARG002 - by default none
        """Partitions of a cluster with observations lost since the last call."""
        return set()

    def close(self, seconds: float) -> None:
        """Delivers the records that are left, within this time."""
        raise NotImplementedError


class LinePublisher(Publisher):
    """JSON lines on standard output; one group, because one reader reads all lines."""

    def __init__(self, out: BinaryIO | None = None) -> None:
        super().__init__(groups=1)
        self._out = out or sys.stdout.buffer

    def put(self, records: list[EventRecord]) -> None:
        if self.broken:
            return
        try:
            for record in records:
                self._out.write(record.payload + b"\n")
            self._out.flush()
        except BrokenPipeError:
            self.broken = True
            # Python flushes standard output again at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        self.published += len(records)
        self.published_at = time.monotonic()

    def close(self, seconds: float) -> None:  # noqa: ARG002 - nothing waits here
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._out.flush()
