"""The event topic created again, and with other partitions: what the stream reads, and says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import CLUSTER, SyntheticPasses
from tests.stream.test_number_of_groups import delete_event_topic, shown_at
from tests.stream.topics import Publisher, publish_passes
from tidemark.core.identity import partition_key
from tidemark.kafka.client import make_admin
from tidemark.kafka.topic_identity import is_another_topic
from tidemark.kafka.topics import PROCEDURE, mismatch
from tidemark.settings import Settings

ANOTHER = "the event topic was deleted and created again: it is read from its start"
LOAD = SyntheticPasses(partitions=40, groups=4)
KEYS = {partition_key(CLUSTER, "orders", number) for number in range(LOAD.partitions)}


@pytest.mark.parametrize(
    ("known", "found", "ends", "expected"),
    [
        ("a", "a", {0: 1}, False),
        ("a", "b", {0: 90}, True),
        # Before Kafka 2.8, and at the first start of a version that keeps the id.
        (None, "b", {0: 10, 1: 20}, False),
        (None, None, {0: 10, 1: 19}, True),
        # Partitions were added, or are not described.
        ("a", None, {0: 10, 1: 20, 2: 0}, False),
        (None, None, {}, False),
    ],
)
def test_a_topic_is_told_by_its_id_else_by_an_end_below_what_was_read(
    known: str | None, found: str | None, ends: dict[int, int], expected: bool
) -> None:
    assert is_another_topic(known, found, {0: 10, 1: 20}, ends) is expected


def shows(settings: Settings, number: int) -> bool:
    """Whether the views of all partitions are of this pass or a later one.

    One that is refreshed by nothing else is 10 s older than the next.
    """
    return {key for key, at in shown_at(settings).items() if at >= number} == KEYS


@pytest.mark.spark
@pytest.mark.slow
def test_a_topic_that_was_created_again_is_read_from_its_start(
    settings: Settings, stream: Callable[..., StreamProcess]
) -> None:
    """Down, with a new topic that grows past the checkpoint, and then while the stream runs."""
    publish_passes(settings, LOAD, range(3))
    stream(settings, "--once").ends_with(0)
    delete_event_topic(settings)
    # More records than before: no end is below the checkpoint.
    sent = len(publish_passes(settings, LOAD, range(30, 39)))
    running = stream(settings)
    running.wait_for(lambda: shows(settings, 30), "the views of the new topic", 240)
    running.wait_for(
        lambda: sum(int(each["records"]) for each in running.lines("batch")) == sent, "all records"
    )
    assert len(running.lines(ANOTHER)) == 1

    delete_event_topic(settings)
    publish_passes(settings, LOAD, range(50, 53))
    running.wait_for(lambda: shows(settings, 50), "the views of the third topic", 240)
    assert running.terminate()[0] == 0
    stream(settings, "--once").ends_with(0)


@pytest.mark.spark
@pytest.mark.slow
def test_partitions_that_are_added_are_told_at_once(
    settings: Settings, stream: Callable[..., StreamProcess]
) -> None:
    publish_passes(settings, LOAD, [0])
    publisher = Publisher(settings)
    running = stream(settings)
    running.wait_for(lambda: bool(running.lines("batch")), "batch", 240)
    admin: Any = make_admin(settings.kafka)
    admin.create_partitions({settings.topics.replica_state: 6})
    admin.close()
    said = mismatch(settings.topics.replica_state, 6, 4, settings.topics)
    assert PROCEDURE in said
    running.wait_for(lambda: len(running.lines(said)) == 1, "the procedure")
    for place, value in LOAD.records(20):
        publisher.send(place, value)
    publisher.close()
    running.wait_for(lambda: shows(settings, 20), "the next pass")
