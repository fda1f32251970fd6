"""Records of every kind that Kafka stores: none ends the stream, and what follows them is read."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from typing import Any, Final

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from tests.reduce.test_hostile_events import OBSERVATION, PASS
from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import SyntheticPasses
from tests.stream.test_event_topic import shows
from tests.stream.test_step_over import letters
from tests.stream.topics import Publisher, publish_passes, read_all
from tidemark.core.events import MAX_EVENTS
from tidemark.core.identity import home_group
from tidemark.kafka.client import make_admin, make_producer
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]
LOAD = SyntheticPasses(partitions=40, groups=4)
LARGE = 15_000_000


def send(settings: Settings, records: list[dict[str, Any]], **options: Any) -> None:
    """To one Kafka partition, and the last one again to each of the others."""
    producer: Any = make_producer(settings.kafka, max_request_size=2**26, linger_ms=0, **options)
    if "transactional_id" in options:
        producer.init_transactions()
        producer.begin_transaction()
    for partition in (0, 1, 2, 3):
        for record in records if partition == 0 else records[-1:]:
            producer.send(settings.topics.replica_state, partition=partition, **record)
    producer.flush()
    if "transactional_id" in options:
        producer.abort_transaction()
    producer.close()


def test_no_kind_of_record_ends_the_stream(
    settings: Settings, stream: Callable[..., StreamProcess]
) -> None:
    ensure_topics(settings.kafka, settings.topics)
    publish_passes(settings, LOAD, [0])
    running = stream(settings)
    running.wait_for(lambda: bool(running.lines("batch")), "a batch", 240)
    many = [(f"header-{number}", os.urandom(100)) for number in range(1_000)]
    kinds: list[dict[str, Any]] = [
        {"key": b"k", "value": None},
        {"key": b"", "value": b""},
        {"key": bytes(LARGE), "value": None},
        {"key": b"\xff" * 1_000, "value": b"\x00" * 100_000},
        {"value": b"{}", "headers": many},
        {"value": b"{}", "headers": [("", b""), ("\u202e", bytes(1_000_000))]},
        *({"value": bytes(LARGE)} for _ in range(30)),
        {"value": b"?"},
    ]
    send(settings, kinds, compression_type="gzip")
    # Aborted, with the markers of the transaction as the last records of each partition.
    send(settings, [{"value": b"aborted"}], transactional_id=settings.topics.prefix)
    publish_passes(settings, LOAD, [20])
    running.wait_for(lambda: shows(settings, 20), "the next pass", 180)
    # Each kind, "?" in the three other partitions, and what was aborted in all four.
    found = letters(settings)
    assert len(found) == len(kinds) + 3 + 4
    assert sum("has 15000000 bytes, too many" in letter.reason for letter in found) == 30
    send(settings, [{"value": b"at the end"}], transactional_id=settings.topics.prefix)
    running.wait_for(lambda: len(letters(settings)) == len(found) + 4, "what was aborted last")
    assert running.process.poll() is None


# Rows larger than a topic takes end no query: they are cut, else they are dead letters.


NODES: Final = 4096
REFUSED: Final = (
    "Kafka takes no rows as large as those of the stream: larger ones are cut from now on"
)
HEAD: Final = {"v": 1, "cluster": "east", "collector": "c", "collector_epoch": 1, "pass": 1}


def node_events() -> list[dict[str, Any]]:
    """Of the nodes of a large quorum: digits that gzip only halves."""
    choose = random.Random(7)
    return [
        {
            "kind": "broker",
            "broker": 2**30 + number,
            "observed_at": 2.0,
            "metadata_lag_ms": choose.random() * 1e15,
            "metadata_log_end_offset": choose.randrange(2**62),
        }
        for number in range(NODES)
    ]


def test_a_row_that_the_topic_refuses_is_a_dead_letter_that_names_it(
    settings: Settings, stream: Callable[..., StreamProcess]
) -> None:
    ensure_topics(settings.kafka, settings.topics)
    small = {"max.message.bytes": "20000"}
    admin: Any = make_admin(settings.kafka)
    admin.alter_configs(
        [ConfigResource(ConfigResourceType.TOPIC, settings.topics.partition_views, small)]
    )
    admin.close()
    publisher = Publisher(settings)
    home, events = home_group("east", settings.topics.partitions), [*node_events()]
    for first in range(0, NODES, MAX_EVENTS):
        batch = {**HEAD, "events": events[first : first + MAX_EVENTS]}
        publisher.send(home, json.dumps(batch).encode())
    publisher.send(home, json.dumps({**HEAD, "events": [OBSERVATION, PASS]}).encode())
    publisher.close()

    running = stream(settings)
    # PySpark 4.1 tells of no batch that it has carried out again, and starts once more.
    running.wait_for(
        lambda: any(map(running.lines, ("batch", "waiting for Kafka"))), "the batch", 240
    )
    assert [entry["bytes"] for entry in running.lines(REFUSED)] == [500_000, 250_000]
    (letter,) = letters(settings)
    assert letter.reason.startswith("a row of partition_views with the key east has 2")
    views = read_all(settings, settings.topics.partition_views, settings.topics.partitions)
    assert {record.key for record in views} == {b"east/orders/0", b"east/1"}
