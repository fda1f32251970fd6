"""`tidemark export` as a process with a real Kafka: both paths of delivery, a dry run, kill -9."""

from __future__ import annotations

import signal
import time
from contextlib import closing
from http import HTTPStatus
from pathlib import Path

import pytest
import requests

from tests.delivery.exporter import Exporter, Stream, fired_now, settings_for
from tests.delivery.services import RealAlertmanager, free_port, wait_for
from tests.export.make import cluster_view, open_alert, view
from tidemark.settings import Alertmanager, Receiver
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.receiver import WebhookReceiver

pytestmark = pytest.mark.cluster


def fingerprints(receiver: WebhookReceiver) -> list[str]:
    return [each.fingerprint or "" for each in receiver.alerts() if each.name.startswith("Kafka")]


def partitions(receiver: WebhookReceiver) -> set[str]:
    return {each.labels["partition"] for each in receiver.alerts()}


def test_both_paths_a_dry_run_an_outage_and_a_kill(cluster: LocalCluster, tmp_path: Path) -> None:
    settings = settings_for(cluster, "delivery")
    settings.export.stale_seconds = 600.0
    with (
        WebhookReceiver() as direct,
        WebhookReceiver() as behind,
        RealAlertmanager(tmp_path, behind.url) as manager,
        closing(Stream(settings)) as stream,
    ):
        settings.notify.receivers = [Receiver(name="hook", url=direct.url)]
        settings.notify.alertmanagers = [Alertmanager(name="main", urls=[manager.url])]
        stream.write(cluster_view(at=time.time()))
        with closing(Exporter(settings, tmp_path)) as exporter:
            first = fired_now(0)
            stream.write(first, view(partition=0, at=time.time(), alerts=[open_alert(first)]))
            wait_for(
                lambda: fingerprints(direct) == [first.fingerprint],
                what="the webhook receives the alert",
            )
            wait_for(
                lambda: fingerprints(behind) != [], what="Alertmanager's webhook receives the alert"
            )
            assert partitions(behind) == {"0"}
            assert exporter.metric('tidemark_delivery_oldest_seconds{receiver="hook"}') == 0

            shown = exporter.dry_run()
            assert "1 open alert, and where each belongs:" in shown
            assert "hook: nothing would be sent" in shown
            assert "main: 1 post would be sent" in shown

            direct.answer = HTTPStatus.SERVICE_UNAVAILABLE
            loss = fired_now(9, "KafkaCommittedDataLoss", severity="critical", incident="ab")
            missed = [fired_now(1), fired_now(2), loss]
            stream.write(*missed)
            wait_for(
                lambda: (
                    (exporter.metric('tidemark_delivery_queue_length{receiver="hook"}') or 0) == 3
                ),
                what="three alerts wait",
            )
            assert "hook: 1 post would be sent" in exporter.dry_run()
            wait_for(lambda: partitions(behind) == {"0", "1", "2", "9"}, what="the group has grown")
            time.sleep(2)
            messages = len(behind.deliveries())
            exporter.end(signal.SIGKILL)
            direct.answer = HTTPStatus.OK
            exporter.start()
            wait_for(
                lambda: len(fingerprints(direct)) >= 4, what="the waiting alerts are delivered"
            )
            time.sleep(1)
            assert sorted(fingerprints(direct)) == sorted(
                each.fingerprint for each in [first, *missed]
            )
            wait_for(
                lambda: manager.partitions() >= {"0", "1", "2", "9"},
                what="Alertmanager has all open alerts",
            )
            # Alertmanager received everything again after the kill, and sends no new message.
            time.sleep(2)
            assert len(behind.deliveries()) == messages
            assert exporter.end(signal.SIGTERM) < 10
            assert exporter.process.returncode == 0


# Two exporters over the same topics: one delivers, the other serves only metrics and pages.


OPEN = 'tidemark_alert_open{kafka_cluster="east",alertname="KafkaFollowerLag",severity="warning"}'


class Silent(Exporter):
    def command(self, *arguments: str) -> list[str]:
        return super().command("--no-notify", *arguments)


@pytest.mark.soak
def test_each_alert_is_delivered_once_and_both_show_it(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    settings = settings_for(cluster, "two-exporters")
    settings.export.stale_seconds = 600.0
    folders = [tmp_path / name for name in ("delivering", "silent")]
    for folder in folders:
        folder.mkdir()
    with WebhookReceiver() as hook, closing(Stream(settings)) as stream:
        settings.notify.receivers = [Receiver(name="hook", url=hook.url)]
        stream.write(cluster_view(at=time.time()))
        with closing(Exporter(settings, folders[0])) as delivering:
            settings.export.listen = f"127.0.0.1:{free_port()}"
            with closing(Silent(settings, folders[1])) as silent:
                fired = [fired_now(number) for number in range(5)]
                for number, each in enumerate(fired):
                    stream.write(
                        each, view(partition=number, at=time.time(), alerts=[open_alert(each)])
                    )
                for exporter in (delivering, silent):
                    wait_for(
                        lambda e=exporter: e.metric(OPEN) == 5,  # type: ignore[misc]
                        what="it shows five open alerts",
                    )
                    listed = requests.get(f"{exporter.url}/api/v1/alerts", timeout=5).json()
                    assert len(listed["items"]) == 5
                wait_for(lambda: len(hook.alerts()) >= 5, what="five alerts are delivered")
                # The one that delivers ends: the other does not take over.
                delivering.end(signal.SIGTERM)
                stream.write(fired_now(7))
                wait_for(
                    lambda: (
                        silent.metric(
                            'tidemark_alerts_fired_total{kafka_cluster="east",'
                            'alertname="KafkaFollowerLag",severity="warning"}'
                        )
                        == 6
                    ),
                    what="it counts the sixth alert",
                )
                found = [each.fingerprint for each in hook.alerts()]
                assert len(found) == 5
                assert set(found) == {each.fingerprint for each in fired}
                delivering.start()
                wait_for(lambda: len(hook.alerts()) >= 6, what="the sixth alert is delivered")
                assert len(hook.alerts()) == 6
