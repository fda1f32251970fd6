"""The dry run shows the posts that are due, posts nothing and commits nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.dashboards.stage import Stage
from tests.export.make import alert, open_alert, view
from tests.notify.rig import MemoryStore
from tidemark.core.records import Alert, encode_record
from tidemark.settings import Alertmanager, Notify, Receiver, Settings
from tidemark.settings.maintenance import Maintenance
from tidemark_exporters.notify import dry_run as module
from tidemark_exporters.notify.dry_run import dry_run
from tidemark_exporters.notify.offsets import Commit

LONG_AGO = 1_000.0
OFFLINE = alert("KafkaOffline", severity="critical")


class ReadOnlyStore(MemoryStore):
    def save(self, commits: dict[int, Commit]) -> bool:
        raise AssertionError("a dry run commits nothing")


Play = Callable[..., list[str]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    def run(
        settings: Settings,
        *alerts: Alert,
        commits: dict[int, Commit] | None = None,
        as_json: bool = False,
    ) -> list[str]:
        """What it prints while these alerts are open: each in a view, and as a record."""
        stage = Stage()
        for fired in alerts:
            shown = encode_record(view(alerts=[open_alert(fired)]))
            stage.topics["tidemark.partition-views"].write(fired.fingerprint, shown)
            stage.topics["tidemark.alerts"].write(fired.fingerprint, encode_record(fired))
        monkeypatch.setattr(module, "TopicReader", stage.reader)
        store = ReadOnlyStore()
        store.commits = commits or {}
        lines: list[str] = []
        dry_run(settings, lines.append, lambda *_: store, as_json=as_json)
        return lines

    return run


def routed() -> Settings:
    notify = Notify(
        receivers=[Receiver(name="pager", url="http://127.0.0.1:1/", severities=["critical"])],
        alertmanagers=[
            Alertmanager(
                name="main", urls=["http://127.0.0.1:1"], severities=["critical", "warning"]
            )
        ],
    )
    return Settings(notify=notify)


def payloads(lines: list[str]) -> list[Any]:
    return [json.loads(line) for line in lines if line.startswith(("{", "["))]


def test_it_shows_the_receivers_of_each_open_alert_and_the_posts_to_each_receiver(
    play: Play,
) -> None:
    lag = alert(starts_at=LONG_AGO, at=LONG_AGO)
    offline = alert("KafkaOffline", severity="critical", partition="1")
    note = alert("KafkaIsrChange", severity="info", topic="a\x1b[2Jb")
    lines = play(routed(), lag, offline, note)
    assert lines[0] == "3 open alerts, and where each belongs:"
    assert [line.split()[-2:] for line in lines[2:5]] == [
        ["00:16:40.000", "main"],
        ["pager,", "main"],
        ["07:59:57.000", "none"],
    ]
    assert "\x1b" not in "".join(lines[:10])
    pager, manager = payloads(lines)
    assert [each["labels"]["alertname"] for each in pager["alerts"]] == ["KafkaOffline"]
    assert pager["version"] == "4"
    assert sorted(each["labels"]["alertname"] for each in manager) == [
        "KafkaFollowerLag",
        "KafkaOffline",
    ]
    assert "pager: 1 post would be sent" in lines
    assert "main: 1 post would be sent" in lines


def test_json_is_one_object(play: Play) -> None:
    (line,) = play(routed(), OFFLINE, as_json=True)
    shown = json.loads(line)
    assert shown["open"][0]["receivers"] == ["pager", "main"]
    assert shown["open"][0]["labels"]["alertname"] == "KafkaOffline"
    assert {name: len(posts) for name, posts in shown["posts"].items()} == {"pager": 1, "main": 1}


def test_delivered_alerts_are_not_shown_again(play: Play) -> None:
    lines = play(routed(), OFFLINE, commits={0: Commit(1)})
    assert "pager: nothing would be sent" in lines
    # Open alerts are posted to Alertmanager again and again.
    assert len(payloads(lines)) == 1


def test_it_shows_muted_alerts(play: Play) -> None:
    settings = routed()
    settings.notify.maintenance = [
        Maintenance(
            name="rack", start="2000-01-01 00:00", end="2100-01-01 00:00", alerts=["KafkaOffline"]
        )
    ]
    lines = play(settings, OFFLINE)
    assert lines[0] == "maintenance window rack is open until 2100-01-01 00:00:00.000"
    assert lines[3].endswith("pager, main (held back by rack)")
    assert payloads(lines) == []
