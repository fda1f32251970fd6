"""`tidemark stream` against a real Kafka: no row is lost or duplicated, whatever kills it."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from tests.processes import descendants, kill, wait_gone
from tests.stream.conftest import StreamProcess, start_notifier
from tests.stream.supervised import jvms
from tests.stream.synthetic import SyntheticPasses, reduce_all
from tests.stream.topics import Publisher, read_all
from tidemark.core.records import Alert, decode_record
from tidemark.kafka.topics import ensure_topics
from tidemark.reduce.rows import RawRecord
from tidemark.settings import Settings
from tidemark_lab.brokers.receiver import ReceivedAlert, WebhookReceiver
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Start = Callable[..., StreamProcess]
LOAD = SyntheticPasses(partitions=120, groups=4, offline_every=5, versions=(1, 2))
SUBMIT = Path(__file__).parents[2] / "deploy" / "spark" / "submit.sh"
GARBAGE = b"\x00not json"


def publish(
    settings: Settings, publisher: Publisher, first: int, seconds: float, until: Callable[[], bool]
) -> int:
    """Passes at the given distance while `until` is false; the number of the next pass."""
    number = first
    while not until():
        for partition, value in LOAD.records(number):
            publisher.send(partition, value)
        number += 1
        time.sleep(seconds)
    return number


def letters(settings: Settings) -> set[bytes]:
    """Keys of the dead letters: an unreadable record at the end shows how far the stream is."""
    return {record.key for record in read_all(settings, settings.topics.dead_letters, 1)}


def newest(rows: list[tuple[bytes, bytes | None]]) -> dict[bytes, Any]:
    """The compacted topic: the newest value of each key."""
    return {key: msgspec.json.decode(value) for key, value in rows if value is not None}


def check_against_oracle(settings: Settings, sent: list[RawRecord]) -> None:
    """The topics hold what one fold over all records gives; an id has one alert."""
    topics = settings.topics
    rows = reduce_all(sent, LOAD.groups)
    alerts = {
        msgspec.json.decode(row.value)["id"]: row.value
        for row in rows
        if row.destination == "alerts" and row.value is not None
    }
    found: dict[str, bytes] = {}
    for record in read_all(settings, topics.alerts, 1):
        alert_id = msgspec.json.decode(record.value)["id"]
        assert found.setdefault(alert_id, record.value) == record.value, (
            f"two alerts under the id {alert_id}"
        )
    assert found == alerts
    assert len(alerts) > 50
    views = newest([(row.key, row.value) for row in rows if row.destination == "partition_views"])
    assert (
        newest([(r.key, r.value) for r in read_all(settings, topics.partition_views, LOAD.groups)])
        == views
    )
    assert letters(settings) == {row.key for row in rows if row.destination == "dead_letters"}


def transitions(sent: list[RawRecord]) -> Counter[tuple[str, str, int]]:
    """(fingerprint, status, start in milliseconds) by the reducer alone: each is delivered once."""
    rows = reduce_all(sent, LOAD.groups)
    values = [row.value for row in rows if row.destination == "alerts" and row.value is not None]
    return Counter(
        (alert.fingerprint, alert.state, round(alert.starts_at * 1000))
        for alert in map(decode_record, values)
        if isinstance(alert, Alert) and alert.state != "update"
    )


def posted(alerts: Iterable[ReceivedAlert]) -> list[tuple[str, str, int]]:
    """The same of delivered alerts, in order, without Tidemark's own."""
    return [
        (alert.fingerprint or "", alert.status, round(alert.started_at * 1000))
        for alert in alerts
        if not alert.name.startswith("Tidemark")
    ]


def check_webhook(webhook: WebhookReceiver, sent: list[RawRecord]) -> None:
    """Each transition reached the receiver, and none of them twice."""
    expected = transitions(sent)
    wait_until(
        lambda: set(posted(webhook.alerts())) == set(expected), 30.0, "every transition is posted"
    )
    assert Counter(posted(webhook.alerts())) == expected
    assert set(expected.values()) == {1}


