"""The event topic created again, and with other partitions: what the stream reads, and says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import CLUSTER, SyntheticPasses
from tests.stream.topics import Publisher, publish_passes, read_all
from tidemark.core.errors import ConfigError
from tidemark.core.identity import partition_key
from tidemark.core.records import Alert, View, decode_record
from tidemark.kafka.client import make_admin
from tidemark.kafka.topic_identity import is_another_topic
from tidemark.kafka.topics import (
    PROCEDURE,
    TopicMismatchError,
    ensure_topics,
    mismatch,
    topic_states,
)
from tidemark.settings import Settings
from tidemark.stream.checkpoint import (
    FILE,
    check_fixed_settings,
    decode_fixed_settings,
    fixed_settings,
)
from tidemark_lab.brokers.wait import wait_until

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


# The steps of docs/operations.md, "Change the number of groups", while alerts are open.


BEFORE, AFTER = 4, 6
# In pass 3 every fifth partition loses its leader, until pass 8.
REGROUPED = SyntheticPasses(partitions=40, groups=BEFORE, offline_every=5)


def send(settings: Settings, passes: range) -> None:
    """Passes as a collector with these settings publishes them."""
    publish_passes(settings, REGROUPED._replace(groups=settings.topics.partitions), passes)


def partitions_of(settings: Settings) -> int | None:
    admin: Any = make_admin(settings.kafka)
    topic = settings.topics.replica_state
    try:
        return topic_states(admin, [topic])[topic].partitions
    finally:
        admin.close()


def delete_event_topic(settings: Settings) -> None:
    """As kafka-topics.sh --delete, until it is gone."""
    admin: Any = make_admin(settings.kafka)
    admin.delete_topics([settings.topics.replica_state])
    admin.close()
    wait_until(lambda: partitions_of(settings) is None, 30.0, "the event topic is gone")


def firing(settings: Settings) -> dict[str, set[str]]:
    """Of partitions without a leader: fingerprint -> the ids under which it fired."""
    found: dict[str, set[str]] = {}
    for record in read_all(settings, settings.topics.alerts, 1):
        alert = decode_record(record.value)
        if not isinstance(alert, Alert) or alert.state != "firing":
            continue
        if alert.labels["alertname"] == "KafkaOffline":
            found.setdefault(alert.fingerprint, set()).add(alert.id)
    return found


def shown_at(settings: Settings) -> dict[str, int]:
    """The newest pass in the views of each partition. The views keep their Kafka partitions."""
    passes: dict[str, int] = {}
    for record in read_all(settings, settings.topics.partition_views, BEFORE):
        view = None if record.value is None else decode_record(record.value)
        if isinstance(view, View) and view.scope == "partition":
            passes[record.key.decode()] = view.pass_number
    return passes


@pytest.mark.spark
@pytest.mark.slow
def test_the_documented_steps_lead_to_another_number_of_groups(
    settings: Settings, stream: Callable[..., StreamProcess], tmp_path: Path
) -> None:
    send(settings, range(7))
    stream(settings, "--once").ends_with(0)
    before = firing(settings)
    assert len(before) == REGROUPED.partitions // REGROUPED.offline_every

    # Who sets the number alone is led to the steps, by the topic and then by the checkpoint.
    more = structs.replace(settings, topics=structs.replace(settings.topics, partitions=AFTER))
    with pytest.raises(TopicMismatchError) as caught:
        ensure_topics(more.kafka, more.topics)
    assert PROCEDURE in str(caught.value)

    # Step 2.
    delete_event_topic(settings)
    file = Path(settings.stream.checkpoint) / FILE
    found = decode_fixed_settings(file.read_text(encoding="utf-8"), "c")
    with pytest.raises(ConfigError) as refused:
        check_fixed_settings(found, fixed_settings(more), "c")
    assert PROCEDURE in str(refused.value)

    # Steps 3 and 4.
    new = structs.replace(
        more, stream=structs.replace(more.stream, checkpoint=str(tmp_path / "new"))
    )
    running = stream(new)
    running.wait_for(lambda: bool(running.lines("query started")), "the query", 240)
    assert partitions_of(new) == AFTER
    with pytest.raises(TopicMismatchError, match="has 6 partitions, but the configuration says 4"):
        ensure_topics(settings.kafka, settings.topics)
    send(new, range(9, 13))
    keys = {partition_key(CLUSTER, "orders", number) for number in range(REGROUPED.partitions)}
    running.wait_for(
        lambda: {key for key, at in shown_at(new).items() if at >= 9} == keys, "the views"
    )
    send(new, range(15, 19))
    running.wait_for(lambda: firing(new).keys() == before.keys(), "the same alerts")
    running.wait_for(
        lambda: all(len(ids) == 2 for ids in firing(new).values()), "new ids of the alerts"
    )
    assert running.terminate()[0] == 0
    assert read_all(new, new.topics.dead_letters, 1) == []
