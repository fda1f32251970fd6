"""What fails in the exporter is left out, counted and named once; everything else goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client import Counter
from structlog.testing import capture_logs

from tests.delivery.services import wait_for
from tests.export.make import NOW, alert, broker_view, cluster_view, key_of, table_of, view
from tests.export.test_process import make, message, values
from tests.notify.rig import Clock, FakeWebhook, MemoryStore, settings_of
from tidemark.core.records import View
from tidemark.settings import Export
from tidemark_exporters.export import cluster_series, exposition
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Renderer
from tidemark_exporters.failures import MAX_NAMED, PARTS, Failures
from tidemark_exporters.notify import address, retrying_sender, webhook_state
from tidemark_exporters.notify.delivery import Delivery, make_delivery
from tidemark_exporters.notify.offsets import read_metadata, settled_ranges
from tidemark_exporters.notify.payload import webhook_body
from tidemark_exporters.process import Exporter

__all__ = ["make"]

VIEWS = "tidemark.partition-views"


def fail(*_: object, **__: object) -> Any:
    raise TypeError("unhashable")


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with capture_logs() as lines:
        yield lines


def counted(failures: Failures) -> dict[str, float]:
    counter: Any = failures._counter
    found = {part: counter.labels(part=part)._value.get() for part in PARTS}
    return {part: value for part, value in found.items() if value}


def made() -> Failures:
    return Failures(Counter("c", "c", ["part"], registry=None))


def rendered(renderer: Renderer, *views: View) -> str:
    return renderer.render(table_of(*views), EventCounters(), NOW).body.decode()


@pytest.mark.parametrize("table", ["PARTITION_VALUES", "REPLICA_VALUES"])
def test_a_partition_that_cannot_be_rendered_has_no_series_and_the_others_have(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any], table: str
) -> None:
    definitions = getattr(exposition, table)
    name, value_of = next(iter(definitions.items()))

    def broken(item: Any) -> Any:
        number = item.leader_epoch if isinstance(item, View) else item.log_end_offset
        return fail() if number == 666 else value_of(item)

    views = [view(partition=number) for number in range(3)]
    views[1].leader_epoch = views[1].replicas[0].log_end_offset = 666
    failures = made()
    renderer = Renderer(Export(granularity="replica"), failures)
    whole = rendered(renderer, *views)
    monkeypatch.setitem(definitions, name, broken)
    for _ in range(3):
        text = rendered(renderer, *views)
    lines = [each for each in whole.splitlines() if 'topic="orders",partition="1"' not in each]
    assert [each for each in text.splitlines() if 'partition="' in each] == [
        each for each in lines if 'partition="' in each
    ]
    assert 'tidemark_partition_leader{kafka_cluster="east",topic="orders",partition="2"}' in text
    # At each refresh, and once in the log.
    assert counted(failures) == {"view": 3}
    assert [(each["name"], each["reason"]) for each in logged] == [
        ("east/orders/1", "TypeError('unhashable')")
    ]
    # Without a counter, as in tests and `tidemark top`, nothing is hidden.
    with pytest.raises(TypeError, match="unhashable"):
        rendered(Renderer(Export(granularity="replica")), *views)


def test_a_broker_and_a_part_that_cannot_be_rendered_cost_themselves_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put = cluster_series._put_broker_view

    def put_broker(each: View, add: Any) -> None:
        if each.broker == 1:
            fail()
        put(each, add)

    views = [cluster_view(), view(), *(broker_view(n, stopped_clean=True) for n in (1, 2))]
    failures = made()
    renderer = Renderer(Export(), failures)
    monkeypatch.setattr(cluster_series, "_put_broker_view", put_broker)
    monkeypatch.setattr(renderer, "_put_topics", fail)
    text = rendered(renderer, *views)
    clean = "tidemark_broker_last_stop_clean"
    assert [each.split('"')[3] for each in text.splitlines() if each.startswith(clean)] == ["2"]
    assert "tidemark_partition_leader{" in text
    assert counted(failures) == {"view": 1, "refresh": 1}
    monkeypatch.setattr(renderer._budget, "select", fail)
    text = rendered(renderer, *views)
    assert "tidemark_partition_leader{" not in text
    assert "tidemark_partitions_leaderless{" in text


def test_the_exporter_stays_up_where_a_refresh_fails(
    make: Callable[..., Exporter], monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    each = view(at=NOW - 200_000_000)
    exporter = make({VIEWS: [[message(0, each, key_of(each).encode())], [], []]}, {VIEWS: 1})
    monkeypatch.setattr("tidemark_exporters.process.REFRESH_SECONDS", 0.0)
    monkeypatch.setattr("tidemark_exporters.process.PAUSE_PER_REFRESH", 0.0)
    render = exporter._renderer.render
    monkeypatch.setattr(exporter._renderer, "render", fail)
    exporter._read_views()
    exporter._stopped.clear()
    exporter._read_alerts()
    found = values(exporter)
    assert found["tidemark_export_failures_total refresh"] >= 3
    assert found["tidemark_export_refresh_timestamp_seconds"] == 0
    assert found["tidemark_export_ready"] == 1
    assert exporter.health.waiting() == ["a refresh: the last one failed: TypeError('unhashable')"]
    assert [(line["part"], line["name"]) for line in logged if "part" in line] == [
        ("refresh", "metrics")
    ]
    monkeypatch.setattr(exporter._renderer, "render", render)
    exporter._refresh()
    assert exporter.health.waiting() == []
    assert values(exporter)["tidemark_partition_leader east orders 0"] == 1


def test_the_exporter_stays_up_where_a_tick_and_an_alert_fail(
    make: Callable[..., Exporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts = "tidemark.alerts"
    exporter = make({VIEWS: [[]], alerts: [[message(0, alert())]]}, {VIEWS: 0, alerts: 1})
    monkeypatch.setattr(exporter.delivery, "tick", fail)
    monkeypatch.setattr(exporter.delivery, "alerts", fail)
    monkeypatch.setattr(exporter._delivery_metrics, "refresh", fail)
    exporter._read_alerts()
    exporter._stopped.clear()
    exporter._read_views()
    found = values(exporter)
    parts = ("alert", "refresh", "tick", "view")
    assert [found[f"tidemark_export_failures_total {part}"] for part in parts] == [1, 1, 1, 0]


class Two:
    """Two receivers, and what they got."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.clock, self.failures = Clock(), made()
        self.hooks = {name: FakeWebhook(self.clock) for name in ("bad", "good")}
        clients: dict[str, Any] = {name: [hook] for name, hook in self.hooks.items()}
        self.delivery: Delivery = make_delivery(
            settings_of(*clients),
            clients,
            {0: 0},
            lambda *_: MemoryStore(),
            clock or self.clock,
            self.failures,
        )

    def post(self) -> None:
        self.clock.now += 60
        self.delivery.tick({"east": self.clock.now})
        for sender in self.delivery.senders:
            for each in sender.addresses:
                sender.post_due(each)


