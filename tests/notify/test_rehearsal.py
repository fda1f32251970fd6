"""What the dry run shows: who would be sent what; nothing is sent and nothing committed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.export.make import MemoryStore, alert, open_alert, view
from tests.export.test_process import message
from tidemark.core.errors import ConfigError
from tidemark.kafka.topic_reader import Message
from tidemark.settings import Alertmanager, Receiver, Settings
from tidemark.settings.maintenance import Maintenance
from tidemark_exporters.notify import rehearsal
from tidemark_exporters.notify.positions import Mark
from tidemark_exporters.notify.rehearsal import rehearse

LONG_AGO = 1_000.0


class Topic:
    """A topic that gives its records in one poll."""

    topics: dict[str, list[Message]] = {}

    def __init__(self, _connection: Any, topic: str) -> None:
        self.topic = topic
        self.end = {0: len(self.topics[topic])}
        self.read = 0

    def start(self, positions: dict[int, int] | None = None) -> None:
        self.read = (positions or {}).get(0, 0)

    def poll(self, _timeout_ms: int) -> list[Message]:
        found, self.read = self.topics[self.topic][self.read :], self.end[0]
        return found

    def caught_up(self) -> bool:
        return self.read >= self.end[0]

    def close(self) -> None:
        pass


class ReadOnlyStore(MemoryStore):
    def save(self, marks: dict[int, Mark]) -> bool:
        raise AssertionError("a dry run commits nothing")


Play = Callable[..., list[str]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    def run(
        settings: Settings,
        views: list[Any],
        alerts: list[Any],
        marks: dict[int, Mark] | None = None,
    ) -> list[str]:
        topics = {
            "tidemark.partition-views": [
                message(number, each, key) for number, (key, each) in enumerate(views)
            ],
            "tidemark.alerts": [message(number, each) for number, each in enumerate(alerts)],
        }
        monkeypatch.setattr(Topic, "topics", topics)
        monkeypatch.setattr(rehearsal, "TopicReader", Topic)
        store = ReadOnlyStore()
        store.marks = marks or {}
        told: list[str] = []
        rehearse(settings, told.append, lambda *_: store)
        return told

    return run


def routed() -> Settings:
    settings = Settings()
    settings.notify.receivers = [
        Receiver(name="pager", url="http://127.0.0.1:1/", severities=["critical"])
    ]
    settings.notify.alertmanagers = [
        Alertmanager(name="main", urls=["http://127.0.0.1:1"], severities=["critical", "warning"])
    ]
    return settings


def payloads(told: list[str]) -> list[Any]:
    return [json.loads(line) for line in told if line.startswith(("{", "["))]


def test_it_shows_where_each_open_alert_belongs_and_what_each_receiver_would_get(
    play: Play,
) -> None:
    lag, offline = (
        alert(starts_at=LONG_AGO, at=LONG_AGO),
        alert("KafkaOffline", severity="critical", partition="1"),
    )
    note = alert("KafkaIsrChange", severity="info", topic="a\x1b[2Jb")
    views = [(b"a", view(alerts=[open_alert(each)])) for each in (lag,)] + [
        (b"b", view(alerts=[open_alert(offline), open_alert(note)]))
    ]
    told = play(routed(), views, [lag, offline, note])
    assert told[0] == "3 open alerts, and where each belongs:"
    assert [line.split()[-2:] for line in told[2:5]] == [
        ["00:16:40Z", "main"],
        ["pager,", "main"],
        ["07:59:57Z", "nobody"],
    ]
    assert "\x1b" not in "".join(told[:10])
    pager, manager = payloads(told)
    assert [each["labels"]["alertname"] for each in pager["alerts"]] == ["KafkaOffline"]
    assert pager["version"] == "4"
    assert sorted(each["labels"]["alertname"] for each in manager) == [
        "KafkaFollowerLag",
        "KafkaOffline",
    ]
    assert "pager: 1 post would be sent" in told
    assert "main: 1 post would be sent" in told


def test_what_was_delivered_is_not_shown_again(play: Play) -> None:
    fired = alert("KafkaOffline", severity="critical")
    told = play(routed(), [(b"a", view(alerts=[open_alert(fired)]))], [fired], {0: Mark(1)})
    assert "pager: nothing would be sent" in told
    # An Alertmanager is told again and again.
    assert len(payloads(told)) == 1


def test_what_planned_work_holds_back_is_said(play: Play) -> None:
    settings = routed()
    settings.notify.maintenance = [
        Maintenance(
            name="rack", start="2000-01-01 00:00", end="2100-01-01 00:00", alerts=["KafkaOffline"]
        )
    ]
    fired = alert("KafkaOffline", severity="critical")
    told = play(settings, [(b"a", view(alerts=[open_alert(fired)]))], [fired])
    assert told[0] == "maintenance window rack is open until 2100-01-01 00:00:00Z"
    assert told[3].endswith("pager, main (held back by rack)")
    assert payloads(told) == []


def test_without_receivers_there_is_nothing_to_show(play: Play) -> None:
    with pytest.raises(ConfigError, match="has no receivers"):
        play(Settings(), [], [])
