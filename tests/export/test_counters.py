"""Counters count each event once, from alert records only."""

from __future__ import annotations

from functools import partial

import pytest

from tests.export.make import NOW, alert, counted
from tests.scenarios.scenario import Scenario
from tidemark.core.records import Alert
from tidemark_exporters.evidence import range_text, ranges
from tidemark_exporters.export.counters import (
    FIRED,
    LOST,
    SHRINKS,
    SHRINKS_BY_CAUSE,
    SHRINKS_LED,
    UNCLEAN,
    EventCounters,
)

EAST = 'kafka_cluster="east"'
CUT = "tidemark_truncations_total"


def test_counters_of_a_cluster_start_at_0_for_every_alert_name() -> None:
    counters = EventCounters()
    counters.add_cluster("east")
    assert set(counters.values[CUT].values()) == {0}
    assert counters.values["tidemark_leader_elections_total"] == {EAST: 0}
    assert counters.values[UNCLEAN].keys() == {
        f'{EAST},kind="{kind}"' for kind in ("confirmed", "suspected", "last_known_leader")
    }
    assert counters.values[LOST] == {f'{EAST},kind="proven"': 0, f'{EAST},kind="exposed"': 0}
    assert (
        counters.values[FIRED][f'{EAST},alertname="KafkaUncleanElection",severity="critical"'] == 0
    )
    assert not any(counters.values[FIRED].values())


loss = partial(alert, "KafkaCommittedDataLoss", incident="ab")
truncation = partial(alert, "KafkaLogTruncation", incident="ab")
SHRINK = {
    "before": [1, 2, 3],
    "after": [1],
    "changed_at": NOW,
    "leader": 1,
    "suspected_cause": "does not answer",
}
OF_UNKNOWN_CAUSE = {"before": [2, 1], "after": [2], "suspected_cause": "gremlins"}


@pytest.mark.parametrize(
    ("alerts", "expected"),
    [
        pytest.param(
            [
                loss("firing", evidence={"proven": [5, 12], "exposed": None}),
                loss("update", evidence={"proven": [5, 15], "exposed": [15, 18]}),
                loss("update", evidence={"proven": [5, 15], "exposed": [15, 18]}),
                loss("resolved", evidence={"proven": [5, 15], "exposed": None}),
            ],
            {LOST: {f'{EAST},kind="proven"': 10, f'{EAST},kind="exposed"': 3}},
            id="a loss counts its records and an update the additional ones",
        ),
        pytest.param(
            [loss(evidence={"proven": [0, 4]}), loss(incident="cd", evidence={"proven": [0, 4]})],
            {LOST: {f'{EAST},kind="proven"': 8, f'{EAST},kind="exposed"': 0}},
            id="losses of two incidents are added",
        ),
        pytest.param(
            [truncation(broker="1"), truncation(broker="2")],
            {CUT: {f'{EAST},kind="possible"': 2}},
            id="two truncating replicas of one election are two truncations",
        ),
        pytest.param(
            [
                truncation(incident=str(number), evidence={"committed_records_cut": verdict})
                for number, verdict in enumerate(
                    ("proven", "possible", "excluded", "another", None)
                )
            ],
            {
                CUT: {
                    f'{EAST},kind="proven"': 1,
                    f'{EAST},kind="possible"': 3,
                    f'{EAST},kind="excluded"': 1,
                }
            },
            id="a truncation is counted by its verdict",
        ),
        pytest.param(
            [
                alert(
                    "KafkaUncleanElection", incident="a", evidence={"verdict": "last known leader"}
                )
            ],
            {UNCLEAN: {f'{EAST},kind="last_known_leader"': 1}},
            id="an election of the last known leader has its own kind",
        ),
        pytest.param(
            [
                alert("KafkaIsrChange", "firing", evidence=SHRINK),
                alert("KafkaIsrChange", "update", evidence=SHRINK),
                alert("KafkaIsrChange", partition="1", evidence=OF_UNKNOWN_CAUSE),
            ],
            {
                SHRINKS_LED: {f'{EAST},broker="1"': 2},
                SHRINKS_BY_CAUSE: {
                    f'{EAST},cause="does not answer"': 2,
                    f'{EAST},cause="unknown"': 1,
                },
            },
            id="a shrink is counted by leader and by suspected cause",
        ),
    ],
)
def test_alerts_are_counted(alerts: list[Alert], expected: dict[str, dict[str, int]]) -> None:
    counters = counted(*alerts)
    assert {name: counters.values[name] for name in expected} == expected


def test_a_confirmed_suspicion_counts_once_as_each() -> None:
    election = partial(alert, "KafkaUncleanElection", incident="ab")
    counters = counted(
        election(severity="warning"),
        election("resolved", severity="warning", reason="escalated"),
        election(severity="critical"),
        election("update", severity="critical", description="more"),
    )
    assert counters.values[UNCLEAN] == {
        f'{EAST},kind="suspected"': 1,
        f'{EAST},kind="confirmed"': 1,
    }
    assert sum(counters.values[FIRED].values()) == 2


def test_a_cause_from_the_metadata_log_counts_as_that_cause() -> None:
    scenario = Scenario()
    scenario.run("partition orders-0 replicas=1,2,3 min_isr=1")
    scenario.run("pass 2 add=5")
    scenario.run("record isr=1,2 cause=fenced")
    scenario.run("pass 1 isr=1,2")
    counters = counted(*scenario.alerts.values())
    assert counters.values[SHRINKS_BY_CAUSE] == {'kafka_cluster="main",cause="fencing"': 1}


def test_shrinks_are_counted_for_the_removed_broker() -> None:
    counters = EventCounters()
    counters.add_broker("east", 1)
    removed = {"before": [1, 2, 3], "after": [1, 2], "changed_at": NOW}
    counters.count(alert("KafkaIsrChange", evidence=removed))
    for evidence in (
        removed,
        {"before": [1, 2], "after": [1], "changed_at": NOW + 9},
        {"before": [1], "after": [1, 2], "changed_at": NOW + 20},
        {},
    ):
        counters.count(alert("KafkaIsrChange", "update", evidence=evidence))
    assert counters.values[SHRINKS] == {
        f'{EAST},broker="1"': 0,
        f'{EAST},broker="3"': 1,
        f'{EAST},broker="2"': 1,
    }


def test_ranges_are_read_in_both_forms_and_other_values_are_none() -> None:
    assert ranges([5, 12]) == [(5, 12)]
    assert ranges([[5, 12], [20, 21]]) == [(5, 12), (20, 21)]
    for none in (
        None,
        [],
        [5],
        [12, 5],
        [5, 5],
        [5, None],
        "5-12",
        [True, 7],
        {"from": 5},
        [[5, None]],
    ):
        assert ranges(none) == []
    assert range_text([[5, 12], [20, 21]]) == "5-12,20-21"
    assert range_text([5, None]) is None
