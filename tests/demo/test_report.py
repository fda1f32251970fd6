from __future__ import annotations

from typing import Any

import pytest

from tidemark.assess.losses import LOSS
from tidemark.core.records import Alert
from tidemark.detect import DETECTORS
from tidemark.detect.default_thresholds import Thresholds
from tidemark_lab.brokers.load_producer import AcknowledgedRecord
from tidemark_lab.brokers.replica_logs import Stored
from tidemark_lab.demo.alert_result import AlertResult, failures, latency_remarks
from tidemark_lab.demo.expected_alerts import EXPECTED, HEALTHY, PAUSED, ROLLING, SCENES, UNCLEAN
from tidemark_lab.demo.report import Report
from tidemark_lab.judge.expected import (
    UPDATE_SECONDS,
    Expected,
    Mark,
    ReceivedAlert,
    hysteresis_passes,
)
from tidemark_lab.judge.loss_comparison import LossComparison, compare_loss
from tidemark_lab.judge.truth import establish

TOPIC = "demo.orders"
BEGAN = {scene: 1000.0 + 100 * number for number, scene in enumerate(SCENES)}
EXPECTED_ALERTS = [(scene, each) for scene, expected in EXPECTED.items() for each in expected]


def report() -> Report:
    """Scenes 100 s apart, each fault 10 s into its scene, each condition detectable 1 s later."""
    made = Report(TOPIC, Thresholds(), 1.0)
    made.first_seen = lambda condition, since, broker: since + 1.0
    made.began = dict(BEGAN)
    made.marks = {e.after: Mark(e.after, "", "", BEGAN[s] + 10) for s, e in EXPECTED_ALERTS}
    return made


def alert(
    at: float,
    name: str,
    state: str = "firing",
    severity: str = "warning",
    topic: str | None = TOPIC,
    starts_at: float | None = None,
    broker: int | None = None,
    evidence: Any = None,
) -> ReceivedAlert:
    labels = {"alertname": name, "severity": severity, "kafka_cluster": "demo"}
    labels |= {"topic": topic, "partition": "0"} if topic is not None else {}
    labels |= {"broker": str(broker)} if broker is not None else {}
    starts = at - 1 if starts_at is None else starts_at
    known = Alert(
        id="i",
        fingerprint="/".join(map(str, sorted(labels.items()))),
        state=state,  # type: ignore[arg-type]
        labels=labels,
        annotations={},
        evidence=evidence or {},
        starts_at=starts,
        at=at,
    )
    return ReceivedAlert(known, at)


def answer(scene: str, expected: Expected, after: float = 3.0) -> list[ReceivedAlert]:
    """The notification of an expected alert, and its resolution."""
    pages = expected.alert in {"KafkaOffline", "KafkaUncleanElection", LOSS}
    ranges = {"proven": (10, 17), "exposed": (17, 19)} if expected.alert == LOSS else {}
    at, severity = BEGAN[scene] + 10 + after, "critical" if pages else "warning"
    found = [
        alert(at, expected.alert, "firing", severity, broker=expected.broker, evidence=ranges),
        alert(
            at + 20, expected.alert, "resolved", severity, broker=expected.broker, evidence=ranges
        ),
    ]
    return found if expected.resolves else found[:1]


def all_alerts() -> list[ReceivedAlert]:
    return sorted((a for one in EXPECTED_ALERTS for a in answer(*one)), key=lambda a: a.received_at)


def lost(*proven: int) -> LossComparison:
    """Of 20 acknowledged records the first 10 are left."""
    place = ("t", 0)
    records = [AcknowledgedRecord(*place, offset, offset, 0.0) for offset in range(20)]
    log = {offset: Stored(offset, 0) for offset in range(10)}
    start, end = proven
    return compare_loss((start, end), establish(records, {1: {place: log}}, {place: 1}), place)


