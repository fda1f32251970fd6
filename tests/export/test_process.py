"""The exporter's readers over scripted topics: counts, readiness, skipped records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Counter
from structlog.testing import capture_logs

from tests.dashboards.stage import Reader, Topic
from tests.export.make import NOW, alert, samples_of, view
from tidemark.core.errors import ClusterError, TidemarkError
from tidemark.core.records import ReplicaView, encode_record
from tidemark.detect.default_thresholds import Detection, Override
from tidemark.kafka.topic_reader import Message
from tidemark.settings import Cluster, Receiver, Settings
from tidemark_exporters import process
from tidemark_exporters.export.table import AHEAD_SECONDS, bound_time
from tidemark_exporters.process import Exporter
from tidemark_exporters.topic_records import TopicCounts

# Series of one exporter alone: its process, its refreshes and what follows from its clock.
OF_THE_PROCESS = (
    "process_",
    "python_",
    "tidemark_export_refresh_",
    "tidemark_series",
    "tidemark_view_age_seconds",
)
# Behind the clock of every machine: a pass that is ahead counts by the clock.
PAST = NOW - 200_000_000.0


class ScriptedReader(Reader):
    """A topic of one partition: each poll returns the next messages, the last ends the exporter."""

    scripts: dict[str, list[list[Message]]] = {}
    ends: dict[str, int] = {}

    def __init__(self, _connection: Any, topic: str) -> None:
        super().__init__(topic, Topic())
        self.end = {0: self.ends.get(topic, 0)}
        self.exhausted: Callable[[], None] = lambda: None
        self._script = list(self.scripts.get(topic, []))

    def start(self, positions: Any = None) -> None:
        self.position = 0

    def poll(self, timeout_ms: int) -> list[Message]:
        if not self._script:
            self.exhausted()
            return []
        messages = self._script.pop(0)
        self.position += len(messages)
        return messages


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Exporter]]:
    made: list[Exporter] = []

    def build(
        scripts: dict[str, list[list[Message]]], ends: dict[str, int], *, notify: bool = True
    ) -> Exporter:
        monkeypatch.setattr(ScriptedReader, "scripts", scripts)
        monkeypatch.setattr(ScriptedReader, "ends", ends)
        monkeypatch.setattr(process, "TopicReader", ScriptedReader)
        settings = Settings(clusters=[Cluster(name="east")])
        settings.export.listen = "127.0.0.1:0"
        if not notify:
            settings.notify.receivers = [Receiver(name="hook", url="http://127.0.0.1:1/")]
        exporter = Exporter(settings, notify=notify)
        # Without receivers there are no commits to read.
        exporter._open()
        exporter._counts.open()
        readers: list[Any] = [exporter._views, exporter._alerts]
        for reader in readers:
            reader.exhausted = exporter._stopped.set
        made.append(exporter)
        return exporter

    yield build
    for exporter in made:
        exporter.server.close()


def message(offset: int, record: Any, key: bytes = b"key") -> Message:
    return Message(
        0,
        offset,
        key,
        record if record is None or isinstance(record, bytes) else encode_record(record),
    )


def values(exporter: Exporter) -> dict[str, float]:
    text = (
        exporter.site.exposition.body
        + exporter.site.exposition.counters
        + exporter.metrics.registry.render()
    ).decode()
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for sample in samples_of(text)
    }


def test_views_become_metrics_and_other_records_are_counted_and_skipped(
    make: Callable[..., Exporter],
) -> None:
    topic = "tidemark.partition-views"
    script = [
        [message(0, view(at=NOW), b"east/orders/0"), message(1, b"nonsense"), message(2, alert())],
        [message(3, view(partition=1), b"east/orders/1"), message(4, None, b"east/orders/0")],
    ]
    exporter = make({topic: script}, {topic: 5})
    exporter._read_views()
    found = values(exporter)
    assert found[f"tidemark_export_records_read_total {topic}"] == 5
    assert found[f"tidemark_export_records_undecodable_total {topic}"] == 1
    assert list(exporter.table.partitions) == ["east/orders/1"]
    exporter._refresh()
    assert values(exporter)["tidemark_partition_leader east orders 1"] == 1


def test_new_alerts_are_counted_once(make: Callable[..., Exporter]) -> None:
    old, new = alert(), alert("KafkaOffline", severity="critical")
    exporter = make(
        {
            "tidemark.alerts": [
                [message(0, old)],
                [message(1, new), message(2, new), message(3, None)],
            ]
        },
        {"tidemark.alerts": 1},
    )
    exporter._read_alerts()
    exporter._refresh()
    found = values(exporter)
    assert found["tidemark_alerts_fired_total east KafkaFollowerLag warning"] == 0
    assert found["tidemark_alerts_fired_total east KafkaOffline critical"] == 1


def test_an_alert_is_delivered_with_what_it_costs_to_keep_a_broker_down(
    make: Callable[..., Exporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas = [ReplicaView(broker=1, error="refused"), ReplicaView(broker=2, log_end_offset=9)]
    lost = alert("KafkaCommittedDataLoss")
    lost.evidence = {"leader_before": 1, "leader": 2}
    exporter = make({"tidemark.alerts": [[message(0, lost)]]}, {"tidemark.alerts": 1})
    exporter._waiting.clear()
    seen = view(replicas=replicas, leader=2, in_sync_replicas=[2, 3])
    exporter.table.apply("east/orders/0", seen)
    delivered: list[Any] = []
    monkeypatch.setattr(exporter.delivery, "alerts", delivered.extend)
    exporter._read_alerts()
    text = "While broker 1 is down, 1 partition lacks its replica: 1 at min ISR."
    assert delivered[0][0].annotations["while_down"] == text


def test_alerts_of_a_topic_that_was_created_again_are_new(make: Callable[..., Exporter]) -> None:
    exporter = make({"tidemark.alerts": [[message(0, alert())]]}, {"tidemark.alerts": 50})
    for reader in (exporter._alerts, exporter._past, *exporter._counts.readers.values()):
        reader.on_replaced()
    exporter._read_alerts()
    exporter._refresh()
    found = values(exporter)
    assert found["tidemark_alerts_fired_total east KafkaFollowerLag warning"] == 1
    replaced = {
        name: found[f"tidemark_export_replaced_topics_total tidemark.{name}"]
        for name in ("alerts", "dead-letters", "partition-views")
    }
    assert replaced == {"alerts": 1, "dead-letters": 1, "partition-views": 0}


def test_records_of_unread_topics_are_counted_across_an_outage(
    make: Callable[..., Exporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = make({}, {"tidemark.replica-state": 3})
    seen: list[dict[int, int] | None] = [{0: 4}, None, None, {0: 6}]

    def end_now() -> dict[int, int] | None:
        if len(seen) == 1:
            exporter._stopped.set()
        return seen.pop(0)

    monkeypatch.setattr(exporter._counts.readers["tidemark.replica-state"], "end_now", end_now)
    exporter._counts.watch(exporter._stopped, 0.0)
    assert values(exporter)["tidemark_event_records_total"] == 3
    assert values(exporter)["tidemark_dead_letters_total"] == 0


def test_how_far_behind_is_late_is_configured() -> None:
    settings = Settings(detect=Detection(overrides=[Override(topics="slow", lag_ms=10_000)]))
    settings.export.listen = "127.0.0.1:0"
    exporter = Exporter(settings, notify=False)
    exporter.server.close()
    threshold = exporter.table.lag_threshold
    assert (threshold("slow"), threshold("orders")) == (10_000, 2_000)


def test_ready_once_both_topics_are_read_to_their_ends(
    make: Callable[..., Exporter],
) -> None:
    views, alerts = "tidemark.partition-views", "tidemark.alerts"
    exporter = make(
        {views: [[message(0, view())]], alerts: [[message(0, alert())]]}, {views: 1, alerts: 2}
    )
    exporter._read_views()
    exporter._read_alerts()
    assert exporter._waiting == {"alerts"}
    assert values(exporter)["tidemark_export_ready"] == 0
    exporter = make(
        {views: [[message(0, view())]], alerts: [[message(0, alert())]]}, {views: 1, alerts: 1}
    )
    settled: list[bool] = []
    exporter._on_ready = lambda: settled.append(True)
    exporter._read_views()
    assert settled == []
    exporter._stopped.clear()
    exporter._read_alerts()
    assert settled == [True]
    assert exporter._waiting == set()
    assert values(exporter)["tidemark_export_ready"] == 1


def test_a_ready_exporter_serves_its_views(
    make: Callable[..., Exporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "tidemark.partition-views"
    exporter = make({topic: [[], [message(0, view(), b"east/orders/0")]]}, {topic: 1})
    # No further refresh follows.
    monkeypatch.setattr("tidemark_exporters.process.REFRESH_SECONDS", 3600.0)
    exporter._read_views()
    assert exporter._waiting == {"alerts"}
    assert values(exporter)["tidemark_partition_leader east orders 0"] == 1


def test_opening_topics_that_hangs_is_not_healthy_and_waiting_for_kafka_is(
    make: Callable[..., Exporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A whole number, so that sums of seconds are exact.
    exporter, now = make({}, {}), [float(int(time.monotonic()))]
    exporter._opened.clear()
    seen: list[list[str]] = []
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("tidemark.kafka.attempts.FIRST_PAUSE_SECONDS", 0.0)

    def open_topics() -> None:
        now[0] += process.OPEN_SECONDS
        seen.append(exporter.health.stuck())
        if len(seen) < 3:
            raise ClusterError("no broker answers")
        now[0] += 5
        seen.append(exporter.health.stuck())
        exporter._stopped.set()

    monkeypatch.setattr(exporter, "_open", open_topics)
    exporter._read_topics()
    assert seen == [[], [], [], ["opening the topics has not ended for 605 s"]]
    assert exporter.health.stuck() == []


@pytest.mark.parametrize("thread", ["reader", "receiver's worker"])
@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (ClusterError("cannot read topic x."), "cannot read topic x."),
        (KeyError("x"), "the exporter failed: KeyError"),
    ],
)
def test_a_failed_thread_ends_the_exporter_with_one_line(
    make: Callable[..., Exporter], thread: str, failure: Exception, message: str
) -> None:
    exporter = make({}, {})

    def fail() -> None:
        raise failure

    guard = exporter._catch_failure if thread == "reader" else exporter.delivery._guarded
    guard(fail)
    with pytest.raises(TidemarkError, match=message):
        exporter.wait(exporter._stopped)


def test_a_partly_read_table_is_not_served_but_counters_are(
    make: Callable[..., Exporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "tidemark.partition-views"
    exporter = make(
        {
            topic: [
                [message(0, view(leaderless=True), b"east/orders/0")],
                [message(1, view(), b"east/orders/0")],
            ]
        },
        {topic: 2},
    )
    seen = []
    exhausted, refresh = exporter._views.exhausted, exporter._refresh  # type: ignore[attr-defined]
    monkeypatch.setattr("tidemark_exporters.process.REFRESH_SECONDS", 0.0)

    def note() -> float:
        took = refresh()
        seen.append(values(exporter))
        return took

    exporter._refresh = note  # type: ignore[method-assign]
    exporter._read_views()
    assert exhausted is not None
    assert "tidemark_partitions_leaderless east" not in seen[0]
    assert seen[0]["tidemark_alerts_fired_total east KafkaOffline critical"] == 0
    exporter._refresh()
    assert seen[-1]["tidemark_partitions_leaderless east"] == 0


def test_a_view_of_a_clock_that_is_ahead_hides_no_stalled_stream(
    make: Callable[..., Exporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    topic, day = "tidemark.partition-views", 86_400.0
    ahead = message(0, view(at=NOW + day), b"east/orders/0")._replace(
        timestamp=1000 * int(NOW - 50)
    )
    exporter = make({topic: [[ahead, ahead]]}, {topic: 2})
    with capture_logs() as logged:
        exporter._read_views()
    assert exporter.table.newest == {"east": NOW - 50}
    assert [each["seconds"] for each in logged if "ahead" in each["event"]] == [day + 50]
    exporter._refresh()
    assert values(exporter)["tidemark_last_pass_timestamp_seconds east"] == NOW - 50


def test_a_stalled_stream_is_found_where_kafka_goes_away_before_the_topics_were_read(
    make: Callable[..., Exporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "tidemark.partition-views"
    for is_interrupted in (False, True):
        # One of two records was read: the exporter waits for the other.
        exporter = make({topic: [[message(0, view(at=NOW), b"east/orders/0")]]}, {topic: 2})
        monkeypatch.setattr(exporter._views, "is_interrupted", is_interrupted, raising=False)
        ticks: list[str] = []
        monkeypatch.setattr(exporter.delivery, "tick_waiting", partial(ticks.append, "waiting"))
        monkeypatch.setattr(exporter.delivery, "tick", lambda *_: None)
        exporter._read_views()
        assert ticks == ["waiting"] * is_interrupted


@given(
    at=st.floats(0, 1e12),
    written=st.none() | st.integers(0, 2**60),
    now=st.floats(1e9, 2e9),
)
def test_no_view_is_newer_than_the_clock_allows(at: float, written: int | None, now: float) -> None:
    bounded = bound_time(view(at=at), written, now)
    assert bounded.at <= now + AHEAD_SECONDS
    assert bounded.at <= at
    assert at > now + AHEAD_SECONDS or bounded.at == at


def test_a_topic_that_may_not_be_described_is_not_counted() -> None:
    counter, ends = Counter("c", "c", registry=None), iter([ClusterError("denied")] * 2)
    asked: list[str] = []

    def open_topic(topic: str) -> Any:
        asked.append(topic)
        for error in ends:
            raise error
        return ScriptedReader(None, topic)

    def count() -> Counter:
        assert len(asked) == 3
        return counter

    counts = TopicCounts(open_topic, {"t": count})
    with capture_logs() as logged:
        for _ in range(4):
            counts.open()
    assert [each["reason"] for each in logged] == ["denied"]
    assert list(counts.readers) == ["t"]


def test_two_exporters_show_the_same_and_the_one_without_receivers_sends_nothing(
    make: Callable[..., Exporter],
) -> None:
    topic, alerts = "tidemark.partition-views", "tidemark.alerts"
    views = [
        message(0, view(at=PAST), b"east/orders/0"),
        message(1, view(partition=1, at=PAST, in_sync_replicas=[1, 2]), b"east/orders/1"),
        message(2, view(partition=1, at=PAST), b"east/orders/1"),
    ]
    fired = [message(0, alert("KafkaOffline", severity="critical"))]
    ends = {topic: 3, alerts: 0}
    # The second one starts later, and reads the topics in other pieces.
    first = make({topic: [[views[0]], views[1:]], alerts: [fired]}, ends)
    second = make({topic: [views], alerts: [fired, []]}, ends, notify=False)
    for exporter in (first, second):
        exporter._read_alerts()
        exporter._stopped.clear()
        exporter._read_views()
        exporter._refresh()
    shown = [
        {name: value for name, value in values(each).items() if not name.startswith(OF_THE_PROCESS)}
        for each in (first, second)
    ]
    assert shown[0] == shown[1]
    assert shown[0]["tidemark_alerts_fired_total east KafkaOffline critical"] == 1
    assert second.delivery.senders == []
