"""What would have been sent is written as it would have been posted, and summed up by week."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.export.make import NOW, alert
from tests.notify.rig import MemoryStore
from tests.notify.test_dry_run import routed
from tests.verbs.run import tidemark
from tidemark.core.errors import ConfigError
from tidemark.web.http_client import NotDeliveredError
from tidemark_exporters.notify.delivery import make_delivery
from tidemark_exporters.notify.shadow import ShadowClient, ShadowFile
from tidemark_exporters.process import Exporter

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