def results_of(alerts: list[ReceivedAlert]) -> list[AlertResult]:
    made = report()
    made.comparison = lost(10, 17)
    return made.results(alerts)


def test_the_demo_succeeds_when_all_alerts_came_and_resolved_and_nothing_else() -> None:
    results = results_of(all_alerts())
    assert failures(results) == []
    assert [r.seconds_from_fault for r in results if r.expected] == [3.0] * len(EXPECTED_ALERTS)
    assert [r.seconds_from_detectable for r in results if r.expected] == [2.0] * len(
        EXPECTED_ALERTS
    )


@pytest.mark.parametrize(("scene", "expected"), EXPECTED_ALERTS)
def test_each_missing_alert_fails_the_demo(scene: str, expected: Expected) -> None:
    others = [one for one in EXPECTED_ALERTS if one != (scene, expected)]
    reasons = failures(results_of([a for one in others for a in answer(*one)]))
    assert f"{scene}: {expected.alert} did not come" in reasons


@pytest.mark.parametrize(("scene", "expected"), [one for one in EXPECTED_ALERTS if one[1].resolves])
def test_each_missing_resolution_fails_the_demo(scene: str, expected: Expected) -> None:
    others = [one for one in EXPECTED_ALERTS if one != (scene, expected)]
    alerts = [*answer(scene, expected)[:1], *(a for one in others for a in answer(*one))]
    assert failures(results_of(alerts)) == [f"{scene}: {expected.alert} was not resolved"]


def came(scene: str, name: str, topic: str = TOPIC) -> list[str]:
    return [f"{scene}: {name} came and was not expected ({topic})"]


IN_HEALTHY = BEGAN[HEALTHY] + 9
STALE: dict[str, Any] = {"name": "TidemarkStreamStale", "severity": "critical", "topic": None}


@pytest.mark.parametrize(
    ("other", "reasons"),
    [
        # An unexpected page fails any scene.
        *(
            (
                alert(BEGAN[scene] + 30, "KafkaUnderMinIsr", severity="critical"),
                came(scene, "KafkaUnderMinIsr"),
            )
            for scene in (PAUSED, ROLLING, UNCLEAN)
        ),
        # One that is expected, of another topic.
        (
            alert(BEGAN[UNCLEAN] + 30, "KafkaOffline", severity="critical", topic="own"),
            came(UNCLEAN, "KafkaOffline", "own"),
        ),
        # Other severities are allowed except while healthy.
        (alert(BEGAN[ROLLING] + 30, "KafkaIsrChange", severity="warning"), []),
        (alert(BEGAN[ROLLING] + 30, "KafkaIsrChange", severity="info"), []),
        (alert(IN_HEALTHY, "KafkaIsrChange", severity="warning"), came(HEALTHY, "KafkaIsrChange")),
        (alert(IN_HEALTHY, "KafkaIsrChange", severity="info"), came(HEALTHY, "KafkaIsrChange")),
        # One from the start-up belongs to no scene.
        (alert(IN_HEALTHY, starts_at=BEGAN[HEALTHY] - 5, **STALE), []),
        (alert(IN_HEALTHY, **STALE), came(HEALTHY, "TidemarkStreamStale", "no topic")),
    ],
)
def test_what_is_not_expected_fails_the_demo(other: ReceivedAlert, reasons: list[str]) -> None:
    assert failures(results_of([*all_alerts(), other])) == reasons


