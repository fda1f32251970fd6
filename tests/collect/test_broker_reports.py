"""Brokers that do not report on themselves: said once, and the passes go on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from structlog.testing import capture_logs

from tests.collect.fake_cluster import FakeCluster, outcomes
from tidemark.collect.codecs.topic_configuration import ALL_REPLICAS, TopicConfiguration
from tidemark.collect.collector import Collector
from tidemark.collect.connect.connection import NoAnswerError
from tidemark.collect.metadata.refusals import (
    NO_TOPIC,
    RECORDS,
    TOPICS,
    refusal_line,
    refusal_summary,
)
from tidemark.core.events import BrokerState


def test_brokers_that_refuse_give_no_event(cluster: FakeCluster) -> None:
    cluster.topic("t", 5)
    events = [event for _ in range(6) for event in cluster.run()]
    assert not any(isinstance(event, BrokerState) for event in events)
    refused = cluster.passes.reports.refused()
    assert refused == dict.fromkeys(("configuration", "log directories"), ("UNSUPPORTED_VERSION",))


def test_a_refusal_is_logged_once_per_change() -> None:
    answers = [{}, {"configuration": ("A",)}, {"configuration": ("A",)}, {}, {}]
    passes = SimpleNamespace(refused=lambda: answers.pop(0))
    collector: Any = SimpleNamespace(cluster=SimpleNamespace(name="c"), passes=passes, _refused={})
    with capture_logs() as logs:
        while answers:
            Collector._log_refusals(collector)
    assert [(line["log_level"], line["what"], line.get("reason")) for line in logs] == [
        ("warning", "configuration", "A"),
        ("info", "configuration", None),
    ]


def test_sizes_and_configuration_are_sent_once_after_each_read(cluster: FakeCluster) -> None:
    cluster.topic("t", 5)
    cluster.one()
    inventory = cluster.passes.inventory

    def told() -> tuple[object, ...]:
        """Of the next pass; a quiet partition is observed because something was read."""
        inventory.partitions["t", 0].due_at = 0.0
        seen = cluster.one()
        sizes = {s.broker: s.size_bytes for s in seen.samples if s.size_bytes is not None}
        return sizes, seen.unclean_leader_election, seen.throttled_replicas

    inventory.set_sizes(1, {("t", 0): 7, ("other", 0): 9})
    inventory.set_sizes(2, {("t", 0): 6})
    throttled = frozenset({(0, 2), (1, 3)})
    inventory.set_configurations({"t": TopicConfiguration(1, False, True, throttled)})
    assert told() == ({1: 7, 2: 6}, True, [2])
    assert told() == ({}, None, None)
    # Broker 1 no longer lists its replica: its size is unknown.
    inventory.set_sizes(1, {})
    inventory.set_sizes(3, {("t", 0): 5})
    inventory.set_configurations({"t": TopicConfiguration(1, False, False, ALL_REPLICAS)})
    assert told() == ({2: 6, 3: 5}, False, [1, 2, 3])
    # An observation that was lost is not known to the stream.
    inventory.partitions["t", 0].forget_quiet_state()
    assert told() == ({2: 6, 3: 5}, False, [1, 2, 3])


def test_a_broker_that_answers_nonsense_is_named_at_the_second_time(cluster: FakeCluster) -> None:
    """Its samples go on."""
    reports = cluster.passes.reports
    cluster.run(3)

    async def nonsense() -> None:
        raise NoAnswerError("disconnected")

    async def twice() -> None:
        for _ in range(2):
            asked.append(await reports._ask("configuration", 9, nonsense))
            told.append(reports.refused().get("configuration"))

    asked: list[object] = []
    told: list[object] = []
    cluster.passes.loop.run(twice)
    assert asked == [None, None]
    assert told == [("UNSUPPORTED_VERSION",), ("UNSUPPORTED_VERSION", "disconnected")]
    assert outcomes(cluster.run()) == dict.fromkeys((1, 2, 3), "ok")


def test_topics_that_may_not_be_read_are_named_until_they_may(cluster: FakeCluster) -> None:
    for name in ("d", "c", "b", "a"):
        cluster.topic(name, 5)
    cluster.set(fetch_error=29)
    cluster.run(2)
    assert cluster.passes.refused()["records"] == ("TOPIC_AUTHORIZATION_FAILED (a, b, c, …)",)
    # A broker that does not answer has not granted anything.
    cluster.brokers[1].close()
    cluster.run(2)
    assert "records" in cluster.passes.refused()
    cluster.set(fetch_error=0)
    cluster.run()
    assert "records" not in cluster.passes.refused()


def test_a_cluster_that_shows_no_topic_is_not_called_a_refusal(cluster: FakeCluster) -> None:
    # It has none, or hides them all.
    cluster.run(2)
    refused = cluster.passes.refused()
    assert refused[TOPICS] == (NO_TOPIC,)
    line = refusal_line(TOPICS, refused[TOPICS])
    assert line.startswith("no topic in the metadata: no topic is visible")
    where = "(docs/permissions.md of `tidemark assets`)"
    both = {TOPICS: (NO_TOPIC,), RECORDS: ("X",)}
    assert [refusal_summary(each) for each in ({TOPICS: (NO_TOPIC,)}, both)] == [
        f"{NO_TOPIC} {where}",
        f"{NO_TOPIC}; refused: records {where}",
    ]
    assert refusal_line(RECORDS, ("X",)).startswith("records refused (X): high watermarks")
    collector: Any = SimpleNamespace(
        cluster=SimpleNamespace(name="c"), passes=cluster.passes, _refused={}
    )
    with capture_logs() as logs:
        Collector._log_refusals(collector)
    assert [each["event"] for each in logs if each["what"] == TOPICS] == ["no topic is visible"]
    cluster.topic("t", 5)
    cluster.run(2)
    assert TOPICS not in cluster.passes.refused()