@pytest.fixture
def webhook(settings: Settings, tmp_path: Path) -> Iterator[WebhookReceiver]:
    """A receiver, and an exporter that delivers to it what the test's topics hold."""
    with WebhookReceiver() as receiver:
        ensure_topics(settings.kafka, settings.topics)
        exporter = start_notifier(settings, tmp_path, receiver.url)
        yield receiver
        assert exporter.poll() is None, (tmp_path / "export.txt").read_text()
        exporter.terminate()
        assert exporter.wait(15) == 0


def test_a_kill_under_load_loses_and_duplicates_nothing(
    settings: Settings, stream: Start, webhook: WebhookReceiver
) -> None:
    publisher = Publisher(settings)
    publisher.send(1, GARBAGE)
    first = stream(settings)
    number = publish(
        settings,
        publisher,
        0,
        0.5,
        lambda: len(first.lines("batch")) >= 2 or first.process.poll() is not None,
    )
    # Not between two batches: load comes faster than batches end.
    busy = time.monotonic() + 1.3
    number = publish(settings, publisher, number, 0.1, lambda: time.monotonic() > busy)
    assert first.process.poll() is None, first.log.read_text()
    tree = first.kill_tree()
    assert len(tree) >= 4, "driver, JVM, worker daemon and a worker"
    publisher.send(2, GARBAGE)

    second = stream(settings)
    number = publish(
        settings,
        publisher,
        number,
        0.5,
        lambda: len(second.lines("batch")) >= 2 or second.process.poll() is not None,
    )
    for group in range(LOAD.groups):
        publisher.send(group, GARBAGE)
    second.wait_for(lambda: len(letters(settings)) == 2 + LOAD.groups, "the end of the load")
    below = descendants(second.process.pid)
    code, seconds = second.terminate()
    assert (code, seconds < 10) == (0, True), second.log.read_text()
    # The JVM's death reaches the Python workers through their closed pipe.
    assert not wait_gone(below, 5)

    publish(settings, publisher, number, 0.0, iter([False, False, True]).__next__)
    # Stock workers are slow on a busy machine.
    stream(settings, "--once", command=[str(SUBMIT)]).ends_with(0)
    sent = publisher.close()
    check_against_oracle(settings, sent)
    check_webhook(webhook, sent)


def test_lost_jvm_is_one_line_and_the_checkpoint_refuses_a_configuration_that_disagrees(
    settings: Settings, stream: Start
) -> None:
    first = stream(settings)
    first.wait_for(lambda: bool(first.lines("query started")), "the query")
    kill(jvms(first.process.pid)[:1])
    assert first.process.wait(120) == 1
    assert "Spark's JVM ended" in error_line(first, is_jvm_lost=True)

    changed = structs.replace(
        settings, stream=structs.replace(settings.stream, store_provider="rocksdb")
    )
    cure = "(stream.store_provider) now gives rocksdb. Set it back, or give a new stream.checkpoint"
    refused(stream(changed, "--once"), cure, code=2)


def error_line(process: StreamProcess, *, is_jvm_lost: bool = False) -> str:
    """The one line for the operator; fails on a traceback.

    PySpark's server of accumulators prints one where it loses the JVM.
    """
    text = process.log.read_text()
    assert is_jvm_lost or "Traceback" not in text
    lines = [line for line in text.splitlines() if line.startswith("tidemark stream: ")]
    assert len(lines) == 1, text
    return lines[0]


def refused(process: StreamProcess, text: str, code: int = 1) -> None:
    process.ends_with(code, 120)
    assert text in error_line(process)


def test_unreachable_bootstrap_server_is_one_line(settings: Settings, stream: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    lost = structs.replace(
        settings, kafka=structs.replace(settings.kafka, bootstrap_servers=[address])
    )
    # Without --once it waits for Kafka: tests/verbs/test_up_without_kafka.py.
    refused(stream(lost, "--once"), address)


def test_port_in_use_is_one_line(settings: Settings, stream: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        own = structs.replace(settings.stream, listen=address)
        refused(stream(structs.replace(settings, stream=own)), f"cannot listen on {address}")


def test_other_number_of_partitions_is_one_line(settings: Settings, stream: Start) -> None:
    ensure_topics(settings.kafka, settings.topics)
    more = structs.replace(settings.topics, partitions=5)
    refused(
        stream(structs.replace(settings, topics=more)),
        "has 4 partitions, but the configuration says 5",
    )
