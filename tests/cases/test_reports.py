"""Recordings of conditions that users of Kafka reported: what is said of them, and what is not.

The files with `real-` come from real brokers, the others from a simulated cluster.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache

import pytest

from tests.cases.test_cases import alerts_of_case, labels
from tidemark.core.records import Alert

# The broker that an alert names: the label; None where it has none. No set: it does not come.
Named = dict[str, set[int | None] | None]


@dataclass(frozen=True)
class Report:
    """`named`: of alerts by name, the brokers that they name, all of them. `said`: texts that
    appear. `never`: texts that do not. `times`: how often an alert fires. `quiet`: no warning and
    nothing critical comes but of these names.
    """

    named: Named = field(default_factory=dict)
    said: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    times: dict[str, int] = field(default_factory=dict)
    quiet: tuple[str, ...] | None = None


_JOINS_NOT = "Broker 3 has every record that is older than a second, and leader 1 does not add it"
_THROTTLE = (
    "Broker 1 has leader.replication.throttled.rate=2000",
    "--entity-name 1 --delete-config leader.replication.throttled.rate",
)
REPORTS_BY_FILE: dict[str, Report] = {
    # Leader 1 answers fetches late: both followers of each of its partitions leave.
    "leaders-slow-disk-drives-all-out": Report(
        named={
            name: {1}
            for name in (
                *("KafkaFollowerLag", "KafkaHwStalled", "KafkaIsrChange", "KafkaIsrChurn"),
                "KafkaUnderMinIsr",
            )
        },
        said=("All followers of leader 1 are late (2 and 3)",),
        times={"warning KafkaIsrChurn": 1},
    ),
    # The high watermark of leader 2 is 0, its log starts at 700 and ends at 1180.
    "hw-below-log-start": Report(
        named={"KafkaHwStalled": {2}},
        said=("with 480 records above it", "leader 2 is broken, below its log start 700"),
        never=("broker 3 holds it", "rises while the followers fetch"),
    ),
    "isr-flaps-every-six-minutes": Report(
        named={"KafkaIsrChurn": {3}, "KafkaFollowerLag": {3}},
        times={"warning KafkaIsrChurn": 1, "warning KafkaHwStalled": 6},
    ),
    "caught-up-follower-never-joins": Report(
        named={"KafkaAtMinIsr": {1}},
        said=(_JOINS_NOT, "its connection to the controller"),
        never=("Missing: broker 3 (answers; suspected cause",),
    ),
    "dead-follower-stays-in-sync": Report(
        named={"KafkaBrokerDown": {3}, "KafkaFollowerLag": {3}, "KafkaHwStalled": {3}},
        said=("Kafka should have removed broker 3 from the in-sync set long ago",),
    ),
    "recreated-while-broker-off": Report(
        named={"KafkaAtMinIsr": {3}},
        said=("answers, and hosts a deleted topic of this name: INCONSISTENT_TOPIC_ID",),
        never=("does not answer: INCONSISTENT_TOPIC_ID",),
    ),
    "one-fetcher-failed": Report(named={"KafkaFollowerLag": {3}, "KafkaHwStalled": {3}}),
    # The throttle of leader 1 was left behind. Broker 3 crashed before it lagged.
    "real-r11-leader-throttle": Report(
        named={"KafkaBrokerDown": {3}, "KafkaFollowerLag": {1, 3}}, said=_THROTTLE
    ),
    "real-r8-3.5.2-recreated-while-off": Report(
        named={"KafkaUnderReplicated": {3}}, never=("does not answer: NOT_LEADER",)
    ),
    "quorum-elects-all-the-time": Report(
        named={"KafkaQuorumUnhealthy": {None}},
        said=("began 6 epochs in 32.0 s",),
        quiet=("KafkaQuorumUnhealthy",),
    ),
    "one-voter-gone": Report(
        said=("has lost voter 102, 1 of its 3 voters: with one more failure no leader",),
        quiet=("KafkaQuorumUnhealthy",),
    ),
    "real-r14-quorum": Report(
        named={"KafkaQuorumUnhealthy": {None}},
        said=("began 6 epochs", "has lost voter 100"),
        quiet=("KafkaQuorumUnhealthy",),
    ),
    # Broker 2 is dead, and the reassignment to [2, 3, 4] keeps it.
    "reassign-blocked-by-dead-third": Report(
        named={"KafkaReassignmentStuck": {2}, "KafkaBrokerDown": {2}},
        said=("t-0 has 2 of 3 replicas in sync", "to [2, 3, 4] waits for broker 2"),
        never=("3 of 3", "1 of 3"),
        quiet=("KafkaReassignmentStuck", "KafkaBrokerDown"),
    ),
    "real-r1-reassign": Report(
        named={"KafkaBrokerDown": {2}}, never=("2 of 2",), quiet=("KafkaBrokerDown",)
    ),
    "isr-superset-of-replicas": Report(
        said=("t-0 has 1 of 3 replicas in sync", "Leader 1 is the only replica of t-0 in sync"),
        never=("2 of 3",),
    ),
    # Brokers 0, 1 and 2 were never seen.
    "replicas-on-removed-brokers": Report(
        named={"KafkaBrokerDown": None},
        quiet=("KafkaUnderReplicated", "KafkaUnderMinIsr", "KafkaHwStalled", "KafkaLeaderAlone"),
    ),
    "collector-restarted-while-broker-dead": Report(
        named={"KafkaBrokerDown": {3}}, quiet=("KafkaBrokerDown",), times={"warning": 1}
    ),
    "real-r13-collector-restart": Report(
        named={"KafkaBrokerDown": {3}}, quiet=("KafkaBrokerDown",), times={"warning": 1}
    ),
    "lso-stuck-while-leaders-move": Report(quiet=("KafkaLsoStuck",), times={"info": 0}),
    "epoch-rises-same-leader": Report(named={"KafkaEpochBumpStorm": {None}}, quiet=()),
    "two-clusters-behind-one-name": Report(
        said=("Two clusters answered as c", "is shown with two topic ids in turn"),
        quiet=("KafkaCollectorConflict", "KafkaUnderMinIsr"),
    ),
    "ok-real-r10-two-clusters": Report(quiet=("KafkaBrokerDown",)),
    "ok-real-r3-partition-metadata": Report(
        named={"KafkaCommittedDataLoss": {None}}, quiet=("KafkaCommittedDataLoss",)
    ),
    "ok-real-r4-leader-pauses": Report(
        named={"KafkaBrokerDown": {1}, "KafkaIsrChurn": {1}, "KafkaIsrChange": {1}},
        quiet=("KafkaBrokerDown", "KafkaIsrChurn"),
    ),
    "ok-real-r5-retention": Report(quiet=("KafkaBrokerDown",)),
    "ok-retention-eats-all-while-follower-down": Report(
        named={"KafkaIsrChange": {3}}, quiet=(), times={"info": 1}
    ),
    "ok-tiered-follower-rebuilt": Report(
        quiet=(), said=("Broker 3 started its log of t-0 from scratch",)
    ),
}


@cache
def fired_of(name: str) -> list[Alert]:
    """The alerts of a recording that fire or change."""
    found = alerts_of_case(f"reports/{name}.jsonl.gz")
    return [alert for alert in found if alert.state != "resolved"]


@pytest.mark.parametrize("name", REPORTS_BY_FILE)
def test_the_cause_is_named_and_no_other_broker(name: str) -> None:
    named: dict[str, set[int | None]] = {}
    for alert in fired_of(name):
        broker = alert.labels.get("broker")
        of_name = named.setdefault(alert.labels["alertname"], set())
        of_name.add(None if broker is None else int(broker))
    expected = REPORTS_BY_FILE[name].named
    assert {key: named.get(key) for key in expected} == expected


@pytest.mark.parametrize("name", REPORTS_BY_FILE)
def test_the_texts_say_what_happened(name: str) -> None:
    texts = "\n".join(alert.annotations["description"] for alert in fired_of(name))
    report = REPORTS_BY_FILE[name]
    assert [text for text in report.said if text not in texts] == []
    assert [text for text in report.never if text in texts] == []


@pytest.mark.parametrize("name", REPORTS_BY_FILE)
def test_an_episode_is_told_once_and_what_is_well_not_at_all(name: str) -> None:
    report, fired = REPORTS_BY_FILE[name], [a for a in fired_of(name) if a.state == "firing"]
    times = Counter(labels(alert) for alert in fired)
    times.update(alert.labels["severity"] for alert in fired)
    assert {key: times[key] for key in report.times} == report.times
    if report.quiet is not None:
        loud = {a.labels["alertname"] for a in fired if a.labels["severity"] != "info"}
        assert loud <= {*report.quiet}


@pytest.mark.parametrize("name", REPORTS_BY_FILE)
def test_a_change_of_the_in_sync_set_is_one_change(name: str) -> None:
    for alert in fired_of(name):
        if alert.labels["alertname"] == "KafkaIsrChange":
            before, after = alert.evidence["before"], alert.evidence["after"]
            text = alert.annotations["description"]
            assert f"went from {before} to {after}; " in text
            left = {broker for broker in before if broker not in after}
            assert " left " not in text or any(f"broker {broker} left" in text for broker in left)
