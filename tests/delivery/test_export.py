"""`tidemark export` with a real Kafka: both ways of delivery, a dry run, an outage, kill -9."""

from __future__ import annotations

import signal
import time
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.delivery.alertmanager import RealAlertmanager, wait_for
from tests.delivery.exporter import Exporter, Stream, happened, settings_for
from tests.export.make import cluster_view, open_alert, view
from tidemark.local.cluster import LocalCluster
from tidemark.local.receiver import WebhookReceiver
from tidemark.settings import Alertmanager, Receiver

pytestmark = pytest.mark.cluster


def marks(receiver: WebhookReceiver) -> list[str]:
    return [each.fingerprint or "" for each in receiver.alerts() if each.name.startswith("Kafka")]


def test_both_ways_a_dry_run_an_outage_and_a_kill(cluster: LocalCluster, tmp_path: Path) -> None:
    with (
        WebhookReceiver() as direct,
        WebhookReceiver() as behind,
        RealAlertmanager(tmp_path, behind.url) as manager,
    ):
        settings = settings_for(cluster, "delivery")
        settings.export.stale_seconds = 600.0
        settings.notify.receivers = [Receiver(name="hook", url=direct.url)]
        settings.notify.alertmanagers = [Alertmanager(name="main", urls=[manager.url])]
        stream = Stream(settings)
        stream.write(cluster_view(at=time.time()))
        exporter = Exporter(settings, tmp_path)
        try:
            first = happened(0)
            stream.write(first, view(partition=0, at=time.time(), alerts=[open_alert(first)]))
            wait_for(lambda: marks(direct) == [first.fingerprint], 20, "the webhook is told")
            wait_for(lambda: marks(behind) != [], 20, "Alertmanager's webhook is told")
            assert {each.labels["partition"] for each in behind.alerts()} == {"0"}
            assert exporter.metric('tidemark_delivery_oldest_seconds{receiver="hook"}') == 0

            told = exporter.dry_run()
            assert "1 open alert, and where each belongs:" in told
            assert "hook: nothing would be sent" in told
            assert "main: 1 post would be sent" in told

            direct.answer = HTTPStatus.SERVICE_UNAVAILABLE
            loss = happened(9, "KafkaCommittedDataLoss", severity="critical", incident="ab")
            missed = [happened(1), happened(2), loss]
            stream.write(*missed)
            wait_for(
                lambda: (
                    (exporter.metric('tidemark_delivery_queue_length{receiver="hook"}') or 0) == 3
                ),
                20,
                "three wait",
            )
            assert "hook: 2 posts would be sent" in exporter.dry_run()
            wait_for(
                lambda: (
                    {each.labels["partition"] for each in behind.alerts()} == {"0", "1", "2", "9"}
                ),
                20,
                "the group has grown",
            )
            time.sleep(2)
            messages = len(behind.deliveries())
            exporter.end(signal.SIGKILL)
            direct.answer = HTTPStatus.OK
            exporter.start()
            wait_for(lambda: len(marks(direct)) >= 4, 20, "what waited is told after the kill")
            time.sleep(1)
            assert sorted(marks(direct)) == sorted(each.fingerprint for each in [first, *missed])
            wait_for(
                lambda: manager.partitions() >= {"0", "1", "2", "9"},
                20,
                "Alertmanager knows all that is open",
            )
            # Told everything anew after the kill, Alertmanager has nothing new to notify of.
            time.sleep(2)
            assert len(behind.deliveries()) == messages
            assert exporter.end(signal.SIGTERM) < 10
            assert exporter.process.returncode == 0
        finally:
            exporter.process.kill()
            exporter.process.wait(10)
            stream.close()
