"""Every transition of an alert, and the bounds on how many alerts there are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.scenarios.scenario import Scenario
from tidemark.core.identity import alert_name, fingerprint
from tidemark.core.partition import MAX_ALERTS, MAX_EVENT_ALERTS
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect import DETECTORS
from tidemark.detect.default_thresholds import Detection
from tidemark.detect.detector import Condition, Detector
from tidemark.reduce import life_cycle
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.life_cycle import (
    TRANSITIONS,
    Alerts,
    Judgement,
    LifeCycle,
    Phase,
    Rules,
    Scope,
    Transition,
    labels_of,
    open_alerts,
)
from tidemark.reduce.worst_alert import FOLDED

SCOPE = Scope("main", "orders", 0)
RULES = Rules(3, 2, 60_000.0, DETECTORS)
ONE_PASS = RULES._replace(fire_passes=1, clear_passes=1)
STALLED, LAG, OFFLINE = (DETECTORS[name] for name in ("HW_STALLED", "FOLLOWER_LAG", "OFFLINE"))
HELD = Condition("warning", "stalled")
PENDING = TrackedAlert("HW_STALLED", None, "warning", 90.0, held=1)
FIRING = replace(PENDING, held=3, firing=True, fired_at=92.0)
EVENT = TrackedAlert("DIVERGENCE", 2, "critical", 90.0, firing=True, incident="a")


def judge(*conditions: Condition) -> Callable[[LifeCycle, TrackedAlert], Alerts]:
    """One pass with these conditions of HW_STALLED."""
    found = [(STALLED, condition) for condition in conditions]
    return lambda cycle, alert: cycle.judge_states([alert], found, waits=lambda _: False)


def delete(cycle: LifeCycle, alert: TrackedAlert) -> Alerts:
    return cycle.end([alert], Judgement.DELETED, lambda _: True)


def remove(cycle: LifeCycle, alert: TrackedAlert) -> Alerts:
    return cycle.end([alert], Judgement.REMOVED, lambda _: True)


def expire(cycle: LifeCycle, alert: TrackedAlert) -> Alerts:
    return cycle.expire_events([FIRING, alert])[1:]


def acknowledge(cycle: LifeCycle, alert: TrackedAlert) -> Alerts:
    return cycle.acknowledge([FIRING, alert], fingerprint(labels_of(alert, SCOPE)))[1:]


# How each entry of TRANSITIONS is reached. Times are seconds; the judgement is at 150.
REACHED: dict[
    tuple[Phase, Judgement], tuple[TrackedAlert, Callable[[LifeCycle, TrackedAlert], Alerts]]
] = {
    (Phase.PENDING, Judgement.HELD): (PENDING, judge(HELD)),
    (Phase.PENDING, Judgement.DUE): (replace(PENDING, held=2), judge(HELD)),
    (Phase.PENDING, Judgement.ABSENT): (PENDING, judge()),
    (Phase.PENDING, Judgement.DELETED): (PENDING, delete),
    (Phase.PENDING, Judgement.REMOVED): (PENDING, remove),
    (Phase.FIRING, Judgement.HELD): (FIRING, judge(HELD)),
    (Phase.FIRING, Judgement.REVISED): (FIRING, judge(Condition("warning", "", revision="2"))),
    (Phase.FIRING, Judgement.ESCALATED): (FIRING, judge(Condition("critical", "worse"))),
    (Phase.FIRING, Judgement.ABSENT): (FIRING, judge()),
    (Phase.FIRING, Judgement.CLEARED): (replace(FIRING, clean=9), judge()),
    (Phase.FIRING, Judgement.EXPIRED): (EVENT, expire),
    (Phase.FIRING, Judgement.ACKED): (EVENT, acknowledge),
    (Phase.FIRING, Judgement.DELETED): (FIRING, delete),
    (Phase.FIRING, Judgement.REMOVED): (FIRING, remove),
}


class RecordedTable(dict[tuple[Phase, Judgement], Transition]):
    """Notes which entries were used."""

    def __init__(self) -> None:
        super().__init__(TRANSITIONS)
        self.used: list[tuple[Phase, Judgement]] = []

    def __getitem__(self, key: tuple[Phase, Judgement]) -> Transition:
        self.used.append(key)
        return super().__getitem__(key)


@pytest.mark.parametrize("entry", TRANSITIONS, ids=lambda entry: f"{entry[0].name}-{entry[1].name}")
def test_every_transition(entry: tuple[Phase, Judgement], monkeypatch: pytest.MonkeyPatch) -> None:
    table, step = RecordedTable(), TRANSITIONS[entry]
    monkeypatch.setattr(life_cycle, "TRANSITIONS", table)
    alert, act = REACHED[entry]
    before = replace(alert)
    cycle = LifeCycle(SCOPE, RULES, 150.0)
    after = act(cycle, alert)
    assert table.used == [entry]
    phases = [Phase.FIRING if kept.firing else Phase.PENDING for kept in after]
    assert phases == ([] if step.phase is Phase.GONE else [step.phase])
    published = [(record.state, record.reason) for record in cycle.published]
    resolved = [("resolved", step.resolved)] if step.resolved else []
    assert published == [*resolved, *([(step.state, None)] if step.state else [])]
    assert alert == before, "the alert before does not change"


def test_an_escalation_resolves_the_alert_as_it_was_and_fires_it_as_it_is() -> None:
    cycle = LifeCycle(SCOPE, RULES, 150.0)
    (alert,) = judge(Condition("critical", "worse"))(cycle, replace(FIRING, description="bad"))
    labels = [record.labels["severity"] for record in cycle.published]
    texts = [record.annotations["description"] for record in cycle.published]
    assert (labels, texts) == (["warning", "critical"], ["bad", "worse"])
    assert {record.starts_at for record in cycle.published} == {90.0}
    assert (alert.since, alert.fired_at) == (90.0, 150.0)


@pytest.mark.parametrize(
    ("phase", "judgement"),
    [key for key in product((Phase.PENDING, Phase.FIRING), Judgement) if key not in TRANSITIONS],
)
def test_an_unknown_transition_is_a_programmer_error(phase: Phase, judgement: Judgement) -> None:
    alert = FIRING if phase is Phase.FIRING else PENDING
    with pytest.raises(KeyError):
        LifeCycle(SCOPE, RULES, 150.0).end([alert], judgement, lambda _: True)


@pytest.mark.parametrize(("held_since", "fires"), [(150.0, False), (140.0, True)])
def test_a_condition_must_hold_for_its_time_too(held_since: float, fires: bool) -> None:
    cycle = LifeCycle(SCOPE, RULES, 150.0)
    pending = replace(PENDING, held=9, since=held_since)
    (alert,) = judge(Condition("warning", "stalled", hold_ms=10_000.0))(cycle, pending)
    assert alert.firing is fires


def names(cycle: LifeCycle) -> list[tuple[str, str]]:
    return [(record.state, record.labels["alertname"]) for record in cycle.published]


def test_info_alerts_never_keep_out_a_critical_one() -> None:
    many = [
        (DETECTORS["STALE_BROKER_VIEW"], Condition("info", "old", subject=broker))
        for broker in range(MAX_ALERTS + 5)
    ]
    critical = (DETECTORS["QUORUM_UNHEALTHY"], Condition("critical", "no leader"))
    cycle = LifeCycle(Scope("main"), ONE_PASS, 1.0)
    alerts = cycle.judge_states([], [*many, critical], waits=lambda _: False)
    assert len(alerts) == len(cycle.published) == MAX_ALERTS + 1
    assert names(cycle)[-1] == ("firing", "KafkaQuorumUnhealthy")


@pytest.mark.parametrize(
    ("known", "found", "published", "kept"),
    [
        # FOLLOWER_LAG waits, OFFLINE does not.
        ([], [LAG, OFFLINE], [("firing", "KafkaOffline")], [("OFFLINE", 1, 0)]),
        ([LAG, OFFLINE], [], [("resolved", "KafkaOffline")], [("FOLLOWER_LAG", 1, 0)]),
        ([LAG], [LAG], [], [("FOLLOWER_LAG", 1, 0)]),
    ],
)
def test_an_alert_that_waits_neither_fires_nor_resolves(
    known: list[Detector],
    found: list[Detector],
    published: list[tuple[str, str]],
    kept: list[tuple[str, int, int]],
) -> None:
    cycle = LifeCycle(SCOPE, ONE_PASS, 1.0)
    alerts = [TrackedAlert(d.id, None, "warning", 0.0, held=1, firing=True) for d in known]
    conditions = [(detector, Condition("warning", "")) for detector in found]
    alerts = cycle.judge_states(alerts, conditions, waits=lambda detector: detector is LAG)
    assert names(cycle) == published
    assert [(alert.detector, alert.held, alert.clean) for alert in alerts] == kept


def test_the_oldest_events_expire_when_there_are_too_many() -> None:
    cycle, alerts = LifeCycle(SCOPE, RULES, 150.0), [PENDING]
    for epoch in range(MAX_EVENT_ALERTS + 2):
        condition = Condition("info", str(epoch), epochs=(epoch, epoch + 1))
        alerts = cycle.raise_events(alerts, [(DETECTORS["LOG_TRUNCATION"], condition)])
    kept = [str(epoch) for epoch in range(2, MAX_EVENT_ALERTS + 2)]
    assert [alert.description for alert in alerts] == ["", *kept]
    expired = [r.annotations["description"] for r in cycle.published if r.reason == "expired"]
    assert expired == ["0", "1"]


def test_a_repeated_event_updates_its_alert() -> None:
    cycle, alerts = LifeCycle(SCOPE, RULES, 150.0), [PENDING]
    for revision in ("1", "1", "2"):
        condition = Condition("info", "cut", subject=2, epochs=(1, 2), revision=revision)
        alerts = cycle.raise_events(alerts, [(DETECTORS["LOG_TRUNCATION"], condition)])
    assert [alert.detector for alert in alerts] == ["HW_STALLED", "LOG_TRUNCATION"]
    assert [record.state for record in cycle.published] == ["firing", "update"]


# One trouble of a partition's replicas is one open alert, whatever conditions come and go.


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
