from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import pytest

from tests.judge.examples import PLACE, acknowledged, log, loss, received
from tests.judge.examples import sampled as read
from tidemark.assess.losses import LOSS
from tidemark.core.records import Alert
from tidemark_lab.faults.fault import FaultRecord
from tidemark_lab.judge.claims import (
    DELETED,
    DEPOSED,
    NEVER_SAMPLED,
    NO_EPOCHS,
    NO_TOPIC_IDS,
    TOO_FEW_READS,
    Claim,
    Claims,
    claims_of,
    judge_claims,
    summary,
)
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
from tidemark_lab.judge.expected import ReceivedAlert
from tidemark_lab.judge.samples import InSync, LeaderRead, Reading, Samples
from tidemark_lab.judge.truth import Held, LostRecord, Truth, establish

# Records 5 to 9 of epoch 0, acknowledged at 20 to 24; a fault at 30 loses them.
FAULT = FaultRecord("crash", "d", (), (), 28.0, 35.0, 40.0, (30.0,))
LOST = [LostRecord(*PLACE, offset, 100 + offset, 15.0 + offset, 0, 0) for offset in range(5, 10)]
DISK = {PLACE: {**{o: Held(o, 0, None) for o in range(5)}, 5: Held(77, 2, None)}}
READS = [LeaderRead(at, 2, has_lineage=True) for at in (41.0, 42.0)]


def sampled(high_watermark: int = 8) -> Samples:
    return Samples([Reading(25.0, 26.0, high_watermark, 0)], list(READS))


def claim(start: int, end: int, at: float = 42.0, epoch: int | None = 0) -> Claim:
    return Claim(PLACE, start, end, epoch, at, 26.0)


def judged(samples: Samples, *claims: Claim, lost: list[LostRecord] = LOST) -> Claims:
    return judge_claims(Truth([FAULT], lost=lost, held=DISK), claims, {PLACE: samples})


def test_a_claim_up_to_the_sampled_high_watermark_is_all_that_is_due() -> None:
    verdict = judged(sampled(), claim(5, 8))
    assert verdict.failures == []
    assert (verdict.claimed, verdict.unclaimed) == (3, Counter({NEVER_SAMPLED: 2}))
    assert verdict.shortfalls == [(2, 2000.0)]
    assert summary(verdict)[0] == (
        "1 losses in a partition, 0 without a claim; 1 claims; 3 lost records claimed, 2 not"
    )


UNCLAIMED = "lost records of fault 0 (crash) are not claimed although they were sampled"


@pytest.mark.parametrize(
    ("claims", "failures"),
    [
        # A sampled loss without a claim, or with one of a part of it.
        ([], [f"3 {UNCLAIMED}, such as offset 5"]),
        ([claim(6, 8)], [f"1 {UNCLAIMED}, such as offset 5"]),
        # A claim from before the fault is none of it.
        ([claim(5, 8, at=29.0)], [f"3 {UNCLAIMED}, such as offset 5"]),
        # A claim of a record on disk.
        (
            [claim(4, 8)],
            ["claim of [4, 8) of epochs up to 0: 1 records survived, such as offset 4"],
        ),
        # Offset 5 has a record of epoch 2 now.
        ([claim(5, 8, epoch=1)], []),
        (
            [claim(5, 8, epoch=2)],
            ["claim of [5, 8) of epochs up to 2: 1 records survived, such as offset 5"],
        ),
        # A claim above every sample.
        (
            [claim(5, 9)],
            ["claim of [5, 9) of epochs up to 0: the highest sampled high watermark was 8"],
        ),
    ],
)
def test_claims_that_fail(claims: list[Claim], failures: list[str]) -> None:
    assert judged(sampled(), *claims).failures == [f"orders-0: {failure}" for failure in failures]


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        (Samples(), NEVER_SAMPLED),
        # Another one was at the offset then, or the fault may have been before.
        (Samples([Reading(29.0, 31.0, 8, 0)], READS), NEVER_SAMPLED),
        (Samples([Reading(25.0, 26.0, 10, 0)], READS, [(41.0, 10)]), DELETED),
        (Samples([Reading(25.0, 26.0, 10, None)], READS), NO_EPOCHS),
        (Samples([Reading(25.0, 26.0, 10, 0)], READS[:1]), TOO_FEW_READS),
        (Samples([Reading(25.0, 26.0, 10, 2)], READS), TOO_FEW_READS),
    ],
)
def test_what_no_sample_could_show_is_counted_by_its_reason(samples: Samples, reason: str) -> None:
    verdict = judged(samples)
    assert verdict.failures == []
    assert verdict.unclaimed == {reason: 5}
    assert verdict.silent_losses == 1


