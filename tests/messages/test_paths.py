"""From an alert record to a message, with real Prometheus and Alertmanager: one for each cause."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.stage import Stage, exporting
from tests.dashboards.story import CLUSTER
from tests.delivery.exporter import fired_now
from tests.delivery.paths import DeliveryPaths, delivery_paths, new_messages
from tests.delivery.services import free_port, tick_for, wait_for
from tests.export.make import cluster_view, open_alert, view
from tidemark.core.records import Alert, encode_record, view_key
from tidemark_lab.brokers.receiver import WebhookReceiver

PLACES = [("orders", partition) for partition in range(4)]
# A scrape, an evaluation, the group's wait, and a busy machine.
DELIVERY_SECONDS = 30.0
# Longer than a group waits and than the interval of a loss: a duplicate would arrive.
AFTER_SECONDS = 12.0
# A state fires after three passes: its condition began longer ago than a group waits.
BEGAN_SECONDS = 15.0


class Source:
    """Writes as the stream does: passes without end, and the alerts of a fault."""

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


def fired(name: str, partition: int, **options: Any) -> Alert:
    return fired_now(
        partition, name, starts_at=time.time() - BEGAN_SECONDS, cluster=CLUSTER, **options
    )


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[DeliveryPaths]:
    with delivery_paths(tmp_path) as running:
        yield running


def test_one_message_for_one_cause_on_each_path(paths: DeliveryPaths) -> None:
    stage, port = Stage(), free_port()
    source = Source(stage)
    source.tick()
    until = partial(wait_for, tick=source.tick)
    with WebhookReceiver() as receiver, exporting(stage, port, receiver.url, paths.direct.url):
        paths.watch(f"127.0.0.1:{port}", health=True)
        until(paths.has_scraped, DELIVERY_SECONDS, "Prometheus knows the counters before the fault")
        # Broker 2 hangs: alerts fire for every partition that it follows, some of them later.
        source.fire(*(fired("KafkaFollowerLag", partition) for _, partition in PLACES))
        source.fire(*(fired("KafkaHwStalled", partition) for _, partition in PLACES))
        # An earlier, suspected election: no page of the same name waits for it.
        suspected = {"verdict": "suspected"}
        source.fire(fired("KafkaUncleanElection", 3, broker="1", incident="a3", evidence=suspected))
        until(
            lambda: paths.direct.has_delivered("KafkaFollowerLag"),
            DELIVERY_SECONDS,
            "the direct path delivers the lag",
        )
        until(
            lambda: paths.wait("KafkaUncleanElection", 0),
            DELIVERY_SECONDS,
            "both paths deliver the suspicion",
        )
        # Broker 2 is elected uncleanly while all of that is open; the records it lacked are lost.
        election = partial(fired, "KafkaUncleanElection", severity="critical")
        loss = partial(fired, "KafkaCommittedDataLoss", severity="critical")
        unclean, proven = {"verdict": "unclean"}, {"proven": [1000, 1007]}
        elections = [election(n, incident=f"a{n}", evidence=unclean) for n in (0, 1)]
        losses = [loss(n, incident=f"b{n}", evidence=proven) for n in (0, 1)]
        source.fire(*elections)
        tick_for(1, source.tick)
        source.fire(*losses)
        until(
            lambda: paths.wait("KafkaCommittedDataLoss", 0),
            DELIVERY_SECONDS,
            "both paths deliver the loss",
        )
        tick_for(AFTER_SECONDS, source.tick)

    direct, by_rules = (
        [(message.names, len(message.alerts)) for message in new_messages(path.hook.deliveries())]
        for path in (paths.direct, paths.by_rules)
    )
    suspicion, lost = (
        ({"KafkaUncleanElection"}, 1),
        {"KafkaUncleanElection", "KafkaCommittedDataLoss"},
    )
    hung = ({"KafkaFollowerLag", "KafkaHwStalled"}, 8)
    assert sorted(direct[:2], key=str) == sorted([hung, suspicion], key=str)
    assert direct[2:] == [(lost, 4)]
    # Prometheus' rules for states wait longer than a broker restarts.
    assert by_rules == [suspicion, (lost, 2)]