@pytest.mark.parametrize(("method", "part"), [("tick", "tick"), ("offer", "alert")])
def test_a_receiver_that_fails_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any], method: str, part: str
) -> None:
    two = Two()
    monkeypatch.setattr(two.delivery.senders[0]._state, method, fail)
    two.delivery.alerts([(alert("KafkaOffline", severity="critical", at=two.clock.now), (0, 0))])
    two.post()
    assert len(two.hooks["good"].posted) == 1
    assert counted(two.failures) == {part: 1}
    assert [each["name"] for each in logged if each.get("part") == part] == ["bad"]


def test_a_record_that_fails_stops_no_other_of_its_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    two = Two()
    state = two.delivery.senders[0]._state
    offer = state.offer

    def fails_once(each: Any, position: Any, now: float) -> None:
        if position == (0, 0):
            fail()
        offer(each, position, now)

    monkeypatch.setattr(state, "offer", fails_once)
    fired = [alert("KafkaOffline", severity="critical", topic=name) for name in ("a", "b")]
    two.delivery.alerts([(each, (0, offset)) for offset, each in enumerate(fired)])
    two.post()
    assert [each["labels"]["topic"] for each in two.hooks["bad"].posted] == ["b"]
    assert len(two.hooks["good"].posted) == 2
    # The next start reads the record again that failed, and only that one.
    bad, good = (sender._state.offsets.commits()[0] for sender in two.delivery.senders)
    assert (bad.offset, settled_ranges(read_metadata(bad.metadata), bad.offset)) == (0, [(1, 2)])
    assert good.offset == 2


