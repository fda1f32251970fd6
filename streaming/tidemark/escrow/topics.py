"""The escrow's topics on the Kafka of Tidemark's own topics: one for each topic with held records.

A partition has the number of the one that its records are of, so that Kafka's DeleteRecords deletes
exactly what is held of that one, the oldest first.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kafka import TopicPartition
from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError
from tidemark.escrow.sealed import Label, SealError, read_label
from tidemark.kafka.client import administration, explain, make_consumer
from tidemark.kafka.topic_reader import POLL_MS, Message, TopicReader
from tidemark.kafka.topics import topic_states
from tidemark.settings import Settings

# A larger batch is not kept. Kafka's default bounds one by 1 MiB.
MAX_BATCH_BYTES: Final = 16 * 1024 * 1024
# Beyond the batch: its label, the nonce, and the head of the batch that it is sent in.
OVERHEAD_BYTES: Final = 4096
MAX_NAME: Final = 249
# Deleted files leave the disk this much later (Kafka's default: 60,000).
FILE_DELETE_MS: Final = 1000
SEGMENT_MS: Final = 10 * 60_000
# Records that are unpacked at once.
MAX_RECORDS: Final = 32
# What a new process waits for the newest copies. Without one it reads some records again.
NEWEST_SECONDS: Final = 2.0


class EscrowTopics:
    """Raises ClusterError, with the right that is missing, from each method."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection, self._prefix = settings.kafka, settings.topics.escrow

    def name_for(self, cluster: str, topic: str) -> str:
        """A name that no other pair has; readable where it can be."""
        name = f"{self._prefix}{cluster}.{topic}"
        if len(name) <= MAX_NAME and re.fullmatch(r"[A-Za-z0-9-]+", cluster):
            return name
        mark = hashlib.sha256(f"{cluster}/{topic}".encode()).hexdigest()[:16]
        return f"{name[: MAX_NAME - len(mark) - 1]}-{mark}"

    def names(self) -> list[str]:
        """Those that exist and that this user may see."""
        with administration(self._connection, "list the topics of the escrow") as admin:
            return sorted(name for name in admin.list_topics() if name.startswith(self._prefix))

    def ensure(self, sizes: Mapping[str, int]) -> None:
        """Creates topics, or adds partitions, so that each has as many."""
        if not sizes:
            return
        with administration(self._connection, "prepare topics") as admin:
            states = topic_states(admin, sizes)
            known = {name: states[name].partitions for name in sizes}
            absent = {n: self._specification(size) for n, size in sizes.items() if known[n] is None}
            if absent:
                admin.create_topics(absent)
            grown = {name: size for name, size in sizes.items() if (known[name] or size) < size}
            if grown:
                admin.create_partitions(grown)

    def newest(self) -> list[Label]:
        """Of the newest copy in each partition; fewer where Kafka is slow, or others wrote there.

        One consumer asks for all: a process that starts in a fault needs them at once.
        """
        consumer = make_consumer(self._connection, group_id=None, enable_auto_commit=False)
        try:
            names = [name for name in consumer.topics() if name.startswith(self._prefix)]
            places = [TopicPartition(n, p) for n in names for p in consumer.partitions_for_topic(n)]
            starts, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
            left = {place for place in places if ends[place] > starts[place]}
            consumer.assign(list(left))
            for place in left:
                consumer.seek(place, ends[place] - 1)
            found: dict[TopicPartition, Any] = {}
            deadline = time.monotonic() + NEWEST_SECONDS
            while len(found) < len(left) and time.monotonic() < deadline:
                found |= {p: records[-1] for p, records in consumer.poll(POLL_MS).items()}
            return [label for label, _ in labelled(found.values())]
        except kafka_errors.KafkaError as error:
            raise ClusterError(f"cannot read the newest copies: {explain(error)}.") from None
        finally:
            consumer.close(autocommit=False)

    def read(self, name: str) -> Iterator[Message]:
        """What is held now; key and value are those of `sealed`."""
        with TopicReader(self._connection, name, max_records=MAX_RECORDS) as reader:
            yield from reader.read_to_end()

    def delete_before(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """By name and partition: what lies before the offset."""
        wanted = {TopicPartition(*place): offset for place, offset in offsets.items()}
        if wanted:
            with administration(self._connection, "delete records of the escrow") as admin:
                admin.delete_records(wanted)

    def _specification(self, partitions: int) -> dict[str, Any]:
        topics, escrow = self._settings.topics, self._settings.escrow
        return {
            "num_partitions": partitions,
            "replication_factor": topics.replication_factor,
            "configs": {
                "min.insync.replicas": str(topics.min_in_sync_replicas),
                "unclean.leader.election.enable": "false",
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "message.timestamp.type": "LogAppendTime",
                "retention.ms": str(int(escrow.hours * 3_600_000)),
                "segment.ms": str(SEGMENT_MS),
                "file.delete.delay.ms": str(FILE_DELETE_MS),
                "max.message.bytes": str(MAX_BATCH_BYTES + OVERHEAD_BYTES),
            },
        }


def read_labelled(topics: EscrowTopics) -> Iterator[tuple[Label, Message]]:
    """What all topics hold now."""
    for name in topics.names():
        yield from labelled(topics.read(name))


def labelled(messages: Iterable[Any]) -> Iterator[tuple[Label, Any]]:
    """A record without a label is none of the escrow's."""
    for message in messages:
        try:
            label = read_label(message.key)
        except SealError:
            continue
        yield label, message
