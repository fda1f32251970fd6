"""Delivery as a whole: what it is built of, and what its metrics and logs show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.export.make import NOW, alert
from tests.notify.rig import (
    UNAUTHORIZED,
    Clock,
    FakeAlertmanager,
    FakeWebhook,
    MemoryStore,
    settings_of,
    window,
)
from tidemark.metrics import MetricRegistry
from tidemark.settings import Alertmanager, Cluster
from tidemark_exporters.notify.delivery import READ_BACK, DeliveryMetrics, make_delivery
from tidemark_exporters.notify.offsets import Commit, read_metadata


class Both:
    """A webhook and an Alertmanager, with metrics."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clients: dict[str, list[Any]] = {
            "hook": [FakeWebhook(self.clock)],
            "main": [FakeAlertmanager(self.clock)],
        }
        settings = settings_of("hook")
        settings.notify.alertmanagers = [Alertmanager(name="main", urls=["http://am:9093"])]
        settings.notify.maintenance = [window(NOW - 3600, NOW + 600, topics=["quiet"])]
        self.delivery = make_delivery(
            settings, self.clients, {0: 0}, lambda *_: MemoryStore(), self.clock
        )
        self.registry = MetricRegistry()
        self.metrics = DeliveryMetrics(self.registry, self.delivery)

    def fail(self, failure: Exception | None) -> None:
        for (client,) in self.clients.values():
            client.failure = failure

    def step(self, seconds: float) -> None:
        self.clock.now += seconds
        self.delivery.tick({"east": self.clock.now})
        for sender in self.delivery.senders:
            sender.post_due(sender.addresses[0])
        self.metrics.refresh(self.clock.now)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"tidemark_{name}", labels)

    def addresses(self) -> list[tuple[float | None, ...]]:
        """Of each: length and age of its queue, its last success, its posts that were taken."""
        return [
            (
                self.value("delivery_queue_length", receiver=name),
                self.value("delivery_oldest_seconds", receiver=name),
                self.value("delivery_last_success_timestamp_seconds", receiver=name),
                self.value("delivery_attempts_total", receiver=name, outcome="ok"),
            )
            for name in ("hook", "main/am:9093")
        ]


def test_stalled_delivery_shows() -> None:
    rig = Both()
    rig.fail(UNAUTHORIZED)
    loss = alert("KafkaCommittedDataLoss", severity="critical", incident="ab")
    rig.delivery.alerts([(loss, (0, 0))])
    rig.step(3)
    rig.step(40)
    assert rig.addresses() == 2 * [(1, 43, None, 0)]
    rig.fail(None)
    rig.step(60)
    assert rig.addresses() == 2 * [(0, 0, NOW + 103, 1)]
    for receiver in ("hook", "main"):
        assert rig.value("deliveries_total", receiver=receiver, outcome="delivered") == 1
        assert rig.value("deliveries_total", receiver=receiver, outcome="dropped") == 0


def test_a_window_shows_in_metrics_and_logs(capsys: pytest.CaptureFixture[str]) -> None:
    rig = Both()
    rig.delivery.alerts([(alert(topic="quiet"), (0, 0)), (alert(topic="loud"), (0, 1))])
    rig.step(3)
    assert rig.value("maintenance_active", window="rack") == 1
    for receiver in ("hook", "main"):
        assert rig.value("delivery_muted", receiver=receiver) == 1
        assert rig.value("deliveries_total", receiver=receiver, outcome="delivered") == 1
    assert rig.value("delivery_queue_length", receiver="hook") == 0
    # No alert ends meanwhile as forgotten by the stream.
    for _ in range(2):
        rig.step(299)
    rig.step(3)
    assert rig.value("maintenance_active", window="rack") == 0
    for receiver in ("hook", "main"):
        assert rig.value("delivery_muted", receiver=receiver) == 0
    logged = capsys.readouterr().out
    assert logged.count("maintenance window begins") == 1
    assert logged.count("maintenance window ends") == 1
    assert "alerts that a maintenance window held back are delivered" in logged


def test_reading_starts_before_the_commit_and_ignores_a_commit_of_another_topic() -> None:
    stores = {"hook": MemoryStore(), "new": MemoryStore()}

    def starts(*receivers: str) -> dict[int, int]:
        clients = {name: [FakeWebhook(Clock())] for name in receivers}
        return make_delivery(
            settings_of(*receivers),
            clients,
            {0: 20_000},
            lambda _settings, _ends, name: stores[name],
        ).starts

    assert starts("hook") == {0: 0}
    stores["hook"].commits = {0: Commit(15_000)}
    assert starts("hook") == {0: 15_000 - READ_BACK}
    stores["hook"].commits = {0: Commit(20_001)}
    assert starts("hook") == {0: 0}
    # One reader serves all receivers: it begins where the last of them is.
    stores["hook"].commits = {0: Commit(15_000)}
    assert starts("hook", "new") == {0: 0}


