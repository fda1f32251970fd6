"""Counters count events once, from alert records alone."""

from __future__ import annotations

from tests.export.make import NOW, alert
from tidemark.core.causes import Cause
from tidemark_exporters.evidence import range_text, ranges
from tidemark_exporters.export.counters import (
    CAUSES,
    CAUSES_OF_SHRINKS,
    FIRED,
    LED,
    LOST,
    SHRINKS,
    UNCLEAN,
    UNEXPLAINED,
    EventCounters,
)

EAST = 'kafka_cluster="east"'


def test_known_clusters_are_born_at_0_with_every_alert_name() -> None:
    counters = EventCounters()
    counters.known("east")
    assert set(counters.values["tidemark_truncations_total"].values()) == {0}
    assert counters.values["tidemark_leader_elections_total"] == {EAST: 0}
    assert counters.values[UNCLEAN].keys() == {
        f'{EAST},kind="{kind}"' for kind in ("confirmed", "suspected", "last_known_leader")
    }
    assert counters.values[LOST] == {f'{EAST},kind="proven"': 0, f'{EAST},kind="exposed"': 0}
    assert (
        counters.values[FIRED][f'{EAST},alertname="KafkaUncleanElection",severity="critical"'] == 0
    )
    assert not any(counters.values[FIRED].values())


def test_a_loss_counts_its_records_and_an_update_only_what_it_adds() -> None:
    counters = EventCounters()
    for state, proven, exposed in (
        ("firing", [5, 12], None),
        ("update", [5, 15], [15, 18]),
        ("update", [5, 15], [15, 18]),
        ("resolved", [5, 15], None),
    ):
        counters.count(
            alert(
                "KafkaCommittedDataLoss",
                state=state,  # type: ignore[arg-type]
                incident="ab",
                evidence={"proven": proven, "exposed": exposed},
            )
        )
    assert counters.values[LOST] == {f'{EAST},kind="proven"': 10, f'{EAST},kind="exposed"': 3}


def test_two_losses_add_up() -> None:
    counters = EventCounters()
    for incident in ("ab", "cd"):
        counters.count(
            alert("KafkaCommittedDataLoss", incident=incident, evidence={"proven": [0, 4]})
        )
    assert counters.values[LOST][f'{EAST},kind="proven"'] == 8


def test_a_suspicion_that_was_confirmed_counts_once_as_each() -> None:
    counters = EventCounters()
    counters.count(alert("KafkaUncleanElection", incident="ab", severity="warning"))
    counters.count(
        alert(
            "KafkaUncleanElection",
            incident="ab",
            severity="warning",
            state="resolved",
            reason="escalated",
        )
    )
    counters.count(alert("KafkaUncleanElection", incident="ab", severity="critical"))
    counters.count(
        alert(
            "KafkaUncleanElection",
            incident="ab",
            severity="critical",
            state="update",
            description="more",
        )
    )
    assert counters.values[UNCLEAN] == {
        f'{EAST},kind="suspected"': 1,
        f'{EAST},kind="confirmed"': 1,
    }
    assert sum(counters.values[FIRED].values()) == 2


def test_two_replicas_that_truncate_at_one_election_are_two_truncations() -> None:
    counters = EventCounters()
    for broker in ("1", "2"):
        counters.count(alert("KafkaLogTruncation", incident="ab", broker=broker))
    assert counters.values["tidemark_truncations_total"] == {f'{EAST},kind="unknown"': 2}


def test_a_truncation_says_whether_what_went_was_committed() -> None:
    counters = EventCounters()
    for incident, cut, committed in (("a", 90, 100), ("b", 100, 100), ("c", 120, None)):
        counters.count(
            alert(
                "KafkaLogTruncation",
                incident=incident,
                evidence={"cut_at": cut, "highest_high_watermark": committed},
            )
        )
    assert counters.values["tidemark_truncations_total"] == {
        f'{EAST},kind="below_high_watermark"': 1,
        f'{EAST},kind="above_high_watermark"': 1,
        f'{EAST},kind="unknown"': 1,
    }


def test_a_last_known_leader_is_an_election_of_its_own_kind() -> None:
    counters = EventCounters()
    counters.count(
        alert("KafkaUncleanElection", incident="ab", evidence={"verdict": "last known leader"})
    )
    assert counters.values[UNCLEAN] == {f'{EAST},kind="last_known_leader"': 1}


def test_who_led_and_what_may_have_caused_a_shrink() -> None:
    counters = EventCounters()
    evidence = {
        "before": [1, 2, 3],
        "after": [1],
        "changed_at": NOW,
        "leader": 1,
        "suspected_cause": "does not answer",
    }
    for state in ("firing", "update"):
        counters.count(alert("KafkaIsrChange", state=state, evidence=evidence))
    counters.count(
        alert(
            "KafkaIsrChange",
            partition="1",
            evidence={"before": [2, 1], "after": [2], "suspected_cause": "gremlins"},
        )
    )
    assert counters.values[LED] == {f'{EAST},broker="1"': 2}
    assert counters.values[CAUSES] == {
        f'{EAST},cause="does not answer"': 2,
        f'{EAST},cause="unknown"': 1,
    }


def test_the_causes_are_those_of_the_reducer() -> None:
    assert {*CAUSES_OF_SHRINKS, UNEXPLAINED} == {cause.value for cause in Cause}


def test_shrinks_are_counted_for_the_broker_that_left() -> None:
    counters = EventCounters()
    counters.known_broker("east", 1)
    counters.count(
        alert("KafkaIsrChange", evidence={"before": [1, 2, 3], "after": [1, 2], "changed_at": NOW})
    )
    counters.count(
        alert(
            "KafkaIsrChange",
            state="update",
            evidence={"before": [1, 2, 3], "after": [1, 2], "changed_at": NOW},
        )
    )
    counters.count(
        alert(
            "KafkaIsrChange",
            state="update",
            evidence={"before": [1, 2], "after": [1], "changed_at": NOW + 9},
        )
    )
    counters.count(
        alert(
            "KafkaIsrChange",
            state="update",
            evidence={"before": [1], "after": [1, 2], "changed_at": NOW + 20},
        )
    )
    counters.count(alert("KafkaIsrChange", state="update", evidence={}))
    assert counters.values[SHRINKS] == {
        f'{EAST},broker="1"': 0,
        f'{EAST},broker="3"': 1,
        f'{EAST},broker="2"': 1,
    }


def test_ranges_are_read_in_both_forms_and_nothing_else_is_one() -> None:
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
