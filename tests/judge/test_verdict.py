from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.judge.examples import PLACE, acknowledged, loss, marks, received, replicas
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.drills.drill import Drill
from tidemark_lab.faults.fault import FaultRecord
from tidemark_lab.judge.expected import Expected
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


def test_what_a_step_compared_is_a_check() -> None:
    shown = [Shown("offsets", True, "equal"), Shown("files", False, "differ")]
    found = verdicts(DRILL, OFFLINE, shown=shown)
    assert (found["offsets"], found["files"]) == ("PASSED", "FAILED")


@pytest.mark.parametrize(
    "alert",
    [
        received("KafkaOffline", 99.0, "critical"),
        received("KafkaOffline", 103.0, "info"),
        received("KafkaOffline", 103.0, "critical", state="update"),
        received("KafkaOther", 103.0, "warning"),
    ],
)
def test_an_alert_before_its_fault_or_of_another_kind_is_none(alert: object) -> None:
    drill = replace(DRILL, expected=(Expected("OFFLINE", KILL, "critical"),))
    assert verdicts(drill, alert)["KafkaOffline"] == "FAILED"


def test_the_broker_counts_where_it_is_given() -> None:
    drill = replace(DRILL, expected=(Expected("OFFLINE", KILL, broker=2),))
    name = "KafkaOffline of broker 2"
    assert verdicts(drill, received("KafkaOffline", 103.0, broker=1))[name] == "FAILED"
    assert verdicts(drill, received("KafkaOffline", 103.0, broker=2))[name] == "PASSED"


def test_every_partition_must_have_the_alert() -> None:
    drill = replace(DRILL, expected=(Expected("OFFLINE", KILL, partitions=2),))
    assert verdicts(drill, OFFLINE)["KafkaOffline"] == "FAILED"
    second = received("KafkaOffline", 104.0, "critical", partition=1)
    assert verdicts(drill, OFFLINE, second)["KafkaOffline"] == "PASSED"


def test_an_alert_that_must_resolve_does() -> None:
    drill = replace(DRILL, expected=(Expected("OFFLINE", KILL, resolves=True),))
    end = received("KafkaOffline", 110.0, "critical", state="resolved")
    assert verdicts(drill, OFFLINE)["KafkaOffline"] == "FAILED"
    assert verdicts(drill, OFFLINE, end)["KafkaOffline"] == "PASSED"


def test_another_critical_alert_fails_and_a_warning_where_the_drill_is_quiet() -> None:
    page = received("KafkaUnderMinIsr", 104.0, "critical")
    ticket = received("KafkaFollowerLag", 104.0)
    assert verdicts(DRILL, OFFLINE, page)["no KafkaUnderMinIsr"] == "FAILED"
    assert verdicts(DRILL, OFFLINE, ticket)["silence"] == "PASSED"
    allowed = replace(DRILL, allowed=("UNDER_MIN_ISR",))
    assert verdicts(allowed, OFFLINE, page)["silence"] == "PASSED"
    quiet = replace(DRILL, quiet=True)
    assert verdicts(quiet, OFFLINE, ticket)["no KafkaFollowerLag"] == "FAILED"
    forbidden = replace(DRILL, forbidden=("ISR_CHANGE",))
    note = received("KafkaIsrChange", 104.0, "info")
    assert verdicts(forbidden, OFFLINE, note)["no KafkaIsrChange"] == "FAILED"


def test_a_loss_fails_where_none_is_meant_and_its_absence_where_one_is() -> None:
    lost = establish([acknowledged(0, 0, 1.0)], replicas(_1={}), {PLACE: 1})
    assert verdicts(DRILL, OFFLINE, truth=lost)["records"] == "FAILED"
    meant = replace(DRILL, lost="some")
    assert verdicts(meant, OFFLINE, truth=lost)["records"] == "PASSED"
    assert verdicts(meant, OFFLINE)["records"] == "FAILED"


def test_what_could_not_be_read_is_unknown_and_not_passed() -> None:
    unread = establish([acknowledged(0, 0, 1.0)], {}, {PLACE: 1})
    assert verdicts(DRILL, OFFLINE, truth=unread)["truth"] == "UNKNOWN"
    assert verdicts(DRILL, OFFLINE, truth=None)["truth"] == "UNKNOWN"
    nothing = establish([], replicas(_1={}), {PLACE: 1})
    assert verdicts(DRILL, OFFLINE, truth=nothing)["load"] == "UNKNOWN"


def test_the_audit_must_see_what_the_disks_show() -> None:
    logs = replicas(_1={0: 0}, _2={0: 1})
    differ = establish([acknowledged(0, 0, 1.0)], logs, {PLACE: 1})
    drill = replace(DRILL, audited=True, diverged=(KAFKA_VERSION,))
    assert verdicts(drill, OFFLINE, truth=differ, differences=1)["audit"] == "PASSED"
    assert verdicts(drill, OFFLINE, truth=differ, differences=0)["audit"] == "FAILED"
    assert verdicts(drill, OFFLINE, truth=differ)["audit"] == "UNKNOWN"


@pytest.mark.parametrize(("record", "verdict"), [(1, "PASSED"), (0, "FAILED")])
def test_a_suspected_range_must_hold_no_surviving_record(record: int, verdict: str) -> None:
    truth = establish([acknowledged(0, 0, 1.0)], replicas(_1={0: record}), {PLACE: 1})
    risk = received("KafkaLossRisk", 104.0, suspected=[0, 1], committed_seen_at=2.0)
    drill = replace(DRILL, lost="some" if record else "none")
    assert verdicts(drill, OFFLINE, risk, truth=truth)["suspicion"] == verdict


def test_losses_of_one_election_are_one_cause() -> None:
    drill = replace(DRILL, causes=1, allowed=("COMMITTED_DATA_LOSS",))
    together = [loss(0, 1, 100.0, partition=number) for number in range(3)]
    assert verdicts(drill, *together)["causes"] == "PASSED"
    later = loss(0, 1, 900.0, partition=9)
    assert verdicts(drill, *together, later)["causes"] == "FAILED"


def test_the_verdict_is_that_of_the_worst_check() -> None:
    def verdict(*found: str, error: str | None = None) -> str:
        checks = [Check("c", one, "t") for one in found]  # type: ignore[arg-type]
        return Result("d", "4", 1.0, checks, error=error).verdict

    assert verdict("PASSED") == "PASSED"
    assert verdict("PASSED", "UNKNOWN") == "UNKNOWN"
    assert verdict("PASSED", error="no") == "UNKNOWN"
    assert verdict("UNKNOWN", "FAILED", error="no") == "FAILED"
