"""Records that Spark cannot carry: the stream removes them, says so, and goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import pyspark
import pytest
from kafka.admin import ConfigResource, ConfigResourceType
from structlog.testing import capture_logs

from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import SyntheticPasses
from tests.stream.topics import publish_passes, read_all
from tidemark.core.errors import TidemarkError
from tidemark.core.records import DeadLetter, decode_record
from tidemark.kafka.client import make_admin, make_producer
from tidemark.kafka.topic_reader import TopicReader
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Settings
from tidemark.stream.step_over import MAX_TIMESTAMP_MS, step_over

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PARTITION = 2
LOAD = SyntheticPasses(partitions=20, groups=4)


class FakeCheckpoint(NamedTuple):
    """`ends` of PARTITION by batch; the last one is not committed unless `is_finished`."""

    topic: str
    ends: tuple[int, ...]
    is_finished: bool = False

    def batches(self) -> tuple[int, int]:
        return len(self.ends) - 1, len(self.ends) - (1 if self.is_finished else 2)

    def planned_offsets(self, batch: int) -> str:
        return json.dumps({self.topic: {str(PARTITION): self.ends[batch]}})


class DamagedCheckpoint(FakeCheckpoint):
    def planned_offsets(self, batch: int) -> str:
        raise TidemarkError("cannot read the checkpoint")


def send(settings: Settings, *records: dict[str, Any]) -> None:
    """A batch of one record for each, in gzip, to a topic whose writers choose the times."""
    ensure_topics(settings.kafka, settings.topics)
    admin: Any = make_admin(settings.kafka)
    own_times = {"message.timestamp.type": "CreateTime"}
    admin.alter_configs(
        [ConfigResource(ConfigResourceType.TOPIC, settings.topics.replica_state, own_times)]
    )
    admin.close()
    producer: Any = make_producer(
        settings.kafka, compression_type="gzip", max_request_size=2**30, linger_ms=0
    )
    topic = settings.topics.replica_state
    for record in records:
        producer.send(topic, partition=PARTITION, **record).get(60)
    producer.close()


def zeros(*sizes: int) -> list[dict[str, Any]]:
    return [{"value": bytes(size)} for size in sizes]


def at(*timestamps_ms: int) -> list[dict[str, Any]]:
    return [{"value": b"{}", "timestamp_ms": each} for each in timestamps_ms]


def step(settings: Settings, checkpoint: FakeCheckpoint) -> bool:
    return step_over(settings, cast(Any, checkpoint))


def log_start(settings: Settings) -> int:
    with TopicReader(settings.kafka, settings.topics.replica_state) as reader:
        return reader.beginning[PARTITION]


def test_only_the_batch_that_was_cut_short_is_read_and_what_cannot_be_unpacked_goes(
    settings: Settings,
) -> None:
    topic = settings.topics.replica_state
    send(settings, *zeros(10, 40_000_000, 10, 40_000_000, 10, 40_000_000))
    unread = [
        FakeCheckpoint(topic, ()),
        FakeCheckpoint(topic, (1, 4), is_finished=True),
        FakeCheckpoint(topic, (2, 3)),
        FakeCheckpoint("another", (0, 6)),
        DamagedCheckpoint(topic, (1, 4)),
    ]
    for checkpoint in unread:
        step(settings, checkpoint)
        assert log_start(settings) == 0
    with capture_logs() as logs:
        step(settings, FakeCheckpoint(topic, (1, 5)))
    assert log_start(settings) == 4
    (entry,) = logs
    assert (entry["partition"], entry["offsets"]) == (PARTITION, "3 to 3")
    assert entry["reason"] == "its records unpack to over 16777216 bytes"
    # The first batch of a checkpoint begins where the topic does.
    step(settings, FakeCheckpoint(topic, (6,)))
    assert log_start(settings) == 6


def letters(settings: Settings) -> list[DeadLetter]:
    found = [
        decode_record(record.value)
        for record in read_all(settings, settings.topics.dead_letters, 1)
    ]
    return [record for record in found if isinstance(record, DeadLetter)]


def test_a_timestamp_that_spark_does_not_take_is_a_dead_letter_that_names_its_place(
    settings: Settings,
) -> None:
    topic = settings.topics.replica_state
    send(settings, *at(0, -MAX_TIMESTAMP_MS, -MAX_TIMESTAMP_MS - 1, 1, -(2**62), 2))
    step(settings, FakeCheckpoint(topic, (1, 2)))
    assert (log_start(settings), letters(settings)) == (0, [])
    step(settings, FakeCheckpoint(topic, (1, 6)))
    assert log_start(settings) == 5
    first, second = letters(settings)
    assert (first.partition, first.offset, second.offset) == (PARTITION, 2, 4)
    assert second.reason == (
        f"Spark cannot carry the records at offsets 4 to 4 of {topic}-{PARTITION}: "
        "its timestamp, -4611686018427387904 ms, has no microseconds in 64 bits"
    )


REMOVED = "deleted records that Spark cannot carry, and those of their partition not read before"


def check_goes_on(settings: Settings, running: StreamProcess, read: int) -> None:
    """One record was removed and is a dead letter; what follows it is read, `read` in all."""
    publish_passes(settings, LOAD, [1])
    running.wait_for(lambda: len(running.lines(REMOVED)) == 1, "the removal", 240)
    (removed,) = running.lines(REMOVED)
    assert removed["partition"] == PARTITION
    (letter,) = letters(settings)
    assert (letter.partition, str(letter.offset)) == (PARTITION, removed["offsets"].split()[-1])
    running.wait_for(
        lambda: sum(int(batch["records"]) for batch in running.lines("batch")) >= read, "pass"
    )
    removal = "events were removed from the topic before they were read"
    # PySpark 4.1 reports nothing of a batch that a start repeats (SPARK-55271).
    if not pyspark.__version__.startswith("4.1."):
        running.wait_for(lambda: bool(running.lines(removal)), "the count")
    assert running.process.poll() is None


def test_a_timestamp_that_spark_does_not_take_does_not_end_the_stream(
    settings: Settings, stream: Callable[..., StreamProcess]
) -> None:
    running = stream(settings)
    publish_passes(settings, LOAD, [0])
    running.wait_for(lambda: bool(running.lines("batch")), "batch", 240)
    send(settings, *at(-(2**62)))
    check_goes_on(settings, running, 8)


@pytest.mark.soak
def test_a_batch_that_takes_more_memory_than_java_has_ends_the_stream_once(
    settings: Settings, stream: Callable[..., StreamProcess]
) -> None:
    first = stream(settings)
    publish_passes(settings, LOAD, [0])
    first.wait_for(lambda: bool(first.lines("batch")), "batch")
    send(settings, *zeros(700_000_000))
    assert first.process.wait(120) == 1
    check_goes_on(settings, stream(settings), 4)
