"""Delivery in the run of the scenes: from a fault to the message behind a real Alertmanager.

On both paths: by Prometheus' rules, and by `tidemark export` itself. A message counts when it is
the first with some alert.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conftest import missing
from tests.delivery.paths import Deliveries, Message, new_messages
from tests.scenes.run import Scenes
from tests.scenes.test_report import records_of, row_of
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS
from tidemark_lab.demo.expected_alerts import FOLLOWER, PAUSED, UNCLEAN
from tidemark_lab.demo.report import PAGE

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow]

FOLLOWER_ALERTS = {"KafkaFollowerLag", "KafkaBrokerDown"}
LOST = {"KafkaUncleanElection", "KafkaCommittedDataLoss"}
# After the exporter's delivery to its own webhook, Alertmanager has the same alert.
SETTLED_SECONDS = 1.0
# Rules that fire at once. The others wait longer than the scenes take, unless the machine is slow.
FIRED_BY_RULES = {
    alert_name(detector.id) for detector in DETECTORS.values() if detector.kind == "event"
} | {"KafkaOffline"}


@pytest.fixture(scope="module", params=["by_rules", "direct"])
def either(request: pytest.FixtureRequest, scenes: Scenes) -> list[Message]:
    return messages_of(getattr(scenes, request.param))


def messages_of(deliveries: Deliveries | None) -> list[Message]:
    if deliveries is None:
        missing(
            "the scenes ran without Prometheus and Alertmanager "
            "(make system installs them as root on Debian)"
        )
    return new_messages(deliveries)


def about(messages: list[Message], alerts: set[str]) -> list[Message]:
    return [
        message
        for message in messages
        if any(alert.name in alerts and alert.severity == PAGE for alert in message.alerts)
    ]


def fault(scenes: Scenes, scene: str, alert: str) -> float:
    at: float = row_of(scenes, scene, alert)["fault_at"]
    return at


def test_a_loss_and_its_election_are_one_message(scenes: Scenes, either: list[Message]) -> None:
    (message,) = about(either, LOST)
    assert message.names == LOST
    assert message.at > fault(scenes, UNCLEAN, "KafkaCommittedDataLoss")


def test_each_page_is_one_message(either: list[Message]) -> None:
    pages = [
        {alert.name for alert in message.alerts if alert.severity == PAGE} for message in either
    ]
    assert max(Counter(name for page in pages for name in page).values()) == 1, pages


def test_rules_fire_only_for_events_and_do_not_page_before_the_fault(scenes: Scenes) -> None:
    messages = messages_of(scenes.by_rules)
    assert {name for message in messages for name in message.names} <= FIRED_BY_RULES
    pages = [
        message.at
        for message in messages
        if any(alert.severity == PAGE for alert in message.alerts)
    ]
    assert min(pages) > fault(scenes, UNCLEAN, "KafkaOffline")


def test_the_offline_message_comes_before_the_loss(scenes: Scenes) -> None:
    messages = messages_of(scenes.direct)
    (message,) = about(messages, {"KafkaOffline"})
    assert message.names == {"KafkaOffline"}
    assert fault(scenes, UNCLEAN, "KafkaOffline") < message.at < about(messages, LOST)[0].at


def test_the_alerts_of_a_paused_follower_are_one_message(scenes: Scenes) -> None:
    """Another group would notify at once, this one again only after Alertmanager's interval.

    The message holds the alerts that the exporter had delivered by then.
    """
    rows = [row for row in scenes.report if row["scene"] == PAUSED and row["expected"]]
    began, ended = (
        fault(scenes, PAUSED, "KafkaFollowerLag"),
        max(row["received_at"] for row in rows),
    )
    found = [(message, message.since(began - 2, ended)) for message in messages_of(scenes.direct)]
    ((message, alerts),) = [(message, alerts) for message, alerts in found if alerts]
    delivered = {
        row["alert"]
        for row in rows
        if row["alert"] in FOLLOWER_ALERTS and row["received_at"] < message.at - SETTLED_SECONDS
    }
    assert delivered, (rows, message)
    # A worse alert about the partition may be open in place of the lag by then.
    assert message.names >= delivered - {"KafkaFollowerLag"}
    assert {alert.labels["broker"] for alert in alerts} == {str(FOLLOWER)}


def test_the_exporters_alertmanager_gets_nothing_from_rules(scenes: Scenes) -> None:
    """That Alertmanager has only alerts that the exporter delivered, none from a rule."""
    delivered = [
        each["labels"]
        for post in records_of(scenes.workdir / "webhooks.jsonl")
        for each in post["alerts"]
    ]
    found = [alert.labels for message in messages_of(scenes.direct) for alert in message.alerts]
    assert [labels for labels in found if labels not in delivered] == []
