from __future__ import annotations

from collections import Counter
from typing import Literal

import pytest

from tests.judge.examples import received
from tidemark.core.records import Alert
from tidemark_lab.faults.fault import FaultRecord
from tidemark_lab.judge.claims import NEVER_SAMPLED
from tidemark_lab.judge.elections import (
    ELIGIBLE,
    IN_SYNC,
    LOST_NOTHING,
    MAY_BE_UNCLEAN,
    UNCLEAN,
    Election,
    Judgement,
    judge_elections,
    unclean_elections,
)
from tidemark_lab.judge.samples import InSync, Samples
from tidemark_lab.judge.truth import LostRecord, Truth

LINE = (
    "2026-11-22T18:00:41,607 INFO Setting new leader for topicId 89q5, partition 3 to 2 using {} "
    "election. Previous partition: PartitionRegistration(replicas=[2, 3], isr=[], elr=[2], "
    "lastKnownElr=[2], leader=-1, leaderRecoveryState=RECOVERED, leaderEpoch=8, partitionEpoch=19),"
    " change record: PartitionChangeRecord(partitionId=3, leader=-2) (PartitionChangeBuilder)\n"
)
ELECTION = Election(10.0, "89q5", 3, 2, 9)
SAMPLES = {("t", 3): Samples(topic_id="89q5"), ("u", 3): Samples(topic_id="other")}
TRUTH = Truth(
    [FaultRecord("power failure", "d", (), (), 8.0, 20.0, 30.0, (8.0,))],
    lost=[LostRecord("t", 3, 5, 105, 7.0, 0, 0)],
)


def alert(
    severity: Literal["critical", "warning"],
    before: int = 7,
    after: int = 9,
    topic: str = "t",
    name: str = UNCLEAN,
) -> Alert:
    epochs = {"leader_epoch_before": before, "leader_epoch_after": after}
    return received(
        name, 12.0, severity, topic=topic, partition=3, seen_before_at=5.0, **epochs
    ).alert


def test_the_log_names_the_epoch_before_the_election() -> None:
    lines = [LINE.format("an unclean"), LINE.format("a clean"), "other\n"]
    (found,) = unclean_elections(lines)
    assert found[1:] == ELECTION[1:]
    before_4 = LINE.format("an unclean").replace("T18", " 18").partition(". Previous")[0]
    (older,) = unclean_elections([before_4])
    assert older == found._replace(leader_epoch=None)


def test_an_alert_names_the_elections_of_its_epochs() -> None:
    def judge(*alerts: Alert) -> Judgement:
        return judge_elections([ELECTION], alerts, SAMPLES, TRUTH)

    none, unnoticed = Counter[str](), Counter({IN_SYNC: 1})
    assert judge(alert("critical"), alert("warning")) == ([], 1, 0, none)
    assert judge(alert("warning")) == ([], 0, 1, none)
    assert judge() == ([], 0, 0, unnoticed)
    # The leader was eligible when that was read last.
    for text, named in ((f"Either it was still eligible; {MAY_BE_UNCLEAN}.", 1), ("It was.", 0)):
        eligible = alert("warning", name=ELIGIBLE)
        eligible.annotations["description"] = text
        assert judge(eligible) == ([], 0, named, none if named else unnoticed)
    assert judge(alert("warning", 9, 10), alert("warning", topic="u")) == ([], 0, 0, unnoticed)


def test_without_epochs_in_the_log_the_time_decides() -> None:
    for at, noticed in ((-1.0, False), (1.0, True), (12.5, False)):
        election = ELECTION._replace(leader_epoch=None, at=at)
        judgement = judge_elections([election], [alert("critical")], SAMPLES, TRUTH)
        assert judgement.critical == noticed
        assert len(judgement.failures) == (not noticed)


def test_a_critical_alert_without_an_unclean_election_fails() -> None:
    for false in (alert("critical", 9, 10), alert("critical", 7, 8), alert("critical", topic="u")):
        failures = judge_elections([ELECTION], [false], SAMPLES, TRUTH).failures
        assert len(failures) == 1
        assert failures[0].endswith("was unclean then: It happened here.")


@pytest.mark.parametrize(
    ("in_sync", "reason"),
    [
        # All brokers were down since: the set may have been anything when the leader was elected.
        ([InSync(5.0, 1, (1, 2))], IN_SYNC),
        ([InSync(5.0, 2, ())], IN_SYNC),
        ([InSync(11.0, 1, (1,))], IN_SYNC),
        ([InSync(5.0, 1, (1,))], None),
        ([InSync(4.0, 1, (1, 2)), InSync(5.0, 1, (1,))], None),
    ],
)
def test_what_the_last_sample_shows_to_be_unclean_must_have_an_alert(
    in_sync: list[InSync], reason: str | None
) -> None:
    samples = {("t", 3): Samples(topic_id="89q5", in_sync=in_sync)}
    judgement = judge_elections([ELECTION], [], samples, TRUTH)
    assert judgement.unnoticed == (Counter([reason]) if reason else Counter())
    assert len(judgement.failures) == (reason is None)


def test_an_election_that_lost_nothing_or_was_never_sampled_needs_no_alert() -> None:
    samples = {("t", 3): Samples(topic_id="89q5", in_sync=[InSync(5.0, 1, (1,))])}
    quiet = judge_elections([ELECTION], [], samples, Truth())
    assert quiet == ([], 0, 0, Counter({LOST_NOTHING: 1}))
    assert judge_elections([ELECTION], [], {}, TRUTH).unnoticed == Counter({NEVER_SAMPLED: 1})
