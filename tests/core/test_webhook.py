"""The webhook document, key by key as Alertmanager sends it."""

from __future__ import annotations

from typing import Any

from tidemark.core.own_alerts import own_alert
from tidemark.core.records import Alert
from tidemark.core.webhook import alert_document, webhook_document

NOW = 1_800_000_000.0


def fired(cluster: str = "east", *, firing: bool = True) -> Alert:
    return own_alert(
        "TidemarkCollectorBlind",
        "critical",
        "No broker answers.",
        "For 30 s.",
        starts_at=NOW - 2.5,
        at=NOW,
        firing=firing,
        labels={"kafka_cluster": cluster},
    )


def document(*alerts: Alert, **options: Any) -> dict[str, Any]:
    return webhook_document(
        "hook", [alert_document(each) for each in alerts], {"kafka_cluster": "east"}, **options
    )


def test_every_key_of_version_4_and_no_other() -> None:
    alert = fired()
    assert document(alert) == {
        "receiver": "hook",
        "status": "firing",
        "alerts": [
            {
                "status": "firing",
                "labels": alert.labels,
                "annotations": alert.annotations,
                "startsAt": "2027-01-15T07:59:57.500Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "",
                "fingerprint": alert.fingerprint,
            }
        ],
        "groupLabels": {"kafka_cluster": "east"},
        "commonLabels": alert.labels,
        "commonAnnotations": alert.annotations,
        "externalURL": "",
        "version": "4",
        "groupKey": '{}:{kafka_cluster="east"}',
        "truncatedAlerts": 0,
    }


def test_a_resolved_alert_has_an_end() -> None:
    both = document(fired(), fired("west", firing=False))
    assert [each["endsAt"] for each in both["alerts"]] == [
        "0001-01-01T00:00:00Z",
        "2027-01-15T08:00:00.000Z",
    ]
    assert both["status"] == "firing"
    assert document(fired(firing=False))["status"] == "resolved"


def test_common_labels_are_those_that_all_alerts_share() -> None:
    both = document(fired(), fired("west"), headline={"summary": "2 alerts."})
    assert both["commonLabels"] == {"alertname": "TidemarkCollectorBlind", "severity": "critical"}
    assert both["commonAnnotations"]["summary"] == "2 alerts."
    assert both["commonAnnotations"]["description"] == "For 30 s."


def test_a_group_key_quotes_what_comes_from_outside() -> None:
    hostile = webhook_document("hook", [], {"topic": 'a"b', "broker": "2"}, route="{}/{x}")
    assert hostile["groupKey"] == '{}/{x}:{broker="2", topic="a\\"b"}'
    assert (hostile["status"], hostile["commonLabels"]) == ("resolved", {})


def test_annotations_and_links_of_the_sender_replace_the_alerts_own() -> None:
    shown = alert_document(fired(), {"summary": "Other."}, "http://tidemark.example/")
    assert shown["annotations"] == {"summary": "Other."}
    assert shown["generatorURL"] == "http://tidemark.example/"
