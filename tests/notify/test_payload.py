"""The webhook's body, key by key as Alertmanager sends it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.export.make import NOW, alert
from tidemark.core.records import Alert
from tidemark.settings import Receiver
from tidemark_exporters.notify.gather import Batch, Entry, group_of
from tidemark_exporters.notify.payload import alert_url, postable, render, rfc3339

HOOK = Receiver(name="hook", url="http://127.0.0.1:1/")


def body(*alerts: Alert, receiver: Receiver = HOOK) -> dict[str, Any]:
    batch = Batch(group_of(alerts[0]), [Entry(each, None) for each in alerts])
    decoded: dict[str, Any] = json.loads(render(batch, receiver, "http://tidemark.example/")[1])
    return decoded


def test_every_key_of_version_4_and_no_other() -> None:
    fired = alert(at=NOW, starts_at=NOW - 2.5, description="7 records behind")
    assert body(fired) == {
        "receiver": "hook",
        "status": "firing",
        "alerts": [
            {
                "status": "firing",
                "labels": fired.labels,
                "annotations": {"summary": "A sentence.", "description": "7 records behind"},
                "startsAt": "2027-01-15T07:59:57.500Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": f"http://tidemark.example/partition?cluster=east&topic=orders&partition=0#alert-{fired.fingerprint}",
                "fingerprint": fired.fingerprint,
            }
        ],
        "groupLabels": {"kafka_cluster": "east", "broker": "2"},
        "commonLabels": fired.labels,
        "commonAnnotations": {"summary": "A sentence.", "description": "7 records behind"},
        "externalURL": "http://tidemark.example/",
        "version": "4",
        "groupKey": '{}/{receiver="hook"}:{broker="2", kafka_cluster="east"}',
        "truncatedAlerts": 0,
    }


def test_an_ended_alert_tells_when_and_why() -> None:
    ended = body(alert(state="resolved", at=NOW + 10, reason="cleared"))
    assert ended["status"] == "resolved"
    (one,) = ended["alerts"]
    assert (one["status"], one["endsAt"]) == ("resolved", "2027-01-15T08:00:10.000Z")
    assert one["annotations"]["reason"] == "cleared"


def test_a_batch_fires_while_anything_in_it_fires() -> None:
    assert body(alert(state="resolved"), alert("KafkaIsrChange"))["status"] == "firing"


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


def test_common_labels_are_those_that_all_share() -> None:
    both = body(alert(partition="0"), alert(partition="1"))
    assert "partition" not in both["commonLabels"]
    assert both["commonLabels"]["topic"] == "orders"


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
    told = many["commonAnnotations"]["summary"]
    assert told.startswith(
        "413 alerts of broker 2 of east (412 firing, 1 resolved): KafkaOffline orders/7, KafkaFollowerLag orders/"
    )
    assert told.count("KafkaFollowerLag") == 4
    assert told.endswith(", 408 more.")
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
        return render(
            Batch(group_of(alerts[0]), [Entry(each, None) for each in alerts]), HOOK, "http://x/"
        )[0]

    one, two = alert(), alert(partition="1")
    assert id_of(one, two) == id_of(two, alert(description="newer words"))
    assert id_of(one) != id_of(alert(state="resolved"))


@given(cluster=st.text(max_size=20), broker=st.text(min_size=1, max_size=20))
def test_hostile_labels_stay_text(cluster: str, broker: str) -> None:
    hostile = body(alert(cluster=cluster, broker=broker))
    assert hostile["groupLabels"] == {"kafka_cluster": cluster, "broker": broker}
    assert hostile["groupKey"].startswith('{}/{receiver="hook"}:{broker="')


def test_a_time_that_is_none_stops_nothing() -> None:
    times = [
        each["startsAt"]
        for each in body(alert(starts_at=1e300), alert(partition="1", starts_at=-1e300))["alerts"]
    ]
    assert sorted(times) == ["1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.000Z"]


@given(st.floats(0, 4e9))
def test_times_are_rfc_3339_in_utc(seconds: float) -> None:
    assert datetime.fromisoformat(rfc3339(seconds)).timestamp() == pytest.approx(seconds, abs=1e-3)


def test_what_alertmanager_takes_always_starts_before_it_ends() -> None:
    fired = alert(starts_at=NOW - 3, at=NOW)
    posted = postable(fired, "firing", fired.at, NOW, 120.0, "http://x", None)
    assert (posted["startsAt"], posted["endsAt"]) == (rfc3339(NOW), rfc3339(NOW + 120))
    # The collector's clock is ahead of ours: the alert must end now all the same, and not start after it.
    ahead = alert(state="resolved", starts_at=NOW + 50, at=NOW + 60, reason="cleared")
    posted = postable(ahead, "resolved", NOW + 53, NOW, 120.0, "http://x", None)
    assert (posted["startsAt"], posted["endsAt"]) == (rfc3339(NOW), rfc3339(NOW))
    assert posted["annotations"]["reason"] == "cleared"
    late = postable(ahead, "firing", NOW + 53, NOW, 120.0, "http://x", NOW - 9)
    assert "reason" not in late["annotations"]
    assert late["annotations"]["stale_since"] == rfc3339(NOW - 9)
