from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError, MessageSizeTooLargeError
from kafka.future import Future

from tidemark.collect.publish import kafka_publisher
from tidemark.collect.publish.kafka_publisher import KafkaPublisher
from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.spool import Spool
from tidemark.core.errors import ClusterError
from tidemark.kafka import attempts
from tidemark.kafka.topics import TopicMismatchError
from tidemark.settings import Settings
from tidemark_lab.brokers.wait import wait_until

SPOOL_BYTES = 16 * 1024 * 1024


class Producer:
    """Records what is sent. Futures are completed at once, or by the test."""

    def __init__(self, at_once: bool = True) -> None:
        self.at_once = at_once
        self.sent: list[tuple[int, bytes]] = []
        self.futures: list[Any] = []
        self.fails = False
        self.knows_the_topic = True
        self.closed = False

    def partitions_for(self, topic: str) -> set[int]:
        assert topic == "tidemark.replica-state"
        if not self.knows_the_topic:
            raise KafkaTimeoutError("no metadata")
        return {0, 1}

    def send(self, topic: str, value: bytes, partition: int) -> Any:
        if self.fails:
            raise RuntimeError("fenced")
        assert topic == "tidemark.replica-state"
        self.sent.append((partition, value))
        future = Future()
        self.futures.append(future)
        if self.at_once:
            future.success(None)
        return future

    def flush(self, timeout: float) -> None:
        pass

    def close(self, timeout: float) -> None:
        self.closed = True


def record(text: str, droppable: bool = True, size: int = 10) -> EventRecord:
    return EventRecord(
        1, text.encode().ljust(size), "c", (("t", int(text)),) if droppable else (), droppable
    )


Publish = Callable[..., KafkaPublisher]


@pytest.fixture
def publish() -> Iterator[Publish]:
    """Starts a publisher and puts records; it is closed after the test."""
    with ExitStack() as stack:

        def start(make: Any, *records: EventRecord, **options: Any) -> KafkaPublisher:
            publisher = KafkaPublisher(Settings(), make=make, **options)
            stack.callback(publisher.close, 0.0)
            publisher.put([*records])
            return publisher

        yield start


def until(condition: Any) -> None:
    wait_until(condition, 10.0, "the publisher is there")


def test_records_reach_their_partition_in_order(publish: Publish) -> None:
    producer = Producer()
    publisher = publish(
        lambda *_, **__: producer, record("1"), record("2"), record("3", droppable=False)
    )
    publisher.close(5.0)
    assert [value.strip() for _, value in producer.sent] == [b"1", b"2", b"3"]
    assert {group for group, _ in producer.sent} == {1}
    assert (publisher.published, publisher.dropped, producer.closed) == (3, 0, True)


def test_records_that_do_not_fit_are_dropped_oldest_first_and_missed(publish: Publish) -> None:
    started = threading.Event()

    def unreachable(*_: Any, **__: Any) -> Any:
        started.set()
        raise ClusterError("no bootstrap server can be used")

    publisher = publish(unreachable, record("0", size=1_000), queue_bytes=3 * 2_000)
    started.wait(5)
    # Pass records are dropped last.
    publisher.put(
        [record(str(n), size=1_000) for n in range(1, 4)]
        + [record("9", droppable=False, size=1_000)]
    )
    publisher.put([record("4", size=1_000), record("5", size=1_000)])
    assert publisher.dropped == 4
    assert publisher.take_missed("other") == set()
    assert publisher.take_missed("c") == {("t", number) for number in range(4)}
    assert publisher.take_missed("c") == set()


class Producers:
    """Makes producers; the first ones as given, then good ones."""

    def __init__(self, *made: Producer) -> None:
        self.made: list[Producer] = []
        self._next = list(made)

    def __call__(self, *_: Any, **__: Any) -> Producer:
        self.made.append(self._next.pop(0) if self._next else Producer())
        return self.made[-1]


def texts(producer: Producer) -> list[bytes]:
    return [value.strip() for _, value in producer.sent]


