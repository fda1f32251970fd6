from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tidemark.core.identity import alert_name
from tidemark.demo.expectations import (
    EXPECTATIONS,
    HEALTHY,
    LOSS,
    PAUSED,
    ROLLING,
    SCENES,
    UNCLEAN,
    Expectation,
    allowed_seconds,
    expected,
    hysteresis_passes,
)
from tidemark.demo.report import Report, Row, bars, verdict
from tidemark.demo.table import cells, render
from tidemark.demo.truth import compare
from tidemark.detect import DETECTORS
from tidemark.detect.thresholds import Thresholds
from tidemark.local.load import Acknowledged
from tidemark.local.receiver import Received

TOPIC = "demo.orders"
BEGAN = {scene: 1000.0 + 100 * number for number, scene in enumerate(SCENES)}


def report() -> Report:
    """All scenes begun 100 s apart, each fault 10 s into its scene; conditions detectable 1 s after their fault."""
    made = Report(TOPIC, Thresholds(), 1.0, lambda condition, since, broker: since + 1.0)
    made.timeline.scenes = dict(BEGAN)
    made.timeline.causes = {(e.scene, e.cause): BEGAN[e.scene] + 10 for e in EXPECTATIONS}
    return made


def alert(
    at: float,
    name: str,
    status: str = "firing",
    severity: str = "warning",
    topic: str | None = TOPIC,
    **more: Any,
) -> Received:
    labels = {"alertname": name, "severity": severity, "kafka_cluster": "demo"}
    labels |= {"topic": topic, "partition": "0"} if topic is not None else {}
    labels |= {key: str(value) for key, value in more.pop("labels", {}).items()}
    starts_at = (
        datetime.fromtimestamp(more.pop("starts_at", at - 1), UTC)
        .isoformat()
        .replace("+00:00", "Z")
    )
    return Received(at, status, labels, more.pop("annotations", {}), starts_at)


def answer(expectation: Expectation, after: float = 3.0) -> list[Received]:
    """The notification that an expectation waits for, and its end."""
    severity = (
        "critical" if expectation.detector in {"OFFLINE", "UNCLEAN_ELECTION", LOSS} else "warning"
    )
    labels = {} if expectation.about is None else {"broker": expectation.about}
    notes = {"proven": "10-17", "exposed": "17-19"} if expectation.detector == LOSS else {}
    at = BEGAN[expectation.scene] + 10 + after
    fired = alert(at, expectation.alert, severity=severity, labels=labels, annotations=notes)
    return (
        [fired, replace(fired, status="resolved", received_at=at + 20)]
        if expectation.ends
        else [fired]
    )


def all_came() -> list[Received]:
    return sorted((a for e in EXPECTATIONS for a in answer(e)), key=lambda a: a.received_at)


def lost() -> Any:
    return compare(
        (10, 17),
        [Acknowledged(0, offset, offset, 0.0) for offset in range(20)],
        {offset: offset for offset in range(10)},
    )


def rows_of(alerts: list[Received]) -> list[Row]:
    made = report()
    made.comparison = lost()
    return made.rows(alerts)


def test_when_all_came_and_ended_and_nothing_else_the_demo_succeeds() -> None:
    rows = rows_of(all_came())
    assert verdict(rows) == []
    assert [r.from_fault for r in rows if r.expected] == [3.0] * len(EXPECTATIONS)
    assert [r.from_detectable for r in rows if r.expected] == [2.0] * len(EXPECTATIONS)


def test_each_expectation_alone_is_missed() -> None:
    for missing in EXPECTATIONS:
        alerts = [a for e in EXPECTATIONS if e != missing for a in answer(e)]
        assert f"{missing.scene}: {missing.alert} did not come" in verdict(rows_of(alerts))


def test_each_end_alone_is_missed() -> None:
    for open_one in (e for e in EXPECTATIONS if e.ends):
        alerts = [a for e in EXPECTATIONS for a in (answer(e)[:1] if e == open_one else answer(e))]
        assert verdict(rows_of(alerts)) == [f"{open_one.scene}: {open_one.alert} was not resolved"]


@pytest.mark.parametrize("scene", [PAUSED, ROLLING, UNCLEAN])
def test_a_page_that_was_not_expected_fails_any_scene(scene: str) -> None:
    page = alert(BEGAN[scene] + 30, "KafkaUnderMinIsr", severity="critical")
    assert verdict(rows_of([*all_came(), page])) == [
        f"{scene}: KafkaUnderMinIsr came and was not expected ({TOPIC})"
    ]


def test_an_expected_page_on_another_topic_is_not_expected() -> None:
    page = alert(BEGAN[UNCLEAN] + 30, "KafkaOffline", severity="critical", topic="tidemark.alerts")
    assert verdict(rows_of([*all_came(), page])) == [
        f"{UNCLEAN}: KafkaOffline came and was not expected (tidemark.alerts)"
    ]


@pytest.mark.parametrize("severity", ["warning", "info"])
def test_what_is_no_page_is_allowed_except_while_healthy(severity: str) -> None:
    other = alert(BEGAN[ROLLING] + 30, "KafkaIsrChange", severity=severity)
    assert verdict(rows_of([*all_came(), other])) == []
    healthy = alert(BEGAN[HEALTHY] + 5, "KafkaIsrChange", severity=severity)
    assert verdict(rows_of([*all_came(), healthy])) == [
        f"{HEALTHY}: KafkaIsrChange came and was not expected ({TOPIC})"
    ]