def test_other_alerts_are_counted_by_scene_each_alert_once() -> None:
    also = [
        alert(BEGAN[ROLLING] + 30, "KafkaIsrChange", severity="info", broker=broker)
        for broker in (1, 2, 2)
    ]
    wanted = alert(BEGAN[PAUSED] + 30, "KafkaIsrChange", severity="info")
    page = alert(BEGAN[ROLLING] + 30, "KafkaOffline", severity="critical")
    ended = alert(BEGAN[ROLLING] + 40, "KafkaFollowerLag", state="resolved")
    assert report().other_alerts([*also, wanted, page, ended]) == [
        f"{ROLLING}, without a page: 2 KafkaIsrChange (info)"
    ]


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({"broker": 2}, True),
        # Of another broker, of an older fault, and of no firing.
        ({"broker": 1}, False),
        ({"broker": 2, "starts_at": BEGAN[PAUSED]}, False),
        ({"broker": 2, "state": "resolved"}, False),
    ],
)
def test_only_an_alert_of_the_broker_and_the_fault_counts(
    fields: dict[str, Any], counts: bool
) -> None:
    lag = EXPECTED[PAUSED][0]
    made = alert(BEGAN[PAUSED] + 12, lag.alert, **fields)
    assert report().find_firing(PAUSED, lag, [made]) == (made if counts else None)


def test_no_alert_counts_before_its_fault() -> None:
    made = report()
    made.marks.clear()
    assert all(
        not result.received and result.detectable_at is None
        for result in made.results(all_alerts())
        if result.expected
    )


def test_an_unsound_proven_range_fails_the_demo() -> None:
    made = report()
    assert any("was not compared" in reason for reason in failures(made.results(all_alerts())))
    made.comparison = lost(9, 17)
    assert any(
        "does not agree with the producer's record" in reason
        for reason in failures(made.results(all_alerts()))
    )


def test_the_newest_notification_of_the_loss_counts() -> None:
    (first,) = answer(*next(one for one in EXPECTED_ALERTS if one[1].alert == LOSS))
    at = first.received_at + 1
    grown = alert(at, LOSS, severity="critical", evidence={"proven": (10, 18)})
    assert report().loss_range("proven", [first, grown]) == (10, 18)
    assert report().loss_range("exposed", [first]) == (17, 19)


def test_json_rows_have_the_documented_fields() -> None:
    rows = [result.as_json() for result in results_of(all_alerts())]
    fields = {"scene", "alert", "expected", "received", "fault_at", "detectable_at", "received_at"}
    assert all(fields <= row.keys() for row in rows)
    loss = next(row for row in rows if row["alert"] == LOSS)
    assert (loss["proven"], loss["exposed"], loss["true"]) == ((10, 17), (17, 19), (10, 20))
    assert all("proven" not in row for row in rows if row["alert"] != LOSS)


def test_a_late_alert_is_reported_and_does_not_fail_the_demo() -> None:
    lag = (PAUSED, EXPECTED[PAUSED][0])
    alerts = [a for one in EXPECTED_ALERTS for a in answer(*one, 9.0 if one == lag else 3.0)]
    results = results_of(alerts)
    assert failures(results) == []
    assert latency_remarks(results)[1] == f"{PAUSED}: KafkaFollowerLag took 8.0 s, 7 s are allowed"
    assert "AFTER" in latency_remarks(results)[-1]
    assert [result.alert for result in results if result.is_late] == ["KafkaFollowerLag"]


def test_every_expected_alert_has_a_detector_and_its_hysteresis_is_the_detectors_own() -> None:
    assert {e.detector for _, e in EXPECTED_ALERTS} <= DETECTORS.keys()
    thresholds = Thresholds(fire_passes=4)
    assert hysteresis_passes("FOLLOWER_LAG", thresholds) == 4
    assert hysteresis_passes("ISR_CHANGE", thresholds) == DETECTORS["ISR_CHANGE"].fire_passes
    assert hysteresis_passes("UNCLEAN_ELECTION", thresholds) == 0
    assert hysteresis_passes("COMMITTED_DATA_LOSS", thresholds) == 2
    lag, cut = EXPECTED[PAUSED][0], EXPECTED[UNCLEAN][-1]
    assert lag.allowed_seconds(Thresholds(), 1.0) == 7.0
    assert cut.allowed_seconds(Thresholds(), 1.0) == 4.0 + UPDATE_SECONDS
