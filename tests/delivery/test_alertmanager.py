"""The direct push to a real Alertmanager: alerts arrive, survive its restart, and resolve."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.delivery.exporter import fired_now, resolved_now
from tests.delivery.services import RealAlertmanager, free_port, wait_for
from tests.notify.rig import MemoryStore
from tidemark.core.records import Alert
from tidemark.settings import Alertmanager, Cluster, Notify, Settings
from tidemark.web.webhook_client import make_clients
from tidemark_exporters.notify.delivery import Delivery, make_delivery
from tidemark_lab.brokers.receiver import ReceivedAlert, WebhookReceiver

RESTART_SECONDS = 60


class Pushing:
    """Delivery as the exporter runs it, to a real instance and to a dead address; passes flow."""

    def __init__(self, manager: RealAlertmanager) -> None:
        dead = f"http://127.0.0.1:{free_port()}"
        route = Alertmanager(name="main", urls=[dead, manager.url], timeout_seconds=2.0)
        notify = Notify(
            alertmanagers=[route],
            heartbeat_receiver="main",
            external_url="http://tidemark.example",
        )
        settings = Settings(clusters=[Cluster(name="east")], notify=notify)
        self.store = MemoryStore()
        clients = {"main": make_clients(route)}
        self.delivery: Delivery = make_delivery(settings, clients, {0: 0}, lambda *_: self.store)
        self.offset = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self.delivery.start()
        self._thread.start()

    def _tick(self) -> None:
        while not self._stopped.wait(0.5):
            self.delivery.tick({"east": time.time()})

    def write(self, *alerts: Alert) -> None:
        self.delivery.alerts(
            [(each, (0, self.offset + number)) for number, each in enumerate(alerts)]
        )
        self.offset += len(alerts)

    def close(self) -> None:
        self._stopped.set()
        self._thread.join(5)
        self.delivery.stop(8)


@pytest.fixture(scope="module")
def hook() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def manager(
    hook: WebhookReceiver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealAlertmanager]:
    with RealAlertmanager(tmp_path_factory.mktemp("alertmanager"), hook.url) as running:
        yield running


@pytest.fixture
def pushing(manager: RealAlertmanager) -> Iterator[Pushing]:
    with closing(Pushing(manager)) as made:
        yield made


def received(hook: WebhookReceiver, partition: str, status: str) -> list[ReceivedAlert]:
    return [
        each
        for each in hook.alerts()
        if each.labels.get("partition") == partition and each.status == status
    ]


def test_an_alert_arrives_comes_back_after_a_restart_and_ends(
    manager: RealAlertmanager, hook: WebhookReceiver, pushing: Pushing
) -> None:
    fired = fired_now(0)
    pushing.write(fired)
    wait_for(lambda: received(hook, "0", "firing"), 10, "the webhook receives the alert")
    (delivered,) = received(hook, "0", "firing")
    assert delivered.labels == fired.labels
    assert delivered.annotations.pop("runbook_url").startswith(
        "http://tidemark.example/docs/runbooks/kafkafollowerlag?cluster=east"
    )
    assert delivered.annotations == fired.annotations
    (known,) = (each for each in manager.active() if each["labels"].get("partition") == "0")
    assert known["generatorURL"] == (
        "http://tidemark.example/partition?cluster=east&topic=orders&partition=0"
        f"#alert-{fired.fingerprint}"
    )
    wait_for(
        lambda: "TidemarkWatchdog" in {each["labels"]["alertname"] for each in manager.active()},
        10,
        "the heartbeat arrives",
    )
    wait_for(lambda: pushing.store.commits[0].offset == 1, 5, "the delivered record is committed")

    manager.stop()
    manager.start()
    assert manager.active() == []
    back = wait_for(
        lambda: manager.partitions() >= {"0"}, RESTART_SECONDS, "the alert is back after a restart"
    )
    assert back < RESTART_SECONDS

    pushing.write(resolved_now(fired))
    wait_for(lambda: received(hook, "0", "resolved"), 10, "the webhook receives the resolution")
    # Over all of it: once each, although the alert was posted again and Alertmanager restarted.
    assert [each.status for each in hook.alerts() if each.labels.get("partition") == "0"] == [
        "firing",
        "resolved",
    ]
    assert received(hook, "0", "resolved")[0].annotations["reason"] == "cleared"


def test_one_refused_alert_delays_no_other(manager: RealAlertmanager, pushing: Pushing) -> None:
    good = [fired_now(number) for number in range(100, 120)]
    bad = fired_now(13)
    bad.labels["no-label"] = "x"
    pushing.write(*good[:7], bad, *good[7:])
    wait_for(
        lambda: manager.partitions() >= {str(number) for number in range(100, 120)},
        10,
        "the good alerts are known",
    )
    assert "13" not in manager.partitions()
    wait_for(
        lambda: pushing.store.commits[0].offset == 21,
        5,
        "delivered and refused records are committed",
    )
    outcomes = pushing.delivery.senders[0].report().outcomes
    assert (outcomes["delivered"], outcomes["rejected"]) == (20, 1)
