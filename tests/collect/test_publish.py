from __future__ import annotations

import io
import threading
import time
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError
from kafka.future import Future

from tidemark.collect import publish
from tidemark.collect.pack import EventRecord
from tidemark.collect.publish import KafkaPublisher, LinePublisher
from tidemark.core.errors import ClusterError
from tidemark.settings import Settings


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

    def close(self, timeout: float) -> None:
        self.closed = True


def record(text: str, droppable: bool = True, size: int = 10) -> EventRecord:
    return EventRecord(
        1, text.encode().ljust(size), "c", (("t", int(text)),) if droppable else (), droppable
    )


def until(condition: Any) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_records_reach_their_partition_in_order() -> None:
    producer = Producer()
    publisher = KafkaPublisher(Settings(), make=lambda *_, **__: producer)
    publisher.put([record("1"), record("2"), record("3", droppable=False)])
    publisher.close(5.0)
    assert [value.strip() for _, value in producer.sent] == [b"1", b"2", b"3"]
    assert {group for group, _ in producer.sent} == {1}
    assert (publisher.published, publisher.dropped, producer.closed) == (3, 0, True)


def test_records_that_do_not_fit_are_dropped_oldest_first_and_missed() -> None:
    started = threading.Event()

    def unreachable(*_: Any, **__: Any) -> Any:
        started.set()
        raise ClusterError("no bootstrap server can be used")

    publisher = KafkaPublisher(Settings(), make=unreachable, queue_bytes=3 * 2_000)
    publisher.put([record("0", size=1_000)])
    started.wait(5)
    # The publisher's thread holds the first. Of the others, pass records are dropped last.
    publisher.put(
        [record(str(n), size=1_000) for n in range(1, 4)]
        + [record("9", droppable=False, size=1_000)]
    )
    publisher.put([record("4", size=1_000), record("5", size=1_000)])
    assert publisher.dropped == 3
    assert publisher.take_missed("other") == set()
    assert publisher.take_missed("c") == {("t", 1), ("t", 2), ("t", 3)}
    assert publisher.take_missed("c") == set()
    publisher.close(0.0)


def test_a_record_that_kafka_does_not_acknowledge_is_missed() -> None:
    producer = Producer(at_once=False)
    publisher = KafkaPublisher(Settings(), make=lambda *_, **__: producer)
    publisher.put([record("1"), record("2")])
    until(lambda: len(producer.futures) == 2)
    producer.futures[0].failure(RuntimeError("expired"))
    producer.futures[1].success(None)
    until(lambda: publisher.published == 1)
    assert publisher.take_missed("c") == {("t", 1)}
    publisher.close(5.0)


def test_a_broken_producer_is_replaced() -> None:
    made: list[Producer] = []

    def make(*_: Any, **__: Any) -> Producer:
        made.append(Producer())
        made[0].fails = True
        return made[-1]

    publisher = KafkaPublisher(Settings(), make=make)
    publisher.put([record("1"), record("2")])
    publisher.close(5.0)
    assert [len(producer.sent) for producer in made] == [0, 1]
    assert made[0].closed
    assert publisher.take_missed("c") == {("t", 1)}


def test_no_record_is_lost_while_the_topic_has_no_metadata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publish, "RETRY_SECONDS", 0.01)
    made: list[Producer] = []

    def make(*_: Any, **__: Any) -> Producer:
        made.append(Producer())
        made[-1].knows_the_topic = len(made) == 3
        return made[-1]

    publisher = KafkaPublisher(Settings(), make=make)
    publisher.put([record("1"), record("2")])
    until(lambda: publisher.published == 2)
    assert [(len(producer.sent), producer.closed) for producer in made] == [
        (0, True),
        (0, True),
        (2, False),
    ]
    assert publisher.take_missed("c") == set()
    publisher.close(5.0)


def test_lines_end_in_newlines_and_need_one_group() -> None:
    out = io.BytesIO()
    publisher = LinePublisher(out)
    publisher.put([EventRecord(0, b"{}", "c", (), False), EventRecord(0, b"[]", "c", (), False)])
    publisher.close(1.0)
    assert (out.getvalue(), publisher.groups, publisher.published) == (b"{}\n[]\n", 1, 2)
