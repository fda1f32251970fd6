from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tidemark_lab.brokers.load_producer import AcknowledgedRecord, LoadProducer, record_key

PLACES = [("a", 0), ("a", 1), ("b", 0)]


class Metadata(NamedTuple):
    topic: str
    partition: int
    offset: int


class Sent:
    """The future of a record that is acknowledged at once, at the offset of its id."""

    def __init__(self, topic: str, partition: int) -> None:
        self._place = (topic, partition)

    def add_callback(self, act: Callable[[int, Metadata], None], record_id: int) -> None:
        act(record_id, Metadata(*self._place, record_id))


class Producer:
    """Keeps (topic, partition, key, the id in the value); `enough` is set after 30 records."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int, bytes, int]] = []
        self.enough = threading.Event()

    def send(self, topic: str, key: bytes, value: bytes, partition: int) -> Sent:
        self.sent.append((topic, partition, key, int(value.split()[0])))
        if len(self.sent) == 30:
            self.enough.set()
        return Sent(topic, partition)

    def close(self, timeout: float) -> None: ...


def produce(file: Path, *paused: str) -> tuple[Producer, list[AcknowledgedRecord]]:
    """Runs the load until it has written 30 records."""
    load, producer = LoadProducer(["unused"], PLACES, file, 1000), Producer()
    load_internals: Any = load
    load_internals._producer = producer
    load.pause("a", "b")
    load.resume(*({"a", "b"} - set(paused)))
    load_internals._thread.start()
    assert producer.enough.wait(10)
    load.stop()
    return producer, load.acknowledged()


def test_partitions_take_turns_and_every_acknowledgement_is_recorded(tmp_path: Path) -> None:
    producer, acknowledged = produce(tmp_path / "acked.jsonl")
    assert [(topic, partition, record_id) for topic, partition, _, record_id in producer.sent] == [
        (*PLACES[i % 3], i) for i in range(len(producer.sent))
    ]
    assert all(key == record_key(record_id) for *_, key, record_id in producer.sent)
    lines = (tmp_path / "acked.jsonl").read_text(encoding="utf-8").splitlines()
    assert [AcknowledgedRecord(**json.loads(line)) for line in lines] == acknowledged
    assert [(r.topic, r.partition, r.offset) for r in acknowledged] == [
        (topic, partition, record_id) for topic, partition, _, record_id in producer.sent
    ]


def test_a_paused_topic_gets_nothing(tmp_path: Path) -> None:
    producer, _ = produce(tmp_path / "acked.jsonl", "a")
    assert {(topic, record_id % 3) for topic, _, _, record_id in producer.sent} == {("b", 2)}


def test_every_partition_gets_every_key() -> None:
    for partitions in (1, 3, 37):
        keys = {record_key(i) for i in range(0, partitions * 100, partitions)}
        assert len(keys) == 19
