"""Records of every kind that Kafka stores: none ends the stream, and what follows them is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import SyntheticPasses
from tests.stream.test_event_topic import shows
from tests.stream.test_step_over import letters
from tests.stream.topics import publish_passes
from tidemark.kafka.client import make_producer
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
