"""One trouble of a partition's replicas is one open alert, whatever conditions come and go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reduce.test_life_cycle import RULES, SCOPE
from tests.scenarios.scenario import Scenario
from tidemark.core.identity import alert_name
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect import DETECTORS
from tidemark.detect.detector import Condition
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.life_cycle import Judgement, LifeCycle, open_alerts
from tidemark.reduce.worst_alert import FOLDED

NAMES = {alert_name(detector) for detector in FOLDED}
FOLLOWER_LAG = "FOLLOWER_LAG"
# By detector and subject, at one pass: severity and revision of the condition that holds.
Held = dict[tuple[str, int | None], tuple[Any, str]]


@st.composite
def passes(draw: st.DrawFn) -> list[Held]:
    """What holds at each pass; a condition mostly goes on."""
    keys: list[tuple[str, int | None]] = [(name, None) for name in FOLDED if name != FOLLOWER_LAG]
    keys += [(FOLLOWER_LAG, 2), (FOLLOWER_LAG, 3), ("ISR_CHANGE", None)]
    held: Held = {}
    found = []
    for _ in range(draw(st.integers(1, 30))):
        for key in draw(st.lists(st.sampled_from(keys), max_size=3, unique=True)):
            value = draw(st.sampled_from([("info", ""), ("warning", ""), ("warning", "2"), None]))
            held = {k: v for k, v in held.items() if k != key} | ({key: value} if value else {})
        found.append(held)
    return found


@given(passes(), st.booleans())
def test_one_is_open_at_most_and_readers_are_told_of_each_change(
    history: list[Held], deleted: bool
) -> None:
    alerts: list[TrackedAlert] = []
    told: dict[str, str] = {}
    for number, held in enumerate(history):
        cycle = LifeCycle(SCOPE, RULES, float(number))
        found = [
            (DETECTORS[name], Condition(severity, "", {}, subject, subject, revision=revision))
            for (name, subject), (severity, revision) in held.items()
        ]
        alerts = cycle.judge_states(alerts, found, lambda _: False)
        if deleted and number == len(history) - 1:
            alerts = cycle.end(alerts, Judgement.DELETED, lambda _: True)
        for record in cycle.published:
            name = record.labels["alertname"]
            if record.state == "resolved":
                assert told.pop(record.fingerprint) == name
            else:
                assert (record.fingerprint in told) == (record.state == "update")
                told[record.fingerprint] = name
        opened = {each.fingerprint: each for each in open_alerts(alerts, SCOPE, RULES)}
        assert told == {f: each.labels["alertname"] for f, each in opened.items()}
        assert sum(name in NAMES for name in told.values()) <= 1
        firing = [alert for alert in alerts if alert.firing and alert.detector in FOLDED]
        assert bool(firing) == any(name in NAMES for name in told.values())


def test_the_open_one_names_the_others() -> None:
    scenario = Scenario()
    scenario.play("partition t-0 replicas=1,2,3 min_isr=2", "pass 5 add=10")
    scenario.play("pass 12 leo=1:100,2:100,3:40 hw=40 isr=1,2,3")
    (alert,) = (a for a in scenario.state.alerts if a.is_open and a.detector in FOLDED)
    assert alert.detector == "HW_STALLED"
    assert alert.evidence["also"] == [["KafkaFollowerLag", 3]]


@pytest.mark.parametrize("reports", [True, False])
def test_partitions_of_a_dead_broker_ask_for_nothing_while_its_own_alert_does(
    reports: bool,
) -> None:
    """Also not after ten minutes. Where KafkaBrokerDown is off, nobody else would say it."""
    scenario = Scenario()
    detection = Detection(disabled=[] if reports else ["BROKER_DOWN"])
    scenario.fold = Fold(GroupState(), detection, 0, 1)
    scenario.play("partition t-0 replicas=1,2,3 min_isr=2", "pass 5 add=10")
    scenario.play("pass 10 down=3:timed_out add=10", "pass 10 isr=1,2", "pass 10 every=100 add=10")
    open_now = {(a.detector, a.severity) for a in scenario.state.alerts if a.is_open}
    assert ("AT_MIN_ISR", "info" if reports else "warning") in open_now
