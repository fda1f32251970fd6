"""From an alert record to a message, by Prometheus and directly: one for each cause on each way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.stage import Stage, exporting
from tests.dashboards.story import CLUSTER
from tests.delivery.alertmanager import free_port, wait_for
from tests.delivery.ways import Ways, news
from tests.export.make import alert, cluster_view, open_alert, view
from tidemark.core.records import Alert, encode_record, view_key
from tidemark.local.receiver import WebhookReceiver

PLACES = [("orders", partition) for partition in range(4)]
# A scrape, an evaluation, the group's wait, and a busy machine.
TOLD_SECONDS = 30.0
# Longer than `group_wait`, and than the `group_interval` of a loss: a repetition would have come.
AFTER_SECONDS = 12.0
# A state fires after three passes. Where these are seconds apart, its condition began longer ago
# than `group_wait`.
BEGAN_SECONDS = 15.0


class Source:
    """Writes what the stream would: passes without end, and the alerts of a fault."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._open: list[Alert] = []

    def tick(self) -> None:
        now = time.time()
        views = self._stage.topics["tidemark.partition-views"]
        views.write(CLUSTER, encode_record(cluster_view(CLUSTER, at=now)))
        for topic, partition in PLACES:
            mine = [
                open_alert(each)
                for each in self._open
                if each.labels["partition"] == str(partition)
            ]
            views.write(
                view_key(CLUSTER, topic, partition),
                encode_record(view(topic, partition, kafka_cluster=CLUSTER, at=now, alerts=mine)),
            )

    def fire(self, *alerts: Alert) -> None:
        self._open += alerts
        for each in alerts:
            self._stage.topics["tidemark.alerts"].write(each.fingerprint, encode_record(each))


def happened(name: str, partition: int, severity: str = "warning", **options: Any) -> Alert:
    now = time.time()
    return alert(
        name,
        at=now,
        starts_at=now - BEGAN_SECONDS,
        severity=severity,
        cluster=CLUSTER,
        partition=str(partition),
        **options,
    )


@pytest.fixture
def ways(tmp_path: Path) -> Iterator[Ways]:
    with Ways(tmp_path) as running:
        yield running


def test_one_message_for_one_cause_on_each_way(ways: Ways) -> None:
    stage, port = Stage(), free_port()
    source = Source(stage)
    source.tick()
    with WebhookReceiver() as receiver, exporting(stage, port, receiver.url, ways.direct.url):
        ways.watch(f"127.0.0.1:{port}", health=True)

        def until(done: Any, seconds: float, what: str) -> None:
            def look() -> bool:
                source.tick()
                return bool(done())

            wait_for(look, seconds, what)

        until(ways.scraped, TOLD_SECONDS, "Prometheus knows the counters before the fault")
        # Broker 2 hangs: every partition it follows tells so, some of it later.
        source.fire(*(happened("KafkaFollowerLag", partition) for _, partition in PLACES))
        source.fire(*(happened("KafkaHwStalled", partition) for _, partition in PLACES))
        # A suspected unclean election, some time before: no page of the same name waits behind it.
        source.fire(
            happened(
                "KafkaUncleanElection",
                3,
                broker="1",
                incident="a3",
                evidence={"verdict": "suspected"},
            )
        )
        until(
            lambda: ways.direct.told("KafkaFollowerLag"), TOLD_SECONDS, "the lag is told directly"
        )
        until(
            lambda: ways.wait("KafkaUncleanElection", 0),
            TOLD_SECONDS,
            "the suspicion is told on both ways",
        )
        # Broker 2 is elected uncleanly while all of that is open, and what it never had is gone.
        elections = [
            happened(
                "KafkaUncleanElection",
                n,
                "critical",
                incident=f"a{n}",
                evidence={"verdict": "unclean"},
            )
            for n in (0, 1)
        ]
        losses = [
            happened(
                "KafkaCommittedDataLoss",
                n,
                "critical",
                incident=f"b{n}",
                evidence={"proven": [1000, 1007]},
            )
            for n in (0, 1)
        ]
        source.fire(*elections)
        began = time.monotonic()
        until(lambda: time.monotonic() - began > 1, 5, "a second later")
        source.fire(*losses)
        until(
            lambda: ways.wait("KafkaCommittedDataLoss", 0),
            TOLD_SECONDS,
            "both ways tell of the loss",
        )
        began = time.monotonic()
        until(
            lambda: time.monotonic() - began > AFTER_SECONDS,
            2 * AFTER_SECONDS,
            "what would come twice has come",
        )

    direct, by_rules = news(ways.direct.hook.deliveries()), news(ways.by_rules.hook.deliveries())
    suspicion, lost = (
        ({"KafkaUncleanElection"}, 1),
        {"KafkaUncleanElection", "KafkaCommittedDataLoss"},
    )
    hung = ({"KafkaFollowerLag", "KafkaHwStalled"}, 8)
    assert sorted([(told.names, len(told.alerts)) for told in direct[:2]], key=str) == sorted(
        [hung, suspicion], key=str
    )
    assert [(told.names, len(told.alerts)) for told in direct[2:]] == [(lost, 4)]
    # States wait there longer than a broker restart.
    assert [(told.names, len(told.alerts)) for told in by_rules] == [suspicion, (lost, 2)]
