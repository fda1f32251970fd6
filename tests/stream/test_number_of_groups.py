"""The steps of docs/operations.md, "Change the number of groups", while alerts are open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import CLUSTER, SyntheticPasses
from tests.stream.topics import publish_passes, read_all
from tidemark.core.errors import ConfigError
from tidemark.core.identity import partition_key
from tidemark.core.records import Alert, View, decode_record
from tidemark.kafka.client import make_admin
from tidemark.kafka.topics import PROCEDURE, TopicMismatchError, ensure_topics, topic_states
from tidemark.settings import Settings
from tidemark.stream.checkpoint import (
    FILE,
    check_fixed_settings,
    decode_fixed_settings,
    fixed_settings,
)
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]
BEFORE, AFTER = 4, 6
# In pass 3 every fifth partition loses its leader, until pass 8.
LOAD = SyntheticPasses(partitions=40, groups=BEFORE, offline_every=5)


def send(settings: Settings, passes: range) -> None:
    """Passes as a collector with these settings publishes them."""
    publish_passes(settings, LOAD._replace(groups=settings.topics.partitions), passes)


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


def test_the_documented_steps_lead_to_another_number_of_groups(
    settings: Settings, stream: Callable[..., StreamProcess], tmp_path: Path
) -> None:
    send(settings, range(7))
    stream(settings, "--once").ends_with(0)
    before = firing(settings)
    assert len(before) == LOAD.partitions // LOAD.offline_every

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
    keys = {partition_key(CLUSTER, "orders", number) for number in range(LOAD.partitions)}
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
