from __future__ import annotations

import threading
from typing import Any

from tests.export.make import NOW, alert
from tidemark.core.records import encode_record
from tidemark.kafka.topic_reader import Message
from tidemark_exporters.pages.history import History, follow


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


def test_only_ends_are_kept_once_and_an_escalation_is_none() -> None:
    history = History()
    for each in (
        alert(),
        alert(state="update"),
        ended(1),
        ended(1),
        alert(state="resolved", reason="escalated"),
    ):
        history.take(each)
    assert [a.labels["topic"] for a in history.newest_first()] == ["t1"]


def test_the_newest_stay_in_whatever_order_they_come_and_losses_are_kept_apart() -> None:
    history = History(most=3, most_losses=2)
    for number in (5, 1, 4, 2, 3):
        history.take(ended(number))
        history.take(ended(-number, "KafkaCommittedDataLoss"))
    assert [round(a.at - NOW) for a in history.newest_first()] == [5, 4, 3, -1, -2]


class Script:
    """A reader that hands out what it was given, then ends the reading."""

    def __init__(self, messages: list[Message], stopped: threading.Event) -> None:
        self.started = self.closed = False
        self._messages = messages
        self._stopped = stopped

    def start(self) -> None:
        self.started = True

    def poll(self, _timeout_ms: int) -> list[Message]:
        messages, self._messages = self._messages, []
        if not messages:
            self._stopped.set()
        return messages

    def caught_up(self) -> bool:
        return not self._messages

    def close(self) -> None:
        self.closed = True


def test_the_topic_is_read_whole_and_what_is_no_record_is_passed_over() -> None:
    stopped, history = threading.Event(), History()
    values = [
        encode_record(alert()),
        encode_record(ended(2)),
        b'{"state": "resolved"',
        b'"resolved"',
        None,
        encode_record(ended(3)),
    ]
    script = Script(
        [Message(0, number, b"", value) for number, value in enumerate(values)], stopped
    )
    follow(script, history, stopped)  # type: ignore[arg-type]
    assert [a.labels["topic"] for a in history.newest_first()] == ["t3", "t2"]
    assert history.complete
    assert (script.started, script.closed) == (True, True)