def test_a_bounded_number_of_places_is_logged(logged: list[Any]) -> None:
    failures = made()
    for number in range(MAX_NAMED + 10):
        for _ in range(2):
            failures.add("view", f"east/orders/{number}", KeyError("x"))
    assert len(logged) == MAX_NAMED
    assert counted(failures) == {"view": 2 * (MAX_NAMED + 10)}


def test_an_alert_that_cannot_be_written_is_given_up_and_no_other(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    """As one that the receiver refuses; but a loss waits, and is tried again."""
    two = Two()

    def fails_for_bad(alerts: list[Any], *rest: Any, **options: Any) -> Any:
        if any(each.labels["topic"] == "bad" for each in alerts):
            fail()
        return webhook_body(alerts, *rest, **options)

    monkeypatch.setattr(webhook_state, "webhook_body", fails_for_bad)
    fired = [
        alert(name, severity="critical", topic=topic)
        for name, topic in (
            ("KafkaOffline", "bad"),
            ("KafkaOffline", "b"),
            ("KafkaCommittedDataLoss", "bad"),
        )
    ]
    two.delivery.alerts([(each, (0, offset)) for offset, each in enumerate(fired)])
    for _ in range(3):
        two.post()
    assert [each["labels"]["topic"] for each in two.hooks["good"].posted] == ["b"]
    assert counted(two.failures)["post"] >= 2
    sender = two.delivery.senders[0]
    # What was given up is settled; the loss is not.
    settled = sender._state.offsets.commits()[0]
    assert settled.offset == 2
    assert sender.report().outcomes == {"delivered": 1, "rejected": 1}
    refusals = [each for each in logged if each["event"] == "receiver refused alerts"]
    assert "cannot be written: TypeError('unhashable')" in {each["reason"] for each in refusals}
    monkeypatch.undo()
    for _ in range(10):
        two.post()
    assert [each["labels"]["alertname"] for each in two.hooks["good"].posted][1:] == [
        "KafkaCommittedDataLoss"
    ]


@pytest.mark.parametrize("part", ["post", "commit", "state"])
def test_a_thread_that_fails_goes_on(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any], part: str
) -> None:
    """An error that no answer explains: of the client, of the store, of the receiver's state."""
    monkeypatch.setattr(retrying_sender, "FAILED_SECONDS", 0.05)
    monkeypatch.setattr(address, "LONGEST_WAIT_SECONDS", 0.05)
    two = Two(time.time)
    sender, hook = two.delivery.senders[0], two.hooks["bad"]
    if part == "post":
        hook.failure = KeyError("https://hook.example/a-secret")
    else:
        name = {"commit": "commit", "state": "_judge"}[part]
        monkeypatch.setattr(sender, name, fail)
    counts = "commit" if part == "commit" else "post"
    two.delivery.start()
    fired = alert("KafkaOffline", severity="critical", at=time.time())
    two.delivery.alerts([(fired, (0, 0))])
    two.delivery.tick({"east": time.time()})
    wait_for(lambda: counted(two.failures).get(counts, 0) >= 2)
    assert two.delivery.failure is None
    monkeypatch.undo()
    hook.failure = None
    wait_for(lambda: 0 in sender._committed and sender._committed[0].offset == 1)
    assert len(hook.posted) >= 1
    assert two.hooks["good"].sizes() == [1]
    two.delivery.stop(5)
    assert "secret" not in str(logged)