def test_what_expired_is_sent_again_in_order_by_a_new_producer(publish: Publish) -> None:
    expiring = Producer(at_once=False)
    producers = Producers(expiring)
    publisher = publish(producers, record("1"), record("2"), record("3", droppable=False))
    until(lambda: len(expiring.futures) == 3)
    expiring.futures[0].success(None)
    expiring.futures[1].failure(KafkaTimeoutError("expired"))
    until(lambda: publisher.published == 3)
    assert expiring.closed
    assert texts(producers.made[1]) == [b"2", b"3"]
    # A late answer to the first producer counts for nothing.
    expiring.futures[2].success(None)
    assert (publisher.published, publisher.dropped) == (3, 0)
    assert publisher.take_missed("c") == set()


def test_a_producer_that_acknowledges_nothing_is_replaced(
    publish: Publish,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_publisher, "STUCK_SECONDS", 0.05)
    stuck = Producer(at_once=False)
    producers = Producers(stuck)
    publisher = publish(producers, record("1"), record("2"))
    until(lambda: publisher.published == 2)
    assert texts(producers.made[1]) == [b"1", b"2"]


def test_a_record_that_kafka_refuses_is_missed_and_the_next_is_sent(publish: Publish) -> None:
    producer = Producer(at_once=False)
    publisher = publish(lambda *_, **__: producer, record("1"), record("2"))
    until(lambda: len(producer.futures) == 2)
    producer.futures[0].failure(MessageSizeTooLargeError("too large"))
    producer.futures[1].success(None)
    until(lambda: publisher.published == 1)
    assert (publisher.dropped, publisher.take_missed("c")) == (1, {("t", 1)})
    publisher.close(5.0)
    assert producer.closed


def test_a_broken_producer_is_replaced(publish: Publish) -> None:
    broken = Producer()
    broken.fails = True
    producers = Producers(broken)
    publisher = publish(producers, record("1"), record("2"))
    until(lambda: publisher.published == 2)
    publisher.close(5.0)
    assert [texts(producer) for producer in producers.made] == [[], [b"1", b"2"]]
    assert broken.closed
    assert publisher.take_missed("c") == set()


def test_what_is_sent_again_keeps_the_queue_within_its_bound(publish: Publish) -> None:
    expiring = Producer(at_once=False)
    ready = threading.Event()

    def make(*_: Any, **__: Any) -> Producer:
        if expiring.closed:
            assert ready.wait(10)
            return Producer()
        return expiring

    publisher = publish(
        make, *(record(str(n), size=1_000) for n in range(1, 4)), queue_bytes=3 * 2_000
    )
    until(lambda: len(expiring.futures) == 3)
    expiring.futures[0].failure(KafkaTimeoutError("expired"))
    until(lambda: expiring.closed)
    publisher.put([record("4", size=1_000)])
    ready.set()
    until(lambda: publisher.published == 3)
    assert publisher.take_missed("c") == {("t", 1)}


def test_no_record_is_lost_while_the_topic_has_no_metadata(
    publish: Publish,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_publisher, "RETRY_SECONDS", 0.01)
    made: list[Producer] = []

    def make(*_: Any, **__: Any) -> Producer:
        made.append(Producer())
        made[-1].knows_the_topic = len(made) == 3
        return made[-1]

    publisher = publish(make, record("1"), record("2"))
    until(lambda: publisher.published == 2)
    assert [(len(producer.sent), producer.closed) for producer in made] == [
        (0, True),
        (0, True),
        (2, False),
    ]
    assert publisher.take_missed("c") == set()


def test_what_waits_is_on_disk_and_the_next_process_publishes_it_first(tmp_path: Path) -> None:
    tried = threading.Event()

    def unreachable(*_: Any, **__: Any) -> Any:
        tried.set()
        raise ClusterError("no bootstrap server can be used")

    first = KafkaPublisher(Settings(), make=unreachable, spool=Spool(tmp_path, SPOOL_BYTES))
    first.put([record("1"), record("2")])
    assert tried.wait(10)
    until(lambda: first.spool_bytes() > 0)
    first.put([record("3", droppable=False)])
    first.close(0.0)
    assert (first.published, first.dropped) == (0, 0)
    producer = Producer()
    second = KafkaPublisher(
        Settings(), make=lambda *_, **__: producer, spool=Spool(tmp_path, SPOOL_BYTES)
    )
    second.put([record("4")])
    until(lambda: second.published == 4)
    assert texts(producer) == [b"1", b"2", b"3", b"4"]
    assert second.spool_bytes() == 0
    second.put([record("5")])
    until(lambda: second.published == 5)
    second.close(5.0)
    assert not list(tmp_path.glob("*.spool"))


