"""Delivery in the one run of the scenes: from a fault on a real cluster to the message behind a real Alertmanager, on both ways.

By Prometheus' rules, and by `tidemark export` itself. A message counts when it is the first to tell of some alert.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cluster.test_scenes import records_of, row_of
from tests.conftest import missing
from tests.delivery.ways import Deliveries, Message, news
from tests.scenes import Scenes
from tidemark.core.identity import alert_name
from tidemark.demo.expectations import FOLLOWER, PAUSED, UNCLEAN
from tidemark.demo.report import PAGE
from tidemark.detect import DETECTORS

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow]

FOLLOWER_ALERTS = {"KafkaFollowerLag", "KafkaFollowerUnreachable"}
LOST = {"KafkaUncleanElection", "KafkaCommittedDataLoss"}
# From the exporter's delivery to its own webhook until Alertmanager surely has the same alert.
SETTLED_SECONDS = 1.0
# What a rule tells at once. The other rules wait longer than the scenes take, but for one where the machine is slow.
TOLD_BY_RULES = {
    alert_name(detector.id) for detector in DETECTORS.values() if detector.kind == "event"
} | {"KafkaOffline"}


@pytest.fixture(scope="module", params=["by_rules", "direct"])
def either(request: pytest.FixtureRequest, scenes: Scenes) -> list[Message]:
    return told(getattr(scenes, request.param))


def told(deliveries: Deliveries | None) -> list[Message]:
    if deliveries is None:
        missing(
            "the scenes ran without Prometheus and Alertmanager (make system installs them as root on Debian)"
        )
    return news(deliveries)


def about(messages: list[Message], alerts: set[str]) -> list[Message]:
    return [
        message
        for message in messages
        if any(alert.name in alerts and alert.severity == PAGE for alert in message.alerts)
    ]


def fault(scenes: Scenes, scene: str, alert: str) -> float:
    at: float = row_of(scenes, scene, alert)["fault_at"]
    return at


def test_a_loss_and_the_election_that_brought_it_are_one_message(
    scenes: Scenes, either: list[Message]
) -> None:
    (message,) = about(either, LOST)
    assert message.names == LOST
    assert message.at > fault(scenes, UNCLEAN, "KafkaCommittedDataLoss")


def test_each_page_is_one_message(either: list[Message]) -> None:
    pages = [
        {alert.name for alert in message.alerts if alert.severity == PAGE} for message in either
    ]
    assert max(Counter(name for page in pages for name in page).values()) == 1, pages


def test_rules_tell_of_events_alone_and_page_nobody_before_the_fault(scenes: Scenes) -> None:
    messages = told(scenes.by_rules)
    assert {name for message in messages for name in message.names} <= TOLD_BY_RULES
    pages = [
        message.at
        for message in messages
        if any(alert.severity == PAGE for alert in message.alerts)
    ]
    assert min(pages) > fault(scenes, UNCLEAN, "KafkaOffline")


def test_an_offline_partition_is_told_before_the_loss(scenes: Scenes) -> None:
    messages = told(scenes.direct)
    (message,) = about(messages, {"KafkaOffline"})
    assert message.names == {"KafkaOffline"}
    assert fault(scenes, UNCLEAN, "KafkaOffline") < message.at < about(messages, LOST)[0].at


def test_all_that_a_paused_follower_brings_is_one_message(scenes: Scenes) -> None:
    """Its group could tell of more only after Alertmanager's interval, and another group would tell at once.

    Which alerts the first message holds is a matter of when each came: those that the exporter had delivered by then.
    """
    rows = [row for row in scenes.report if row["scene"] == PAUSED and row["expected"]]
    began, ended = (
        fault(scenes, PAUSED, "KafkaFollowerLag"),
        max(row["received_at"] for row in rows),
    )
    found = [(message, message.since(began - 2, ended)) for message in told(scenes.direct)]
    ((message, alerts),) = [(message, alerts) for message, alerts in found if alerts]
    delivered = {
        row["alert"]
        for row in rows
        if row["alert"] in FOLLOWER_ALERTS and row["received_at"] < message.at - SETTLED_SECONDS
    }
    assert delivered, (rows, message)
    assert message.names >= delivered
    assert {alert.labels["broker"] for alert in alerts} == {str(FOLLOWER)}


def test_nothing_comes_twice_where_the_exporter_delivers_itself(scenes: Scenes) -> None:
    """Every alert at that Alertmanager is one that the exporter delivered to the scenes' own webhook too; none is a rule's."""
    delivered = [
        each["labels"]
        for post in records_of(scenes.workdir / "webhooks.jsonl")
        for each in post["alerts"]
    ]
    found = [alert.labels for message in told(scenes.direct) for alert in message.alerts]
    assert [labels for labels in found if labels not in delivered] == []
