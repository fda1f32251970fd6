"""Bodies of requests to webhooks and to Alertmanager."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.export.make import NOW, alert
from tidemark.core.records import Alert
from tidemark.core.text import rfc3339
from tidemark.settings import Notify, Receiver
from tidemark_exporters.notify.groups import Group
from tidemark_exporters.notify.payload import alert_url, alertmanager_alert, webhook_body

HOOK = Receiver(name="hook", url="http://127.0.0.1:1/")
GROUP = {"kafka_cluster": "east", "broker": "2"}
NOTIFY = Notify(external_url="http://tidemark.example/", dashboard_url="https://grafana.example")


def body(
    *alerts: Alert, receiver: Receiver = HOOK, group: dict[str, str] = GROUP
) -> dict[str, Any]:
    text, _ = webhook_body(alerts, Group(group), receiver, NOTIFY)
    decoded: dict[str, Any] = json.loads(text)
    return decoded


def test_a_batch_has_links_group_and_receiver() -> None:
    fired = alert(description="7 records behind")
    document = body(fired)
    assert document["receiver"] == "hook"
    assert document["groupLabels"] == GROUP
    assert document["groupKey"] == '{}/{receiver="hook"}:{broker="2", kafka_cluster="east"}'
    assert document["externalURL"] == "http://tidemark.example/"
    (one,) = document["alerts"]
    assert one["annotations"] == {
        "summary": "A sentence.",
        "description": "7 records behind",
        "runbook_url": "http://tidemark.example/docs/runbooks/kafkafollowerlag"
        "?cluster=east&topic=orders&partition=0&broker=2",
        "dashboard_url": "https://grafana.example/d/tidemark-partition"
        "?var-kafka_cluster=east&var-topic=orders&var-partition=0&var-broker=2",
    }
    assert one["generatorURL"] == (
        "http://tidemark.example/partition?cluster=east&topic=orders&partition=0"
        f"#alert-{fired.fingerprint}"
    )


def test_a_resolved_alert_has_its_end_and_its_reason() -> None:
    ended = body(alert(state="resolved", at=NOW + 10, reason="cleared"))
    assert ended["status"] == "resolved"
    (one,) = ended["alerts"]
    assert (one["status"], one["endsAt"]) == ("resolved", "2027-01-15T08:00:10.000Z")
    assert one["annotations"]["reason"] == "cleared"


def test_the_worst_come_first_and_the_rest_is_counted() -> None:
    alerts = [
        alert("KafkaIsrChange", severity="info"),
        alert("KafkaFollowerLag", severity="warning"),
        alert("KafkaUnderMinIsr", severity="critical"),
        alert("KafkaOffline", severity="critical"),
        alert("KafkaUncleanElection", severity="critical", state="resolved"),
    ]
    few = body(*alerts, receiver=Receiver(name="hook", url="http://127.0.0.1:1/", max_alerts=3))
    assert [each["labels"]["alertname"] for each in few["alerts"]] == [
        "KafkaOffline",
        "KafkaUnderMinIsr",
        "KafkaFollowerLag",
    ]
    assert few["truncatedAlerts"] == 2
    assert len(body(*alerts)["alerts"]) == 5


def test_no_bound_leaves_out_a_loss() -> None:
    losses = [
        alert("KafkaCommittedDataLoss", severity="critical", incident=str(number))
        for number in range(3)
    ]
    few = body(
        alert(), *losses, receiver=Receiver(name="hook", url="http://127.0.0.1:1/", max_alerts=2)
    )
    assert {each["labels"].get("incident") for each in few["alerts"]} == {"0", "1", "2"}
    assert few["truncatedAlerts"] == 1


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ({"proven": [5, 12], "exposed": [12, 20]}, {"proven": "5-12", "exposed": "12-20"}),
        ({"proven": [[5, 12], [30, 31]], "exposed": None}, {"proven": "5-12,30-31"}),
        ({}, {}),
    ],
)
def test_ranges_become_annotations(evidence: dict[str, Any], expected: dict[str, str]) -> None:
    (one,) = body(alert("KafkaCommittedDataLoss", evidence=evidence))["alerts"]
    assert {
        name: text for name, text in one["annotations"].items() if name in {"proven", "exposed"}
    } == expected


def test_several_alerts_have_one_headline_with_the_worst_and_the_count() -> None:
    alerts = [alert(partition=str(number)) for number in range(411)]
    alerts.append(alert("KafkaOffline", severity="critical", partition="7"))
    alerts.append(alert("KafkaHwStalled", state="resolved", partition="3"))
    many = body(*alerts)
    summary = many["commonAnnotations"]["summary"]
    assert summary.startswith(
        "413 alerts of broker 2 of east (412 firing, 1 resolved): "
        "KafkaOffline orders-7, KafkaFollowerLag orders-"
    )
    assert summary.count("KafkaFollowerLag") == 4
    assert summary.endswith(", 408 more.")
    # Every one of them is there: the headline is for people.
    assert len(many["alerts"]) == 413
    assert body(alert())["commonAnnotations"]["summary"] == "A sentence."


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        (
            {"topic": "a b&c", "partition": "3"},
            "partition?cluster=east&topic=a%20b%26c&partition=3",
        ),
        (
            {"name": "KafkaBrokerDown", "topic": "", "partition": ""},
            "alerts?cluster=east&alertname=KafkaBrokerDown",
        ),
        ({"partition": "３"}, "alerts?cluster=east&alertname=KafkaFollowerLag"),
    ],
)
def test_the_link_leads_to_the_status_page(changes: dict[str, Any], path: str) -> None:
    fired = alert(**changes)
    assert (
        alert_url("http://tidemark.example/x/", fired)
        == f"http://tidemark.example/x/{path}#alert-{fired.fingerprint}"
    )


def test_tidemarks_own_alerts_link_to_the_first_page() -> None:
    assert (
        alert_url("http://tidemark.example", alert("TidemarkStreamStalled", topic="", partition=""))
        == "http://tidemark.example/"
    )


def test_the_message_id_depends_on_the_transitions_alone() -> None:
    def id_of(*alerts: Alert) -> str:
        _, message_id = webhook_body(alerts, Group(GROUP), HOOK, NOTIFY)
        return message_id

    one, two = alert(), alert(partition="1")
    assert id_of(one, two) == id_of(two, alert(description="newer words"))
    assert id_of(one) != id_of(alert(state="resolved"))


@given(cluster=st.text(max_size=20), broker=st.text(min_size=1, max_size=20))
def test_hostile_labels_stay_text(cluster: str, broker: str) -> None:
    group = {"kafka_cluster": cluster, "broker": broker}
    hostile = body(alert(cluster=cluster, broker=broker), group=group)
    assert hostile["groupLabels"] == group
    assert hostile["groupKey"].startswith('{}/{receiver="hook"}:{broker="')


def test_a_time_outside_the_calendar_is_no_error() -> None:
    posted = body(alert(starts_at=1e300), alert(partition="1", starts_at=-1e300))["alerts"]
    times = sorted(each["startsAt"] for each in posted)
    assert times == ["1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.000Z"]


@given(st.floats(0, 4e9))
def test_times_are_rfc_3339_in_utc(seconds: float) -> None:
    (one,) = body(alert(starts_at=seconds))["alerts"]
    assert datetime.fromisoformat(one["startsAt"]).timestamp() == pytest.approx(seconds, abs=1e-3)


def test_a_posted_alert_never_ends_before_it_starts() -> None:
    fired = alert(starts_at=NOW - 3, at=NOW)
    posted = alertmanager_alert(fired, "firing", fired.at, NOW, 120.0, NOTIFY)
    assert (posted["startsAt"], posted["endsAt"]) == (rfc3339(NOW), rfc3339(NOW + 120))
    # The collector's clock is ahead: the alert ends now all the same, and does not start after it.
    ahead = alert(state="resolved", starts_at=NOW + 50, at=NOW + 60, reason="cleared")
    posted = alertmanager_alert(ahead, "resolved", NOW + 53, NOW, 120.0, NOTIFY)
    assert (posted["startsAt"], posted["endsAt"]) == (rfc3339(NOW), rfc3339(NOW))
    assert posted["annotations"]["reason"] == "cleared"
    late = alertmanager_alert(ahead, "firing", NOW + 53, NOW, 120.0, NOTIFY, NOW - 9)
    assert "reason" not in late["annotations"]
    assert late["annotations"]["stale_since"] == rfc3339(NOW - 9)