def test_what_else_came_is_told_scene_by_scene_each_alert_once() -> None:
    also = [
        alert(BEGAN[ROLLING] + 30, "KafkaIsrChange", severity="info", labels={"broker": broker})
        for broker in (1, 2, 2)
    ]
    wanted = alert(BEGAN[PAUSED] + 30, "KafkaIsrChange", severity="info")
    page = alert(BEGAN[ROLLING] + 30, "KafkaOffline", severity="critical")
    ended = alert(BEGAN[ROLLING] + 40, "KafkaFollowerLag", status="resolved")
    assert report().beside([*also, wanted, page, ended]) == [
        f"{ROLLING}, without a page: 2 KafkaIsrChange (info)"
    ]


def test_what_began_while_the_processes_came_up_is_no_alert_of_a_scene() -> None:
    stale = alert(
        BEGAN[HEALTHY] + 1,
        "TidemarkStreamStale",
        severity="critical",
        topic=None,
        starts_at=BEGAN[HEALTHY] - 5,
    )
    assert verdict(rows_of([*all_came(), stale])) == []
    again = alert(BEGAN[HEALTHY] + 9, "TidemarkStreamStale", severity="critical", topic=None)
    assert verdict(rows_of([*all_came(), again])) == [
        f"{HEALTHY}: TidemarkStreamStale came and was not expected (no topic)"
    ]


def test_an_alert_of_another_broker_or_of_an_older_fault_is_no_answer() -> None:
    made, lag = report(), expected(PAUSED)[0]
    at = BEGAN[PAUSED] + 12
    assert made.firing(lag, [alert(at, lag.alert, labels={"broker": 1})]) is None
    assert (
        made.firing(lag, [alert(at, lag.alert, labels={"broker": 2}, starts_at=BEGAN[PAUSED])])
        is None
    )
    assert made.firing(lag, [alert(at, lag.alert, labels={"broker": 2}, status="resolved")]) is None
    right = alert(at, lag.alert, labels={"broker": 2})
    assert made.firing(lag, [right]) is right


def test_a_scene_whose_fault_was_never_injected_expects_in_vain() -> None:
    made = report()
    made.timeline.causes.clear()
    assert all(
        not row.received and row.detectable_at is None
        for row in made.rows(all_came())
        if row.expected
    )


def test_an_unsound_proof_fails_the_demo() -> None:
    made = report()
    assert any("was not compared" in reason for reason in verdict(made.rows(all_came())))
    made.comparison = compare(
        (9, 17),
        [Acknowledged(0, offset, offset, 0.0) for offset in range(20)],
        {offset: offset for offset in range(10)},
    )
    assert any(
        "does not agree with the producer's record" in reason
        for reason in verdict(made.rows(all_came()))
    )


def test_the_newest_notification_of_the_loss_counts() -> None:
    first = answer(next(e for e in EXPECTATIONS if e.detector == LOSS))[0]
    grown = replace(first, received_at=first.received_at + 1, annotations={"proven": "10-18"})
    assert report().claimed("proven", [first, grown]) == (10, 18)
    assert report().claimed("exposed", [first]) == (17, 19)


def test_json_rows_have_the_documented_fields() -> None:
    rows = [row.as_json() for row in rows_of(all_came())]
    fields = {"scene", "alert", "expected", "received", "fault_at", "detectable_at", "received_at"}
    assert all(fields <= row.keys() for row in rows)
    loss = next(row for row in rows if row["alert"] == alert_name(LOSS))
    assert (loss["proven"], loss["exposed"], loss["true"]) == ((10, 17), (17, 19), (10, 20))
    assert all("proven" not in row for row in rows if row["alert"] != alert_name(LOSS))


def test_late_is_told_and_does_not_fail_the_demo() -> None:
    lag = expected(PAUSED)[0]
    alerts = [a for e in EXPECTATIONS for a in answer(e, 9.0 if e == lag else 3.0)]
    rows = rows_of(alerts)
    assert verdict(rows) == []
    assert bars(rows)[1] == f"{PAUSED}: KafkaFollowerLag took 8.0 s, 7 s are allowed"
    assert "AFTER" in bars(rows)[-1]
    late = next(row for row in rows if row.late)
    assert "LATE" in cells(late)[5]


def test_the_table_has_a_line_a_row_and_no_ragged_colour() -> None:
    rows = rows_of(all_came())
    plain, coloured = render(rows), render(rows, colour=True)
    assert len(plain) == len(rows) + 2
    assert all(line.endswith("\033[0m") for line in coloured[2:])


def test_every_expected_alert_has_a_detector_and_its_hysteresis_is_the_detectors_own() -> None:
    assert {e.detector for e in EXPECTATIONS} <= DETECTORS.keys()
    thresholds = Thresholds(fire_passes=4)
    assert hysteresis_passes("FOLLOWER_LAG", thresholds) == 4
    assert hysteresis_passes("ISR_CHANGE", thresholds) == DETECTORS["ISR_CHANGE"].fire_passes
    assert hysteresis_passes("UNCLEAN_ELECTION", thresholds) == 0
    assert hysteresis_passes(LOSS, thresholds) == 2
    assert allowed_seconds("FOLLOWER_LAG", Thresholds(), 1.0) == 7.0
