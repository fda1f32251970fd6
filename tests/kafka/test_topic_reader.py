"""The reader of a topic: it reads on after an outage, and verbs fail with one clear line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka import errors as kafka_errors
from structlog.testing import capture_logs

from tidemark.core.errors import ClusterError
from tidemark.kafka import topic_reader
from tidemark.kafka.topic_reader import Message, TopicReader, values
from tidemark.kafka.topics import TopicState
from tidemark.settings import Connection

TIMEOUT = kafka_errors.KafkaTimeoutError("offsets by timestamps")
DENIED = kafka_errors.TopicAuthorizationFailedError("topic")
UNREADABLE = r"cannot read topic topic: .*Check that Kafka is up and that the user may read it"


class Consumer:
    """A consumer of one partition with offsets from 3 to 6; given answers come first.

    An exception among the answers is raised.
    """

    def __init__(self) -> None:
        self.numbers = {0}
        self.polls: list[Any] = []
        self.ends: list[Any] = [7]
        self.offset: Any = 0
        self.closed = False

    def partitions_for_topic(self, _topic: str) -> set[int]:
        return self.numbers

    def assign(self, _partitions: object) -> None:
        pass

    def seek(self, _partition: object, offset: int) -> None:
        self.offset = offset

    def beginning_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, 3)

    def end_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, given(self.ends.pop(0)))

    def poll(self, timeout_ms: int) -> dict[str, list[Message]]:
        offsets = given(self.polls.pop(0)) if self.polls else []
        self.offset = max([self.offset, *(offset + 1 for offset in offsets)])
        return {"partition": [message(offset) for offset in offsets]}

    def position(self, _partition: object) -> Any:
        return given(self.offset)

    def close(self, *, autocommit: bool) -> None:
        self.closed = not autocommit


def given(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def message(offset: int) -> Message:
    """The one at 5 is a tombstone."""
    return Message(0, offset, b"key", None if offset == 5 else b"%d" % offset)


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> Consumer:
    made = Consumer()
    monkeypatch.setattr(topic_reader, "make_consumer", lambda *_, **__: made)
    return made


@pytest.fixture
def reader(consumer: Consumer) -> TopicReader:
    return TopicReader(Connection(), "topic")


def test_reading_begins_at_the_beginning_or_at_the_given_positions(
    consumer: Consumer, reader: TopicReader
) -> None:
    offsets = [consumer.offset]
    for position in (6, 1):
        reader.start({0: position})
        offsets.append(consumer.offset)
    assert offsets == [3, 6, 3]


def test_read_to_end_ends_where_the_topic_ended_at_the_start(consumer: Consumer) -> None:
    consumer.polls = [[3, 4], [], [5, 6], [7]]
    with TopicReader(Connection(), "topic") as reader:
        messages = list(reader.read_to_end())
        assert messages == [message(offset) for offset in (3, 4, 5, 6)]
        assert list(values(messages)) == [b"3", b"4", b"6"]
        assert reader.fetch() == [message(7)]
    assert consumer.closed


def test_a_topic_that_returns_nothing_before_its_end_is_an_error(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_reader, "SILENT_SECONDS", 0.0)
    with pytest.raises(ClusterError, match="topic topic cannot be read to its end: no record for"):
        list(TopicReader(Connection(), "topic").read_to_end())


def test_poll_rides_out_an_outage_and_logs_it_once(consumer: Consumer, reader: TopicReader) -> None:
    consumer.polls = [
        TIMEOUT,
        kafka_errors.NotLeaderForPartitionError(),
        kafka_errors.UnknownBrokerIdError(3),
        [3],
    ]
    with capture_logs() as logged:
        assert [reader.poll(0) for _ in range(4)] == [[], [], [], [message(3)]]
    assert [entry["event"] for entry in logged] == [
        "topic cannot be read for now",
        "topic can be read again",
    ]


def test_positions_and_ends_are_unknown_while_no_broker_reports_them(
    consumer: Consumer, reader: TopicReader
) -> None:
    consumer.ends += [TIMEOUT, 9]
    assert [reader.end_now(), reader.end_now()] == [None, {0: 9}]
    caught_up = []
    for consumer.offset in (TIMEOUT, 6, 7):
        caught_up.append(reader.caught_up())
    assert caught_up == [False, False, True]


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        (TIMEOUT, TopicReader.fetch),
        (TIMEOUT, lambda reader: next(reader.read_to_end())),
        # A missing right ends `poll` too.
        (DENIED, lambda reader: reader.poll(0)),
    ],
    ids=["fetch", "read to end", "poll"],
)
def test_what_cannot_be_read_is_one_line(
    consumer: Consumer,
    reader: TopicReader,
    answer: Exception,
    read: Callable[[TopicReader], object],
) -> None:
    consumer.polls = [answer]
    with pytest.raises(ClusterError, match=UNREADABLE):
        read(reader)


def test_a_topic_that_does_not_exist_is_an_error_and_closes_the_client(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer.numbers = set()
    monkeypatch.setattr(topic_reader, "absence", lambda _, name: f"topic {name} does not exist.")
    with pytest.raises(ClusterError, match="topic topic does not exist"):
        TopicReader(Connection(), "topic")
    assert consumer.closed


@pytest.fixture
def ids(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What the brokers say that the topic's id is, the newest last."""
    said: list[str | None] = ["first"]
    monkeypatch.setattr(
        topic_reader, "describe_topic", lambda *_: TopicState(1, False, topic_id=said[-1])
    )
    return said


def test_a_shorter_topic_of_the_same_name_is_read_from_its_start(
    consumer: Consumer, reader: TopicReader, ids: list[str | None]
) -> None:
    replaced = list[str | None]()
    reader.on_replaced = lambda: replaced.append(reader.topic_id)
    consumer.polls = [[3, 4, 5], [6], [3, 4], [3, 4], [5]]
    consumer.ends += [TIMEOUT, 6]
    reader.look()
    ids.append("second")
    with capture_logs() as logged:
        # The client has gone to the new topic's start by itself; the brokers do not answer once.
        read = [reader.poll(0) for _ in range(6)]
    assert [[each.offset for each in messages] for messages in read] == [
        [3, 4, 5],
        [6],
        [],
        [],
        [3, 4],
        [5],
    ]
    assert (replaced, reader.end) == (["second"], {0: 6})
    assert [entry["event"] for entry in logged if entry["log_level"] == "error"] == [
        "topic was deleted and created again: it is read from its start"
    ]


@pytest.mark.parametrize(
    ("read", "ends", "found"),
    [
        (lambda reader: reader.poll(0), [8], []),
        # Of a topic of which only the ends are read.
        (lambda reader: reader.end_now(), [8, 9], {0: 9}),
    ],
    ids=["records", "ends"],
)
def test_a_topic_that_has_grown_beyond_the_deleted_one_is_known_by_its_id(
    consumer: Consumer,
    reader: TopicReader,
    ids: list[str | None],
    read: Callable[[TopicReader], object],
    ends: list[int],
    found: object,
) -> None:
    replaced = list[str | None]()
    reader.on_replaced = lambda: replaced.append(reader.topic_id)
    consumer.polls = [[3, 4, 5, 6], [3, 4, 5, 6, 7]]
    consumer.ends += ends
    reader.look()
    assert len(reader.poll(0)) == 4
    # While the topic is away, and with brokers that do not say it, there is no id.
    for said in (None, "first", "second"):
        assert replaced == []
        ids.append(said)
        reader.look()
    assert read(reader) == found
    assert consumer.offset == 3
    assert len(reader.poll(0)) == 5
    assert replaced == ["second"]