def test_without_clients_nothing_is_delivered_and_reading_begins_at_the_end() -> None:
    delivery = make_delivery(settings_of("hook"), {}, {0: 20_000})
    assert (list(delivery.senders), delivery.starts) == ([], {0: 20_000})


def test_a_stalled_stream_is_delivered_while_no_topic_can_be_read() -> None:
    clock, client, store = Clock(), FakeWebhook(Clock()), MemoryStore()
    settings = settings_of("hook")
    settings.clusters = [Cluster(name="east")]
    delivery = make_delivery(settings, {"hook": [client]}, None, lambda *_: store, clock)
    (sender,) = delivery.senders

    def step(seconds: float, newest: dict[str, float] | None = None) -> list[str]:
        clock.now += seconds
        if newest is None:
            delivery.tick_waiting()
        else:
            delivery.tick(newest)
        sender.post_due(sender.addresses[0])
        sender.commit()
        return list(dict.fromkeys(state for _, state in client.notified))

    assert step(100) == []
    step(30)
    assert step(5) == ["firing"]
    assert store.commits == {}
    delivery.attach({0: 0})
    for _ in range(30):
        seen = step(5, {"east": clock.now + 5})
    assert seen == ["firing", "resolved"]
    assert read_metadata(store.commits[0].metadata).own


class Restarts:
    """One webhook over an alerts topic of one partition, and a store that survives restarts."""

    def __init__(self) -> None:
        self.clock, self.store = Clock(), MemoryStore()
        self.client = FakeWebhook(self.clock)
        self.start(0, None)

    def start(self, end: int, topic_id: str | None) -> bool:
        self.store.up = True
        self.delivery = make_delivery(
            settings_of("hook"), {"hook": [self.client]}, None, lambda *_: self.store, self.clock
        )
        return self.delivery.attach({0: end}, topic_id)

    def offer(self, first: int, last: int) -> list[int]:
        """Alerts about partitions [first, last), the first at offset 0; returns the new ones."""
        made = [
            (alert(partition=str(number), at=self.clock.now, starts_at=self.clock.now), (0, place))
            for place, number in enumerate(range(first, last))
        ]
        before = self.told()
        self.delivery.alerts(made)
        (sender,) = self.delivery.senders
        for _ in range(4):
            self.clock.now += 30
            self.delivery.tick({"east": self.clock.now})
            sender.post_due(sender.addresses[0])
        sender.commit()
        return sorted(self.told() - before)

    def told(self) -> set[int]:
        """A post also repeats what is still open."""
        return {int(each["labels"]["partition"]) for each in self.client.posted}


@pytest.mark.parametrize("topic_id", [None, "second"])
def test_no_alert_of_a_topic_that_was_created_again_is_taken_for_one_of_the_deleted(
    topic_id: str | None,
) -> None:
    stage = Restarts()
    assert stage.offer(0, 20) == [*range(20)]
    assert stage.store.commits[0].offset == 20
    stage.delivery.begin_again(topic_id)
    assert stage.offer(100, 105) == [*range(100, 105)]
    assert stage.store.commits[0].offset == 5
    assert read_metadata(stage.store.commits[0].metadata).topic_id == topic_id
    # The next start goes on in it.
    assert not stage.start(5, topic_id)
    assert stage.offer(100, 105) == []


@pytest.mark.parametrize(
    ("known", "found", "end", "is_another"),
    [
        ("first", "second", 30, True),
        ("first", "second", 5, True),
        ("first", "first", 30, False),
        # Commits of an older version, or brokers without ids.
        (None, "second", 5, True),
        (None, None, 5, True),
        ("first", None, 30, False),
    ],
)
def test_commits_of_a_deleted_topic_count_for_nothing_at_a_start(
    known: str | None, found: str | None, end: int, is_another: bool
) -> None:
    stage = Restarts()
    stage.start(0, known)
    assert len(stage.offer(0, 20)) == 20
    assert stage.start(end, found) is is_another
    assert stage.delivery.starts == {0: 0}
    assert stage.offer(100, 105) == ([*range(100, 105)] if is_another else [])


def test_what_was_pending_in_a_deleted_topic_settles_nothing_of_the_new_one() -> None:
    stage = Restarts()
    stage.client.failure = UNAUTHORIZED
    assert stage.offer(0, 3) == []
    stage.delivery.begin_again("second")
    stage.offer(100, 103)
    stage.client.failure = None
    assert stage.offer(200, 200) == [0, 1, 2, 100, 101, 102]
    assert stage.store.commits[0].offset == 3