def test_a_record_that_was_acknowledged_after_the_harm_is_of_a_deposed_leader() -> None:
    late = LostRecord(*PLACE, 10, 110, 35.0)
    assert judged(sampled(20), lost=[late]).unclaimed == {DEPOSED: 1}


def test_a_claim_of_a_record_that_a_later_fault_lost_fails() -> None:
    failures = judged(sampled(), claim(5, 8, at=27.0)).failures
    assert "3 records survived, such as offset 5" in failures[0]
    unknown = [lost._replace(epoch=None) for lost in LOST]
    failures = judged(sampled(), claim(5, 8, at=27.0), lost=unknown).failures
    assert not any("survived" in failure for failure in failures)


def test_a_range_that_the_samples_prove_must_be_claimed() -> None:
    samples = sampled()
    samples.oracle.proven.add((2, (0, 5, 9)))
    (failure,) = judged(samples, claim(5, 8)).failures
    assert failure == (
        "orders-0: two reads under epoch 2 prove that offsets [5, 9) of epochs up to 0 are lost; "
        "1 of them are not claimed, such as 8"
    )
    # Without topic IDs no proof is demanded.
    without = judge_claims(Truth([FAULT], lost=LOST), [], {PLACE: samples}, (2, 6))
    assert without.failures == []


def test_claims_are_the_ranges_of_alerts_and_their_updates() -> None:
    claimed: dict[str, Any] = {
        "proven": [5, 8],
        "leader_epoch_before": 1,
        "committed_seen_at": 26.0,
    }
    alerts = [
        received(name, 2.0, state=state, **claimed).alert
        for name, state in (
            *((LOSS, state) for state in ("firing", "update", "resolved")),
            ("KafkaX", "firing"),
        )
    ]
    assert claims_of(alerts) == [claim(5, 8, at=2.0, epoch=1)] * 2


# Of a drill: offsets 0 to 4 were acknowledged, one a second; 3 and 4 hold other records now.
ACKED = [acknowledged(offset, offset, 10.0 + offset) for offset in range(5)]
LATER = [acknowledged(3, 30, 50.0), acknowledged(4, 40, 51.0)]


def drilled(*claims: ReceivedAlert, high_watermark: int = 5, seen_at: float = 14.5) -> Claims:
    logs = {1: {PLACE: {**log({0: 0, 1: 1, 2: 2}), **log({3: 30, 4: 40}, 1)}}}
    truth = establish([*ACKED, *LATER], logs, {PLACE: 1})
    truth.faults = [FaultRecord("drill", "d", (), (), 15.0, 40.0, 40.0, (15.0,))]
    alerts = claims_of(each.alert for each in claims)
    return judge_claims(truth, alerts, read((seen_at, high_watermark)), one_loss=True)


def test_an_exact_claim_is_true_and_complete() -> None:
    claims = drilled(loss(3, 5, 14.5))
    assert (claims.proven, claims.claimed, claims.failures) == (2, 2, [])


def test_a_claim_over_a_record_that_was_acknowledged_before_it_is_untrue() -> None:
    # By the acknowledgement alone: the brokers before 0.11 show no epoch.
    claim = Claim(PLACE, 2, 5, 0, 20.0, 14.5)
    assert claim.is_refuted_by(Held(2, -1, 12.0))
    assert not claim.is_refuted_by(Held(30, -1, 50.0))
    assert drilled(loss(2, 5, 14.5)).untrue


def test_below_the_reading_of_a_claim_no_reason_excuses_a_lost_record() -> None:
    claims = drilled(loss(4, 5, 14.5))
    assert claims.missed[0].endswith("such as offset 3")
    assert not claims.unclaimed


def test_what_was_acknowledged_after_the_last_reading_is_the_shortfall() -> None:
    claims = drilled(loss(3, 4, 13.5), high_watermark=4, seen_at=13.5)
    assert claims.shortfalls == [(1, 1000.0)]
    assert (claims.failures, claims.unclaimed) == ([], {NEVER_SAMPLED: 1})


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ((0, 10), NO_EPOCHS),
        ((0, 11), NO_TOPIC_IDS),
        ((2, 6), NO_TOPIC_IDS),
        ((2, 8), TOO_FEW_READS),
        ((4, 1), TOO_FEW_READS),
    ],
)
def test_a_sampled_record_is_counted_by_what_its_version_lacks(
    version: tuple[int, int], reason: str
) -> None:
    truth, samples = Truth([FAULT], lost=LOST[:1]), Samples([Reading(25.0, 26.0, 8, 0)])
    assert judge_claims(truth, [], {PLACE: samples}, version).unclaimed == {reason: 1}


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
