"""The life cycle's bounds: notes may be left out, pages never."""

from __future__ import annotations

from tidemark.core.partition import MAX_ALERTS
from tidemark.detect import DETECTORS
from tidemark.detect.detector import Condition
from tidemark.reduce.life_cycle import Rules, Scope, advance_states

RULES = Rules(1, 1, 0.0, "", DETECTORS)


def test_many_a_note_keeps_no_page_out() -> None:
    notes = [
        (DETECTORS["STALE_BROKER_VIEW"], Condition("info", "old", subject=broker))
        for broker in range(MAX_ALERTS + 5)
    ]
    page = (DETECTORS["QUORUM_UNHEALTHY"], Condition("critical", "no leader"))
    alerts, alerts = advance_states(
        [], [*notes, page], Scope("main"), RULES, 1.0, blind=lambda _: False
    )
    assert len(alerts) == MAX_ALERTS + 1
    assert alerts[-1].labels["alertname"] == "KafkaQuorumUnhealthy"


def test_who_is_blind_neither_fires_nor_clears() -> None:
    lag = (DETECTORS["FOLLOWER_LAG"], Condition("warning", "behind", subject=2))
    page = (DETECTORS["OFFLINE"], Condition("critical", "no leader"))

    def no_lag(detector: object) -> bool:
        return detector is lag[0]

    alerts, alerts = advance_states([], [lag, page], Scope("main"), RULES, 1.0, blind=no_lag)
    assert [alert.labels["alertname"] for alert in alerts] == ["KafkaOffline"]
    alerts, alerts = advance_states(
        alerts, [lag, page], Scope("main"), RULES, 2.0, blind=lambda _: False
    )
    assert [alert.labels["alertname"] for alert in alerts] == ["KafkaFollowerLag"]
    alerts, alerts = advance_states(alerts, [], Scope("main"), RULES, 3.0, blind=no_lag)
    assert [(alert.state, alert.labels["alertname"]) for alert in alerts] == [
        ("resolved", "KafkaOffline")
    ]
    assert [(life.detector, life.held) for life in alerts] == [("FOLLOWER_LAG", 1)]
