"""The reader of a topic: a broker that does not answer for now ends nothing."""

from __future__ import annotations

from typing import Any

import pytest
from kafka import TopicPartition
from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError
from tidemark.settings import Connection
from tidemark_exporters.export import source
from tidemark_exporters.export.source import TopicReader


class Consumer:
    """A consumer of one partition whose next answers are given; an exception is raised."""

    def __init__(self) -> None:
        self.polls: list[Any] = []
        self.ends: list[Any] = []

    def partitions_for_topic(self, _topic: str) -> set[int]:
        return {0}

    def assign(self, _partitions: list[TopicPartition]) -> None:
        pass

    def seek(self, _partition: TopicPartition, _offset: int) -> None:
        pass

    def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self._next(self.ends) if self.ends else 7)

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        return dict(self._next(self.polls))

    def position(self, _partition: TopicPartition) -> int:
        raise kafka_errors.KafkaTimeoutError("no leader answers")

    def _next(self, answers: list[Any]) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> Consumer:
    made = Consumer()
    monkeypatch.setattr(source, "make_consumer", lambda *_, **__: made)
    return made


def test_a_time_out_is_an_empty_poll_and_reading_goes_on(consumer: Consumer) -> None:
    reader = TopicReader(Connection(), "topic")
    consumer.polls = [
        kafka_errors.KafkaTimeoutError("offsets by timestamps"),
        kafka_errors.NotLeaderForPartitionError(),
        {},
    ]
    assert [reader.poll(0), reader.poll(0), reader.poll(0)] == [[], [], []]
    assert not reader.caught_up()


def test_ends_that_nobody_tells_are_unknown(consumer: Consumer) -> None:
    reader = TopicReader(Connection(), "topic")
    consumer.ends = [kafka_errors.KafkaTimeoutError("offsets by timestamps"), 9]
    assert [reader.end_now(), reader.end_now()] == [None, {0: 9}]


def test_a_right_that_is_missing_ends_the_reader_with_one_line(consumer: Consumer) -> None:
    reader = TopicReader(Connection(), "topic")
    consumer.polls = [kafka_errors.TopicAuthorizationFailedError("topic")]
    with pytest.raises(
        ClusterError,
        match=r"cannot read topic topic: .*Check that Kafka is up and that the user may read it",
    ):
        reader.poll(0)
