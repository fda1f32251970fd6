"""Rows larger than a topic takes end no query: they are cut, else they are dead letters."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, Final

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from tests.reduce.test_hostile_events import OBSERVATION, PASS
from tests.stream.conftest import StreamProcess
from tests.stream.test_step_over import letters
from tests.stream.topics import Publisher, read_all
from tidemark.core.events import MAX_EVENTS
from tidemark.core.identity import home_group
from tidemark.kafka.client import make_admin
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]
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
