from __future__ import annotations

import tracemalloc
from typing import Any
from unittest.mock import Mock, patch

from tests.export.make import NOW, alert
from tidemark.core.records import encode_record
from tidemark.kafka.topic_reader import Message
from tidemark_exporters.export.table import Table
from tidemark_exporters.pages.alerts import (
    MAX_SAMPLES,
    SAMPLE_BYTES,
    AlertHistory,
    PastAlert,
    read_past_alerts,
)
from tidemark_exporters.pages.responses import Pages


def ended(number: int, name: str = "KafkaFollowerLag", topic: str = "", **changes: Any) -> Any:
    return alert(
        name,
        "resolved",
        at=NOW + number,
        starts_at=NOW + number - 1,
        reason="cleared",
        topic=topic or f"t{number}",
        **changes,
    )


def add(history: AlertHistory, each: Any) -> None:
    history.add(each, encode_record(each))


def test_an_ended_alert_is_kept_once_and_an_escalation_is_no_end() -> None:
    history = AlertHistory()
    for each in (
        alert(),
        alert(state="update"),
        ended(1),
        ended(1),
        alert(state="resolved", reason="escalated"),
    ):
        add(history, each)
    assert [a.topic for a in history.newest_first()] == ["t1"]


def test_what_is_shown_is_the_whole_alert() -> None:
    given = ended(1, "KafkaCommittedDataLoss", evidence={"proven": [[3, 9]]})
    history = AlertHistory()
    add(history, given)
    (past,) = history.newest_first()
    assert past.alert() == given
    labels = given.labels
    assert (past.kafka_cluster, past.alertname, past.severity, past.topic) == tuple(
        labels[name] for name in ("kafka_cluster", "alertname", "severity", "topic")
    )
    assert (past.partition, past.broker, past.incident) == ("0", "2", None)
    assert (past.starts_at, past.ended_at) == (given.starts_at, given.at)


def test_any_number_of_alert_names_and_any_size_of_a_record_come_back_whole() -> None:
    history = AlertHistory()
    given = [
        ended(number, f"KafkaName{number % (2 * MAX_SAMPLES)}", description="é" * (number % 3 + 1))
        for number in range(4 * MAX_SAMPLES)
    ]
    ranges = [[number * 1_000_003, number * 1_000_003 + 7] for number in range(SAMPLE_BYTES)]
    given.append(ended(len(given), "KafkaName1", evidence={"proven": ranges}))
    for each in given:
        add(history, each)
    assert [past.alert() for past in reversed(history.newest_first())] == given


def test_a_past_alert_takes_little_memory() -> None:
    """10,000 are kept: at a hundred that end in a minute, memory grows for 100 minutes."""
    alerts = [
        ended(
            number,
            fired,
            topic="orders",
            partition=str(number % 12),
            description=f"Broker 2 is at least {number * 7919 % 100_000} records and "
            f"{number % 97}.{number % 10} s behind leader 1 in orders-{number % 12}.",
            evidence={
                "leader": 1,
                "leader_epoch": number % 50,
                "leader_log_end_offset": number * 104_729,
                "follower_log_end_offset": number * 104_729 - number % 9973,
                "lag_records": number % 9973,
                "in_sync_replicas": [1, 2, 3],
            },
        )
        for number in range(1_000)
        for fired in ("KafkaFollowerLag", "KafkaUnderReplicated")
    ]
    records = [(each, encode_record(each)) for each in alerts]
    tracemalloc.start()
    try:
        history = AlertHistory()
        for each, record in records:
            history.add(each, record)
        per_alert = tracemalloc.get_traced_memory()[0] / len(records)
    finally:
        tracemalloc.stop()
    assert len(history.newest_first()) == len(records)
    assert per_alert < 450


def test_only_the_alerts_of_a_page_are_decoded() -> None:
    pages = Pages(Table(), 30.0, list, clock=lambda: NOW)
    for number in range(300):
        add(pages.history, ended(number, broker=str(number % 2)))
    with patch.object(PastAlert, "alert", autospec=True, side_effect=PastAlert.alert) as decoded:
        query = "status=past&broker=1&q=T1&alertname=KafkaFollowerLag&severity=warning&limit=10"
        assert pages.answer("/api/v1/alerts", query).status == 200
        assert pages.answer("/alerts", query).status == 200
    assert decoded.call_count == 20


def test_the_newest_are_kept_in_any_order_and_losses_apart() -> None:
    history = AlertHistory(max_past=3, max_losses=2)
    for number in (5, 1, 4, 2, 3):
        add(history, ended(number))
        add(history, ended(-number, "KafkaCommittedDataLoss"))
    assert [round(a.ended_at - NOW) for a in history.newest_first()] == [5, 4, 3, -1, -2]


def test_the_whole_topic_is_read_and_unreadable_records_are_skipped() -> None:
    history = AlertHistory()
    values = [
        encode_record(alert()),
        encode_record(ended(2)),
        b'{"state": "resolved"',
        b'"resolved"',
        None,
        encode_record(ended(3)),
    ]
    messages = [Message(0, number, b"", value) for number, value in enumerate(values)]
    reader, stopped = Mock(), Mock()
    reader.poll.side_effect, reader.caught_up.side_effect = [messages, []], [False, True]
    stopped.is_set.side_effect = [False, False, True]
    read_past_alerts(reader, history, stopped)
    assert [a.topic for a in history.newest_first()] == ["t3", "t2"]
    assert history.complete
    assert (reader.start.call_count, reader.close.call_count) == (1, 1)
