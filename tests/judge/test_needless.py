from __future__ import annotations

import pytest

from tests.judge.examples import fault
from tidemark.core.records import Alert
from tidemark_lab.faults.fault import FaultRecord
from tidemark_lab.judge.needless import (
    Caused,
    allowed_warnings,
    failures,
    join,
    names,
    table,
    totals,
)


def alert(
    starts_at: float = 101.0,
    severity: str = "warning",
    state: str = "firing",
    description: str = "It happened.",
    **labels: str,
) -> Alert:
    return Alert(
        id="i",
        fingerprint="f",
        state=state,  # type: ignore[arg-type]
        labels={"alertname": "KafkaX", "severity": severity, **labels},
        annotations={"description": description},
        starts_at=starts_at,
        at=starts_at + 3.0,
    )


def test_an_alert_belongs_to_the_last_fault_before_its_condition() -> None:
    first, second = fault("pause", 100.0), fault("kill and start", 110.0)
    alerts = [alert(at) for at in (99.0, 100.0, 109.9, 110.5)]
    # Published after the second fault, but its condition began before.
    caused = join([first, second], [*alerts, alert(105.0, state="resolved")])
    assert [[a.starts_at for a in one.alerts] for one in caused] == [
        [99.0],
        [100.0, 109.9],
        [110.5],
    ]


@pytest.mark.parametrize(
    ("one", "allowed"),
    [
        (None, 0),
        (fault("controlled restart"), 0),
        (fault("rolling restart"), 0),
        (fault("preferred election"), 0),
        (fault("reassignment"), 0),
        (fault("pause", held=2.9), 0),
        (fault("pause", held=3.1), 3),
        (fault("kill and start", held=1.0), 3),
        (fault("delete records"), 3),
    ],
)
def test_planned_work_and_short_pauses_are_no_ticket(one: FaultRecord | None, allowed: int) -> None:
    assert allowed_warnings(one) == allowed


@pytest.mark.parametrize(
    ("one", "named"),
    [
        (alert(broker="2"), True),
        (alert(broker="12"), False),
        (alert(description="Leader 2 is alone."), True),
        (alert(description="Broker 21 is down."), False),
        (alert(topic="orders", partition="0"), True),
        (alert(topic="orders", partition="1"), False),
        (alert(), False),
    ],
)
def test_a_warning_names_the_broker_or_a_partition(one: Alert, named: bool) -> None:
    assert names(one, fault("kill and start")) is named


def test_a_critical_alert_always_fails() -> None:
    caused = Caused(fault("kill and start"), [alert(severity="critical", broker="2")])
    assert failures([caused]) == ["kill and start: d: critical KafkaX: It happened."]


def test_warnings_fail_where_none_is_allowed_where_many_come_and_where_one_is_vague() -> None:
    named, vague, info = alert(broker="2"), alert(), alert(severity="info")
    assert failures([Caused(fault("pause"), [named] * 3 + [info] * 50)]) == []
    assert failures([Caused(fault("pause"), [named] * 4)]) == ["pause: d: 4 warnings, 3 allowed"]
    assert failures([Caused(fault("reassignment"), [named])]) == [
        "reassignment: d: 1 warning, 0 allowed"
    ]
    assert failures([Caused(fault("pause"), [vague])]) == [
        "pause: d: a warning without its broker or partition: KafkaX: It happened."
    ]


@pytest.mark.parametrize(
    ("one", "untrue"),
    [
        (
            alert(
                severity="info",
                description="It cut 3 records off its log, below 9, which was committed.",
            ),
            True,
        ),
        (alert(severity="info", alertname="KafkaUncleanElection"), True),
        (alert(severity="info", description="It cut 3 records off its log, above 9."), False),
        (
            alert(severity="info", description="It starts at 0, below 9, which was committed."),
            False,
        ),
    ],
)
def test_a_claim_of_a_loss_fails_at_any_severity(one: Alert, untrue: bool) -> None:
    text = f"{one.labels['alertname']}: {one.annotations['description']}"
    expected = [f"pause: d: 2 untrue claims, such as {text}"] if untrue else []
    assert failures([Caused(fault("pause"), [one, one])]) == expected


def test_the_table_counts_by_fault_and_in_all() -> None:
    caused = [Caused(None), Caused(fault("pause"), [alert(), alert(), alert(severity="info")])]
    assert table(caused).splitlines() == [
        "before any fault",
        "pause: d  [1970-01-01 00:01:40.000, 6.0 s]",
        "    warning   KafkaX                              2",
        "    info      KafkaX                              1",
        "total",
        "    critical    0",
        "    warning     2  KafkaX 2",
        "    info        1  KafkaX 1",
    ]
    assert totals([alert(state="resolved")])[1] == "warning     0"
