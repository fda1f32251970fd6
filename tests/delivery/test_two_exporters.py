"""Two exporters over the same topics: one delivers, the other serves only metrics and pages."""

from __future__ import annotations

import signal
import time
from contextlib import closing
from pathlib import Path

import pytest
import requests

from tests.delivery.exporter import Exporter, Stream, fired_now, settings_for
from tests.delivery.services import free_port, wait_for
from tests.export.make import cluster_view, open_alert, view
from tidemark.settings import Receiver
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.receiver import WebhookReceiver

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

OPEN = 'tidemark_alert_open{kafka_cluster="east",alertname="KafkaFollowerLag",severity="warning"}'


class Silent(Exporter):
    def command(self, *arguments: str) -> list[str]:
        return super().command("--no-notify", *arguments)


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
