"""The dry run shows the posts that are due, posts nothing and commits nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.stage import Stage
from tests.export.make import NOW, alert, open_alert, view
from tests.notify.rig import MemoryStore
from tests.verbs.run import tidemark
from tidemark.core.errors import ConfigError
from tidemark.core.records import Alert, encode_record
from tidemark.settings import Alertmanager, Notify, Receiver, Settings
from tidemark.settings.maintenance import Maintenance
from tidemark.web.webhook_client import NotDeliveredError
from tidemark_exporters.notify import dry_run as module
from tidemark_exporters.notify.delivery import make_delivery
from tidemark_exporters.notify.dry_run import dry_run
from tidemark_exporters.notify.offsets import Commit
from tidemark_exporters.notify.shadow import ShadowClient, ShadowFile
from tidemark_exporters.process import Exporter

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


# What would have been sent is written as it would have been posted, and summed up by week.


WEEK = 7 * 86_400.0
FIRED = (
    alert(
        *("KafkaOffline", "firing", NOW - WEEK, NOW - WEEK, "critical"), topic="a", partition="0"
    ),
    alert("KafkaOffline", starts_at=NOW, severity="critical", topic="a", partition="1"),
    alert("KafkaOffline", starts_at=NOW, severity="critical", topic="a", partition="2"),
    alert("KafkaFollowerLag", starts_at=NOW, severity="warning", topic="b", broker="3"),
    alert("KafkaIsrChange", starts_at=NOW, severity="info", topic="b", broker="3"),
)


def shadowed(path: Path) -> None:
    """Delivers the alerts to a pager, which takes critical ones, and to an Alertmanager."""
    settings, clock, file = routed(), [NOW], ShadowFile(path)
    clients = {r.name: [ShadowClient(r.name, file)] for r in settings.notify.routes}
    delivery = make_delivery(settings, clients, {}, lambda *_: MemoryStore(), lambda: clock[0])
    delivery.alerts([(fired, (0, number)) for number, fired in enumerate(FIRED)])
    for _ in range(3):
        # An Alertmanager gets open alerts again and again: each counts once.
        clock[0] += 120.0
        delivery.tick({"east": clock[0]}, list)
        for sender in delivery.senders:
            sender.post_due(sender.addresses[0])


def test_each_alert_is_counted_once_by_week_cluster_and_receiver(tmp_path: Path) -> None:
    path = tmp_path / "shadow.jsonl"
    shadowed(path)
    found = json.loads(tidemark("replay", "--weeks", "--json", str(path)).out)
    rows = [(each["receiver"], each["pages"], each["tickets"]) for each in found["weeks"]]
    assert sorted(rows) == [("main", 1, 0), ("main", 2, 1), ("pager", 1, 0), ("pager", 2, 0)]
    assert found["weeks"] == sorted(found["weeks"], key=lambda row: row["week"])
    assert all(1 <= row["causes"] <= row["pages"] + row["tickets"] for row in found["weeks"])
    assert found["noisiest"] == [
        {"alert": "KafkaOffline a", "times": 3},
        {"alert": "KafkaFollowerLag b", "times": 1},
    ]
    with path.open("ab") as file:
        file.write(b'{"at": 1}\n')
    shown = tidemark("replay", "--weeks", str(path))
    assert "KafkaOffline a" in shown.out
    assert shown.err.count("it is no post") == 1


def test_a_full_or_a_wrong_file_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    client = ShadowClient("pager", ShadowFile(tmp_path / "shadow.jsonl", max_bytes=10))
    with pytest.raises(NotDeliveredError, match="has reached its limit"):
        client.post(b"[]", None)
    with pytest.raises(ConfigError, match="cannot write"):
        ShadowFile(tmp_path / "none" / "shadow.jsonl")


def test_the_exporter_in_shadow_has_no_client_that_posts(tmp_path: Path) -> None:
    settings = routed()
    settings.export.listen = "127.0.0.1:0"
    exporter = Exporter(settings, shadow=tmp_path / "shadow.jsonl")
    exporter.server.close()
    clients = [each.client for sender in exporter.delivery.senders for each in sender.addresses]
    assert {type(client) for client in clients} == {ShadowClient}
    assert [client.name for client in clients] == ["pager", "main"]
