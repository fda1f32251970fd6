from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.judge.examples import PLACE, acknowledged, loss, marks, received, replicas
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.drills.drill import Drill
from tidemark_lab.faults.fault import FaultRecord
from tidemark_lab.judge.expected import Expected, ReceivedAlert
from tidemark_lab.judge.truth import Truth
from tidemark_lab.judge.truth import establish as establish_truth
from tidemark_lab.judge.verdict import Check, Notification, Result, Seen, Shown, judge

KILL = "kill"
DRILL = Drill(name="d", shows="It fails.", steps=(), expected=(Expected("OFFLINE", KILL),))


def establish(*arguments: Any) -> Truth:
    """What was done counts as one fault."""
    truth = establish_truth(*arguments)
    truth.faults = [FaultRecord("d", "", (), (), 50.0, 200.0, 200.0, (50.0,))]
    return truth


TRUTH = establish([acknowledged(0, 0, 1.0)], replicas(_1={0: 0}), {PLACE: 1})
OFFLINE = received("KafkaOffline", 103.0, "critical")


def verdicts(drill: Drill, *alerts: object, truth: Truth | None = TRUTH, **seen: object) -> dict:  # type: ignore[type-arg]
    checks = judge(drill, KAFKA_VERSION, Seen(alerts, marks(KILL), truth, **seen))  # type: ignore[arg-type]
    return {check.name: check.verdict for check in checks}


def test_an_expected_alert_passes_with_its_times() -> None:
    seen = Seen([OFFLINE], marks(KILL), TRUTH, first_seen=lambda *_: 101.0)
    first, *others = judge(DRILL, KAFKA_VERSION, seen)
    assert first == Check("KafkaOffline", "PASSED", "fired", 3.0, 2.0, 7.0)
    assert {check.verdict for check in others} == {"PASSED"}


def test_the_time_to_the_webhook_counts_from_when_the_condition_could_be_seen() -> None:
    drill = replace(DRILL, expected=(Expected("COMMITTED_DATA_LOSS", KILL),))
    lost = loss(0, 1, 98.0)._replace(received_at=104.0)
    fingerprint = lost.alert.fingerprint
    seen = Seen(
        [lost],
        marks(KILL),
        TRUTH,
        first_seen=lambda *_: 101.0,
        notifications=[
            Notification("another", "firing", 104.1),
            Notification(fingerprint, "firing", 104.5, in_update=True),
            Notification(fingerprint, "firing", 120.0),
        ],
        # The leader before the fault, the new one, a later one.
        served=[90.0, 102.0, 110.0],
    )
    check = judge(drill, KAFKA_VERSION, seen)[0]
    assert (check.seconds_to_webhook, check.seconds_from_leader) == (3.5, 2.5)
    assert not check.in_update
    late = replace(seen, notifications=[Notification(fingerprint, "firing", 114.0, in_update=True)])
    check = judge(drill, KAFKA_VERSION, late)[0]
    assert (check.seconds_to_webhook, check.in_update) == (13.0, True)


def expects(**options: Any) -> dict[str, Any]:
    return {"expected": (Expected("OFFLINE", KILL, **options),)}


OFFLINE_OF = {broker: received("KafkaOffline", 103.0, broker=broker) for broker in (1, 2)}
SECOND = received("KafkaOffline", 104.0, "critical", partition=1)
PAGE, TICKET, NOTE = (
    received("KafkaUnderMinIsr", 104.0, "critical"),
    received("KafkaFollowerLag", 104.0),
    received("KafkaIsrChange", 104.0, "info"),
)
RISK = received("KafkaLossRisk", 104.0, suspected=[0, 1], committed_seen_at=2.0)
ONE = [acknowledged(0, 0, 1.0)]
LOST = establish(ONE, replicas(_1={}), {PLACE: 1})
DIFFER = establish(ONE, replicas(_1={0: 0}, _2={0: 1}), {PLACE: 1})
SHOWN = {"shown": [Shown("offsets", True, "equal"), Shown("files", False, "differ")]}
AUDITED = {"audited": True, "diverged": (KAFKA_VERSION,)}
TOGETHER = [loss(0, 1, 100.0, partition=number) for number in range(3)]
ONE_CAUSE = {"causes": 1, "allowed": ("COMMITTED_DATA_LOSS",)}
CRITICAL = expects(severity="critical")


