"""Histories of which the truth is known, each in a file of events: what is claimed and what not.

The files without `real-` come from a simulated partition, the others from real brokers.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.verbs.recordings import alerts_of
from tidemark.core.records import Alert

CASES = ROOT / "tests" / "testdata" / "cases"
LOSS, UNCLEAN = "KafkaCommittedDataLoss", "KafkaUncleanElection"
REASSURANCE = ("has them", "is missing in its log", "has everything that was seen")
OFFLINE_AND_SUSPECTED = (
    "critical KafkaOffline",
    f"warning {UNCLEAN}",
    "warning KafkaLossRisk",
)
Ranges = dict[str, list[tuple[int, int]]]


@dataclass(frozen=True)
class Case:
    """`claims`: all proven ranges by partition. `fired`: alerts that come, as severity and name.
    `absent`: names, or severity and name, that do not come. `never`: texts in no alert.
    """

    claims: Ranges = field(default_factory=dict)
    fired: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


TRUTHS: dict[str, Case] = {
    "unclean-return-of-old-leader-loss-missed.jsonl": Case(
        claims={"t-0": [(5, 18)]},
        fired=(f"critical {LOSS}", f"critical {UNCLEAN}"),
        absent=("KafkaHwRegression",),
        never=REASSURANCE,
    ),
    # The election was between two passes. The log of its leader shows that it never was in sync.
    "unclean-return-suspicion-suppressed.jsonl": Case(
        claims={"t-0": [(5, 18)]},
        fired=(f"critical {LOSS}", f"warning {UNCLEAN}", f"critical {UNCLEAN}"),
        never=REASSURANCE,
    ),
    "loss-counts-deleted-records.jsonl": Case(
        claims={"t-0": [(990, 1000)]}, fired=(f"critical {LOSS}", f"critical {UNCLEAN}")
    ),
    "loss-claim-wholly-deleted.jsonl": Case(
        absent=(LOSS, UNCLEAN, "KafkaHwRegression"), never=("was committed",)
    ),
    "elr-race-false-unclean.jsonl": Case(absent=(UNCLEAN, LOSS)),
    # The loss is proven; an unclean election is not.
    "lossy-disk-called-unclean.jsonl": Case(
        claims={"t-0": [(30, 50)]},
        fired=(f"critical {LOSS}",),
        absent=(f"critical {UNCLEAN}",),
        never=("Unclean election:",),
    ),
    "truncation-text-false.jsonl": Case(
        fired=("info KafkaLogTruncation",), never=("which was committed", "acks=1 at most")
    ),
    "suspected-after-8-epochs.jsonl": Case(absent=(UNCLEAN, LOSS)),
    "written-between-wrong.jsonl": Case(claims={"t-0": [(0, 5)]}, absent=(f"critical {UNCLEAN}",)),
    "recreated-without-topic-ids.jsonl.gz": Case(
        absent=(LOSS, UNCLEAN, "KafkaZombieLeader", "KafkaStaleBrokerView", "KafkaLogTruncation")
    ),
    "recreated-without-topic-ids-noepochs.jsonl": Case(
        fired=("warning KafkaLossRisk",), absent=(LOSS,), never=("which was committed",)
    ),
    "metadata-log-overwritten-by-stale-image.jsonl": Case(absent=(UNCLEAN, LOSS)),
    "rf1-loss-risk-forever.jsonl.gz": Case(absent=("KafkaLossRisk", LOSS)),
    "two-collectors-skew.jsonl.gz": Case(
        fired=("critical KafkaOffline", "warning KafkaCollectorConflict"), absent=(LOSS, UNCLEAN)
    ),
    "ok-compacted-first-epoch.jsonl": Case(absent=(LOSS, UNCLEAN, "KafkaDivergence")),
    "ok-reassign-and-unclean.jsonl": Case(
        claims={"t-0": [(40, 100)]}, fired=(f"critical {LOSS}", f"critical {UNCLEAN}")
    ),
    "ok-truncate-to-exactly-hw.jsonl": Case(
        fired=("info KafkaLogTruncation",), absent=(LOSS, UNCLEAN), never=("which was committed",)
    ),
    # No leader epochs and no lineages: the new leader had written past h before it was read.
    "real-h-0.11.0.3-zk.jsonl.gz": Case(
        fired=OFFLINE_AND_SUSPECTED, absent=(LOSS,), never=REASSURANCE
    ),
    # The same with the lineages of leaders.
    "real-m-0.11.0.3-lineages.jsonl.gz": Case(
        claims={"pair-0": [(117, 263)], "pair-1": [(117, 263)], "pair-2": [(117, 262)]},
        fired=(f"critical {LOSS}", "critical KafkaOffline", f"warning {UNCLEAN}"),
        absent=("KafkaLossRisk",),
        never=REASSURANCE,
    ),
    "real-n-0.10.2.2.jsonl.gz": Case(
        fired=OFFLINE_AND_SUSPECTED, absent=(LOSS,), never=REASSURANCE
    ),
    "real-k-recreate-4.1.2.jsonl.gz": Case(
        absent=(LOSS, UNCLEAN, "KafkaLogTruncation", "KafkaHwRegression"),
        never=("which was committed", "protocol is violated"),
    ),
    # Of duo and solo2, [1276, 1315) was acknowledged. solo2 had committed two records more.
    "real-l-elr-stale-lists.jsonl.gz": Case(
        claims={
            **{f"duo-{number}": [(1276, 1315)] for number in range(4)},
            **{f"solo2-{number}": [(1276, 1317)] for number in range(2)},
        },
        fired=(f"critical {LOSS}", f"critical {UNCLEAN}"),
        never=("suspected at first",),
    ),
    # Clean: the uncommitted record is cut a moment later. A reader of log directories has a clock
    # that is 70 s and an hour ahead.
    "verdicts/divergence-by-the-clock-of-a-sidecar.jsonl.gz": Case(absent=("critical",)),
    "verdicts/divergence-no-sidecar.jsonl.gz": Case(absent=("critical",)),
    # Both logs are equal: one is a copy from the time when the topic was compacted.
    "verdicts/divergence-of-a-once-compacted-topic.jsonl.gz": Case(
        fired=("warning KafkaDivergence",), absent=("critical",)
    ),
    "verdicts/unclean-told-of-the-wrong-election.jsonl.gz": Case(
        claims={"t-0": [(0, 1)]},
        fired=(f"critical {UNCLEAN}", f"critical {LOSS}"),
        never=("broker 2 leads since epoch 4. ", "Unclean election: broker 2"),
    ),
    "verdicts/lke-silent-after-power-failure.jsonl.gz": Case(
        fired=("info KafkaElrElection",), absent=(UNCLEAN,), never=REASSURANCE
    ),
    "verdicts/written-between-of-two-losses.jsonl.gz": Case(claims={"t-0": [(1, 4), (0, 4)]}),
    # Without topic ids: deleted and created again while nobody watched.
    "verdicts/recreated-without-ids-in-a-gap.jsonl.gz": Case(
        fired=("warning KafkaLossRisk",), absent=("critical",)
    ),
    # The record was read late, of a controller whose clock is 30 s ahead.
    "verdicts/late-record-of-deleted-topic.jsonl.gz": Case(fired=("critical KafkaOffline",)),
}


@cache
def alerts_of_case(name: str) -> list[Alert]:
    path = CASES / name
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return alerts_of(data.splitlines())


def fired_of(name: str) -> list[Alert]:
    return [alert for alert in alerts_of_case(name) if alert.state != "resolved"]


def labels(alert: Alert) -> str:
    return f"{alert.labels['severity']} {alert.labels['alertname']}"


def test_every_file_has_a_case() -> None:
    assert {
        str(path.relative_to(CASES))
        for path in CASES.rglob("*.jsonl*")
        if path.parts[-2] != "reports"
    } == set(TRUTHS)


@pytest.mark.parametrize("name", TRUTHS)
def test_claims_are_the_records_that_were_lost(name: str) -> None:
    found: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    for alert in fired_of(name):
        if alert.labels["alertname"] == LOSS:
            place = f"{alert.labels['topic']}-{alert.labels['partition']}"
            # An update may only be about the replicas that had them.
            found[place] += {tuple(alert.evidence["proven"])}.difference(found[place])
    assert found == TRUTHS[name].claims


@pytest.mark.parametrize("name", TRUTHS)
def test_alerts_have_the_severity_that_the_truth_has(name: str) -> None:
    seen = {labels(alert) for alert in fired_of(name)}
    names = {part for label in seen for part in label.split()}
    case = TRUTHS[name]
    assert set(case.fired) <= seen
    assert not {*case.absent} & {*seen, *names}


@pytest.mark.parametrize("name", TRUTHS)
def test_no_sentence_is_stronger_than_the_proof(name: str) -> None:
    for alert in fired_of(name):
        text = alert.annotations["description"]
        assert not [phrase for phrase in TRUTHS[name].never if phrase in text], text


@pytest.mark.parametrize(
    ("name", "lost"),
    [("real-h-0.11.0.3-zk.jsonl.gz", (1636, 1865)), ("real-n-0.10.2.2.jsonl.gz", (130, 288))],
)
def test_without_proof_the_suspected_range_is_inside_the_one_that_was_lost(
    name: str, lost: tuple[int, int]
) -> None:
    """Of each partition of "pair". At most 10 records of it were committed after the last read."""
    newest = {
        (alert.labels["topic"], alert.labels["partition"]): alert.evidence["suspected"]
        for alert in fired_of(name)
        if alert.labels["alertname"] == "KafkaLossRisk"
    }
    assert newest.keys() == {("pair", str(number)) for number in range(3)}
    for start, end in newest.values():
        assert start == lost[0]
        assert lost[1] - 10 <= end <= lost[1]


@pytest.mark.parametrize(
    "name", ["real-h-0.11.0.3-zk.jsonl.gz", "real-m-0.11.0.3-lineages.jsonl.gz"]
)
def test_the_elections_of_other_partitions_are_clean(name: str) -> None:
    seen = {
        (alert.labels["topic"], alert.labels["partition"])
        for alert in fired_of(name)
        if alert.labels["alertname"] in {UNCLEAN, "KafkaOffline"}
    }
    assert seen == {("pair", str(number)) for number in range(3)}


def evidence(name: str, alertname: str) -> dict[str, Any]:
    return next(a.evidence for a in fired_of(name) if a.labels["alertname"] == alertname)


def test_the_bounds_of_a_loss_are_those_of_the_leadership_that_wrote_it() -> None:
    written = evidence("written-between-wrong.jsonl", LOSS)["written_between"]
    assert written == [1_700_000_001.0, 1_700_000_006.0]


@pytest.mark.parametrize(
    ("name", "verdict", "age_ms"),
    [
        ("truncation-text-false.jsonl", "possible", 1000.0),
        # The former leader showed its last high watermark after its leadership was over.
        ("ok-truncate-to-exactly-hw.jsonl", "excluded", 1000.0),
        ("written-between-wrong.jsonl", "proven", 21000.0),
    ],
)
def test_a_truncation_has_a_verdict_and_the_age_of_its_high_watermark(
    name: str, verdict: str, age_ms: float
) -> None:
    found = evidence(name, "KafkaLogTruncation")
    assert (found["committed_records_cut"], found["high_watermark_age_ms"]) == (verdict, age_ms)


def test_a_collector_takes_over_from_one_with_a_clock_ahead() -> None:
    """Its second pass sees the leader back; the alert ends within a minute of its passes."""
    ended = [
        (labels(alert), alert.at)
        for alert in alerts_of_case("two-collectors-skew.jsonl.gz")
        if alert.state == "resolved" and alert.labels["alertname"] == "KafkaOffline"
    ]
    ((label, at),) = ended
    assert label == "critical KafkaOffline"
    assert at - 1_700_000_011.0 <= 60.0
    conflict = evidence("two-collectors-skew.jsonl.gz", "KafkaCollectorConflict")
    assert round(abs(conflict["clock_difference_seconds"]) / 60.0) == 60


def test_an_alert_is_not_resolved_by_a_late_record_of_a_deleted_topic() -> None:
    found = alerts_of_case("verdicts/late-record-of-deleted-topic.jsonl.gz")
    offline = [alert.state for alert in found if alert.labels["alertname"] == "KafkaOffline"]
    assert offline == ["firing"]