def test_what_expired_comes_before_what_was_put_later_on_disk_too(
    publish: Publish, tmp_path: Path
) -> None:
    expiring = Producer(at_once=False)
    ready = threading.Event()

    def make(*_: Any, **__: Any) -> Producer:
        if not expiring.closed:
            return expiring
        if not ready.is_set():
            raise ClusterError("no bootstrap server can be used")
        return good

    good = Producer()
    publisher = publish(
        make, record("1"), record("2"), record("3"), spool=Spool(tmp_path, SPOOL_BYTES)
    )
    until(lambda: len(expiring.futures) == 3)
    expiring.futures[0].success(None)
    expiring.futures[1].failure(KafkaTimeoutError("expired"))
    until(lambda: publisher.spool_bytes() > 0)
    publisher.put([record("4")])
    ready.set()
    until(lambda: publisher.published == 4)
    assert texts(good) == [b"2", b"3", b"4"]
    assert publisher.take_missed("c") == set()


def test_a_record_for_a_partition_that_is_gone_is_missed(publish: Publish, tmp_path: Path) -> None:
    spool = Spool(tmp_path, SPOOL_BYTES)
    spool.append([record("1")._replace(group=99), record("2")])
    producer = Producer()
    publisher = publish(lambda *_, **__: producer, spool=spool)
    until(lambda: publisher.published == 1)
    assert (texts(producer), publisher.take_missed("c")) == ([b"2"], {("t", 1)})


def test_a_record_that_is_damaged_on_disk_counts_as_dropped(
    publish: Publish, tmp_path: Path
) -> None:
    spool = Spool(tmp_path, SPOOL_BYTES)
    spool.append([record("1"), record("2")])
    spool.close()
    (path,) = tmp_path.glob("*.spool")
    path.write_bytes(path.read_bytes()[:20] + b"damaged!" + path.read_bytes()[28:])
    producer = Producer()
    publisher = publish(lambda *_, **__: producer, spool=Spool(tmp_path, SPOOL_BYTES))
    until(lambda: publisher.published == 1)
    assert (texts(producer), publisher.dropped) == ([b"2"], 1)


def test_it_waits_for_its_topic_and_says_why(publish: Publish) -> None:
    producers, failures = Producers(), [ClusterError("may not describe topic x")] * 2

    def prepare() -> None:
        assert not producers.made
        if failures:
            raise failures.pop()

    publisher = publish(producers, prepare=prepare)
    until(lambda: publisher.waits_for() == "may not describe topic x")
    publisher.put([record("1")])
    until(lambda: publisher.published == 1)
    assert publisher.waits_for() is None
    publisher.close(5.0)
    assert not publisher.is_alive()


def test_a_topic_with_other_partitions_is_a_failure() -> None:
    def prepare() -> None:
        raise TopicMismatchError("topic x has 8 partitions")

    publisher = KafkaPublisher(Settings(), make=Producers(), prepare=prepare)
    until(lambda: publisher.failure is not None)
    assert isinstance(publisher.failure, TopicMismatchError)
    publisher.close(0.0)


def test_what_is_put_meanwhile_does_not_hurry_an_attempt(
    publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "FIRST_PAUSE_SECONDS", 30.0)
    monkeypatch.setattr(attempts, "LONGEST_PAUSE_SECONDS", 30.0)
    tried: list[float] = []

    def unreachable(*_: Any, **__: Any) -> Any:
        tried.append(time.monotonic())
        raise ClusterError("no bootstrap server can be used")

    publisher = publish(unreachable)
    until(lambda: tried)
    for number in range(20):
        publisher.put([record(str(number))])
        time.sleep(0.01)
    assert len(tried) == 1
