"""What delivery tells of itself, in metrics and in logs."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from tests.export.make import NOW, Clock, FakeReceiver, MemoryStore, alert
from tests.notify.test_pusher import FakeAlertmanager
from tidemark.settings import Alertmanager, Receiver, Settings
from tidemark.settings.maintenance import Maintenance
from tidemark_exporters.notify.assemble import make_transports
from tidemark_exporters.notify.delivery import Delivery, Maker
from tidemark_exporters.notify.metrics import DeliveryMetrics
from tidemark_exporters.notify.receiver import NotDeliveredError


class Rig:
    def __init__(self) -> None:
        self.clock = Clock()
        self.hook = FakeReceiver()
        settings = Settings()
        settings.notify.receivers = [Receiver(name="hook", url="http://127.0.0.1:1/")]
        settings.notify.alertmanagers = [Alertmanager(name="main", urls=["http://am:9093"])]
        # NOW is 2027-01-15 08:00 UTC.
        settings.notify.maintenance = [
            Maintenance(
                name="rack", topics=["quiet"], start="2027-01-15 07:00", end="2027-01-15 08:10"
            )
        ]
        maker = Maker(settings, {0: 0}, self.clock)
        self.courier = maker.courier(0, self.hook, MemoryStore())
        self.manager = FakeAlertmanager(self.clock, "main/am:9093")
        self.pusher = maker.pusher(0, [self.manager], MemoryStore())
        self.delivery = Delivery(settings, [self.courier, self.pusher], {0: 0}, self.clock)
        self.registry = CollectorRegistry()
        self.metrics = DeliveryMetrics(self.registry, self.delivery)

    def step(self, seconds: float) -> None:
        self.clock.now += seconds
        self.delivery.tick({"east": self.clock.now})
        self.courier.step()
        self.pusher.step(self.pusher.lines[0])
        self.metrics.refresh(self.clock.now)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"tidemark_{name}", labels)


def test_stalled_delivery_shows() -> None:
    rig = Rig()
    rig.hook.failure = rig.manager.failure = NotDeliveredError("HTTP 401", again=False, status=401)
    rig.delivery.alerts(
        [(alert("KafkaCommittedDataLoss", severity="critical", incident="ab"), (0, 0))]
    )
    rig.step(3)
    rig.step(40)
    for receiver in ("hook", "main/am:9093"):
        assert rig.value("delivery_queue_length", receiver=receiver) == 1
        assert rig.value("delivery_oldest_seconds", receiver=receiver) == 43
        assert rig.value("delivery_last_success_timestamp_seconds", receiver=receiver) is None
        assert rig.value("delivery_attempts_total", receiver=receiver, outcome="ok") == 0
    rig.hook.failure = rig.manager.failure = None
    rig.step(60)
    for receiver in ("hook", "main/am:9093"):
        assert rig.value("delivery_queue_length", receiver=receiver) == 0
        assert rig.value("delivery_oldest_seconds", receiver=receiver) == 0
        assert rig.value("delivery_last_success_timestamp_seconds", receiver=receiver) == NOW + 103
    assert rig.value("deliveries_total", receiver="hook", outcome="delivered") == 1
    assert rig.value("deliveries_total", receiver="main", outcome="delivered") == 1


def test_a_window_shows_in_metrics_and_logs(capsys: pytest.CaptureFixture[str]) -> None:
    rig = Rig()
    rig.delivery.alerts([(alert(topic="quiet"), (0, 0)), (alert(topic="loud"), (0, 1))])
    rig.step(3)
    assert rig.value("maintenance_active", window="rack") == 1
    for receiver in ("hook", "main"):
        assert rig.value("delivery_muted", receiver=receiver) == 1
        assert rig.value("deliveries_total", receiver=receiver, outcome="delivered") == 1
    assert rig.value("delivery_queue_length", receiver="hook") == 0
    # The stream goes on vouching.
    for _ in range(2):
        rig.step(299)
    rig.step(3)
    assert rig.value("maintenance_active", window="rack") == 0
    assert rig.value("delivery_muted", receiver="hook") == 0
    told = capsys.readouterr().out
    assert told.count("maintenance window begins") == 1
    assert told.count("maintenance window ends") == 1
    assert "alerts that a maintenance window held back are delivered" in told


def test_transports_are_one_for_each_webhook_and_each_instance() -> None:
    settings = Settings()
    settings.notify.receivers = [Receiver(name="hook", url="http://127.0.0.1:1/")]
    settings.notify.alertmanagers = [
        Alertmanager(
            name="main", urls=["http://u:secret@am-1:9093/x/", "https://am-2/api/v2/alerts"]
        )
    ]
    transports = make_transports(settings)
    assert [[each.name for each in group] for group in transports.alertmanagers] == [
        ["main/am-1:9093", "main/am-2"]
    ]
    assert len(transports.webhooks) == 1
    assert make_transports(settings, notify=False) == ([], [])