@pytest.mark.parametrize(
    ("demands", "alerts", "seen", "name", "verdict"),
    [
        # What a step compared is a check.
        ({}, [OFFLINE], SHOWN, "offsets", "PASSED"),
        ({}, [OFFLINE], SHOWN, "files", "FAILED"),
        # An alert before its fault, or of another kind, is none.
        (CRITICAL, [received("KafkaOffline", 99.0, "critical")], {}, "KafkaOffline", "FAILED"),
        (CRITICAL, [received("KafkaOffline", 103.0, "info")], {}, "KafkaOffline", "FAILED"),
        (
            CRITICAL,
            [received("KafkaOffline", 103.0, "critical", state="update")],
            {},
            "KafkaOffline",
            "FAILED",
        ),
        (CRITICAL, [received("KafkaOther", 103.0, "warning")], {}, "KafkaOffline", "FAILED"),
        # The broker counts where it is given.
        (expects(broker=2), [OFFLINE_OF[1]], {}, "KafkaOffline of broker 2", "FAILED"),
        (expects(broker=2), [OFFLINE_OF[2]], {}, "KafkaOffline of broker 2", "PASSED"),
        # Every partition must have the alert.
        (expects(partitions=2), [OFFLINE], {}, "KafkaOffline", "FAILED"),
        (expects(partitions=2), [OFFLINE, SECOND], {}, "KafkaOffline", "PASSED"),
        # An alert that must resolve does.
        (expects(resolves=True), [OFFLINE], {}, "KafkaOffline", "FAILED"),
        (
            expects(resolves=True),
            [OFFLINE, received("KafkaOffline", 110.0, "critical", state="resolved")],
            {},
            "KafkaOffline",
            "PASSED",
        ),
        # Another critical alert fails, and a warning where the drill is quiet.
        ({}, [OFFLINE, PAGE], {}, "no KafkaUnderMinIsr", "FAILED"),
        ({}, [OFFLINE, TICKET], {}, "silence", "PASSED"),
        ({"allowed": ("UNDER_MIN_ISR",)}, [OFFLINE, PAGE], {}, "silence", "PASSED"),
        ({"quiet": True}, [OFFLINE, TICKET], {}, "no KafkaFollowerLag", "FAILED"),
        ({"forbidden": ("ISR_CHANGE",)}, [OFFLINE, NOTE], {}, "no KafkaIsrChange", "FAILED"),
        # A loss fails where none is meant, and its absence where one is.
        ({}, [OFFLINE], {"truth": LOST}, "records", "FAILED"),
        ({"lost": "some"}, [OFFLINE], {"truth": LOST}, "records", "PASSED"),
        ({"lost": "some"}, [OFFLINE], {}, "records", "FAILED"),
        # What could not be read is unknown, and not passed.
        ({}, [OFFLINE], {"truth": establish(ONE, {}, {PLACE: 1})}, "truth", "UNKNOWN"),
        ({}, [OFFLINE], {"truth": None}, "truth", "UNKNOWN"),
        ({}, [OFFLINE], {"truth": establish([], replicas(_1={}), {PLACE: 1})}, "load", "UNKNOWN"),
        # The audit must see what the disks show.
        (AUDITED, [OFFLINE], {"truth": DIFFER, "differences": 1}, "audit", "PASSED"),
        (AUDITED, [OFFLINE], {"truth": DIFFER, "differences": 0}, "audit", "FAILED"),
        (AUDITED, [OFFLINE], {"truth": DIFFER}, "audit", "UNKNOWN"),
        # A suspected range must hold no surviving record.
        (
            {"lost": "some"},
            [OFFLINE, RISK],
            {"truth": establish(ONE, replicas(_1={0: 1}), {PLACE: 1})},
            "suspicion",
            "PASSED",
        ),
        ({}, [OFFLINE, RISK], {}, "suspicion", "FAILED"),
        # Losses of one election are one cause.
        (ONE_CAUSE, TOGETHER, {}, "causes", "PASSED"),
        (ONE_CAUSE, [*TOGETHER, loss(0, 1, 900.0, partition=9)], {}, "causes", "FAILED"),
    ],
)
def test_a_check_has_its_verdict(
    demands: dict[str, Any],
    alerts: list[ReceivedAlert],
    seen: dict[str, Any],
    name: str,
    verdict: str,
) -> None:
    assert verdicts(replace(DRILL, **demands), *alerts, **seen)[name] == verdict


def test_the_verdict_is_that_of_the_worst_check() -> None:
    def verdict(*found: str, error: str | None = None) -> str:
        checks = [Check("c", one, "t") for one in found]  # type: ignore[arg-type]
        return Result("d", "4", 1.0, checks, error=error).verdict

    assert verdict("PASSED") == "PASSED"
    assert verdict("PASSED", "UNKNOWN") == "UNKNOWN"
    assert verdict("PASSED", error="no") == "UNKNOWN"
    assert verdict("UNKNOWN", "FAILED", error="no") == "FAILED"
