from __future__ import annotations

from collections import Counter

import pytest

from tests.chaos.harm_judge import (
    DELETED,
    DEPOSED,
    LOSS,
    NEVER_SAMPLED,
    NO_EPOCHS,
    TOO_FEW_READS,
    Claim,
    DiskRecord,
    Verdict,
    claims_of,
    judge_harms,
    summary,
)
from tests.chaos.harm_samples import LeaderRead, Reading, Samples
from tests.chaos.harm_truth import HarmRecord, HarmTruth, LostRecord
from tidemark.core.records import Alert
from tidemark_lab.brokers.cluster import Place

PLACE = ("t", 0)
# Records 5 to 9 of epoch 0, acknowledged at 20 to 24; a fault at 30 loses them.
FAULT = HarmRecord("crash", "d", 28.0, 40.0, (30.0,))
LOST = [LostRecord(0, *PLACE, offset, 100 + offset, 15.0 + offset, 0) for offset in range(5, 10)]
DISK: dict[Place, list[DiskRecord]] = {PLACE: [*((o, o, 0) for o in range(5)), (5, 77, 2)]}
READS = [LeaderRead(at, 2, has_lineage=True) for at in (41.0, 42.0)]


def sampled(high_watermark: int = 8) -> Samples:
    return Samples([Reading(25.0, 26.0, high_watermark, 0)], list(READS))


def claim(start: int, end: int, at: float = 42.0, epoch: int | None = 0) -> Claim:
    return Claim(PLACE, start, end, epoch, at)


def judged(samples: Samples, *claims: Claim, lost: list[LostRecord] = LOST) -> Verdict:
    return judge_harms(HarmTruth(1, [FAULT], lost), claims, {PLACE: samples}, DISK)


def test_a_claim_up_to_the_sampled_high_watermark_is_all_that_is_due() -> None:
    verdict = judged(sampled(), claim(5, 8))
    assert verdict.failures == []
    assert (verdict.claimed, verdict.unclaimed) == (3, Counter({NEVER_SAMPLED: 2}))
    assert verdict.shortfalls == [(2, 2000.0)]
    assert summary(verdict)[0] == (
        "1 losses in a partition, 0 without a claim; 1 claims; 3 lost records claimed, 2 not"
    )


def test_a_sampled_loss_without_a_claim_fails() -> None:
    (failure,) = judged(sampled()).failures
    assert failure.startswith("t-0: 3 lost records of fault 0 (crash) are not claimed")
    (failure,) = judged(sampled(), claim(6, 8)).failures
    assert failure.startswith("t-0: 1 lost records of fault 0 (crash) are not claimed")
    assert failure.endswith("such as offset 5")


def test_a_claim_from_before_the_fault_is_none_of_it() -> None:
    assert len(judged(sampled(), claim(5, 8, at=29.0)).failures) == 1


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
    late = LostRecord(0, *PLACE, 10, 110, 35.0)
    assert judged(sampled(20), lost=[late]).unclaimed == {DEPOSED: 1}


def test_a_claim_of_a_record_on_disk_fails() -> None:
    (failure,) = judged(sampled(), claim(4, 8)).failures
    assert failure == "t-0: claim of [4, 8) of epochs up to 0: 1 records survived, such as offset 4"
    # Offset 5 has a record of epoch 2 now.
    assert judged(sampled(), claim(5, 8, epoch=1)).failures == []
    assert len(judged(sampled(), claim(5, 8, epoch=2)).failures) == 1


def test_a_claim_above_every_sample_fails() -> None:
    (failure,) = judged(sampled(), claim(5, 9)).failures
    assert failure == (
        "t-0: claim of [5, 9) of epochs up to 0: the highest sampled high watermark was 8"
    )


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
        "t-0: two reads under epoch 2 prove that offsets [5, 9) of epochs up to 0 are lost; 1 of "
        "them are not claimed, such as 8"
    )


def test_claims_are_the_ranges_of_alerts_and_their_updates() -> None:
    def alert(state: str, name: str = LOSS) -> Alert:
        return Alert(
            id="i",
            fingerprint="f",
            state=state,  # type: ignore[arg-type]
            labels={"alertname": name, "severity": "critical", "topic": "t", "partition": "0"},
            annotations={"description": ""},
            evidence={"proven": [5, 8], "leader_epoch_before": 1},
            starts_at=1.0,
            at=2.0,
        )

    alerts = [alert("firing"), alert("update"), alert("resolved"), alert("firing", "KafkaX")]
    assert claims_of(alerts) == [claim(5, 8, at=2.0, epoch=1)] * 2
