from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from tests.export.make import NOW, alert
from tidemark.core.records import encode_record
from tidemark.kafka.topic_reader import Message
from tidemark_exporters.pages.past_alerts import AlertHistory, read_past_alerts


def ended(number: int, name: str = "KafkaFollowerLag", **changes: Any) -> Any:
    return alert(
        name,
        "resolved",
        at=NOW + number,
        starts_at=NOW + number - 1,
        reason="cleared",
        topic=f"t{number}",
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
    assert [a.labels["topic"] for a in history.newest_first()] == ["t1"]


def test_what_is_shown_is_the_whole_alert() -> None:
    given = ended(1, "KafkaCommittedDataLoss", evidence={"proven": [[3, 9]]})
    history = AlertHistory()
    add(history, given)
    (past,) = history.newest_first()
    assert past.alert() == given
    assert (past.labels, past.fingerprint, past.starts_at, past.ended_at) == (
        *(given.labels, given.fingerprint, given.starts_at),
        given.at,
    )


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
    assert [a.labels["topic"] for a in history.newest_first()] == ["t3", "t2"]
    assert history.complete
    assert (reader.start.call_count, reader.close.call_count) == (1, 1)
