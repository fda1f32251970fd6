"""Claims of lost records against the truth of a run with harmful faults. Pure.

* No claimed range holds a record that survived, or ends above every high watermark that was sampled
  under the epochs that it names.
* Each lost record below a high watermark that was sampled before its fault is claimed. The others
  are counted by the reason why no sample could show them.
* Each range that two samples prove by themselves (tests.histories.oracle) is claimed.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.chaos.harm_samples import Samples
from tests.chaos.harm_truth import HarmTruth, LostRecord
from tidemark.core.records import Alert
from tidemark_lab.brokers.cluster import Place

LOSS = "KafkaCommittedDataLoss"
NEVER_SAMPLED = "never sampled"
DELETED = "deleted"
NO_EPOCHS = "no epochs"
TOO_FEW_READS = "overwritten before two reads"
DEPOSED = "acknowledged by a deposed leader"
# (offset, record id, leader epoch)
DiskRecord = tuple[int, int, int]


class Claim(NamedTuple):
    """[start, end) of the leader epochs up to `epoch` is lost. `at`: when it was claimed."""

    place: Place
    start: int
    end: int
    epoch: int | None
    at: float


class Shortfall(NamedTuple):
    """How far the claims of a loss in one partition end before the truth."""

    records: int
    milliseconds: float


@dataclass
class Verdict:
    failures: list[str] = field(default_factory=list)
    claims: int = 0
    # Lost records that are claimed.
    claimed: int = 0
    # Lost records that are not claimed, by reason.
    unclaimed: Counter[str] = field(default_factory=Counter)
    shortfalls: list[Shortfall] = field(default_factory=list)
    # Losses in one partition by one fault: with a claim, without one.
    losses: int = 0
    silent_losses: int = 0
    # Per fault: lost records that are claimed.
    claimed_of: Counter[int] = field(default_factory=Counter)


def claims_of(alerts: Iterable[Alert]) -> list[Claim]:
    """Every range that an alert or an update of it claims."""
    found = []
    for alert in alerts:
        if alert.labels["alertname"] == LOSS and alert.state != "resolved":
            place = (alert.labels["topic"], int(alert.labels["partition"]))
            start, end = alert.evidence["proven"]
            epoch = alert.evidence.get("leader_epoch_before")
            found.append(Claim(place, start, end, epoch, alert.at))
    return found


def judge_harms(
    truth: HarmTruth,
    claims: Sequence[Claim],
    samples: Mapping[Place, Samples],
    disk: Mapping[Place, Sequence[DiskRecord]],
) -> Verdict:
    verdict = Verdict(claims=len(claims))
    verdict.failures += survivors(truth, claims, disk)
    verdict.failures += beyond_samples(claims, samples)
    verdict.failures += unclaimed_proofs(truth, claims, samples)
    by_loss: dict[tuple[int, Place], list[LostRecord]] = defaultdict(list)
    for lost in truth.lost:
        by_loss[lost.fault, lost.place].append(lost)
    for (fault, place), records in sorted(by_loss.items()):
        own = [claim for claim in claims if claim.place == place]
        _judge_loss(verdict, truth, fault, records, own, samples.get(place, Samples()))
    return verdict


def survivors(
    truth: HarmTruth, claims: Sequence[Claim], disk: Mapping[Place, Sequence[DiskRecord]]
) -> list[str]:
    """A text for each claim of which a record is on disk, or was until a later fault."""
    found = []
    for claim in claims:
        alive = [
            offset
            for offset, _, epoch in disk.get(claim.place, ())
            if claim.start <= offset < claim.end and _covers(claim, epoch)
        ]
        later = [
            lost.offset
            for lost in truth.lost
            if lost.place == claim.place
            and lost.epoch is not None
            and _covers(claim, lost.epoch)
            and claim.start <= lost.offset < claim.end
            and lost.acked_at < claim.at < truth.faults[lost.fault].begin
        ]
        if alive or later:
            offsets = sorted(alive + later)
            found.append(
                f"{_text(claim)}: {len(offsets)} records survived, such as offset {offsets[0]}"
            )
    return found


def beyond_samples(claims: Sequence[Claim], samples: Mapping[Place, Samples]) -> list[str]:
    """A text for each claim that no sample reaches: its end may never have been committed."""
    found = []
    for claim in claims:
        shown = samples.get(claim.place, Samples())
        highest = max(
            (
                reading.committed
                for reading in shown.readings
                if reading.until <= claim.at and _covers(claim, reading.leader_epoch or 0)
            ),
            default=0,
        )
        if claim.end > highest:
            found.append(f"{_text(claim)}: the highest sampled high watermark was {highest}")
    return found


def _covers(claim: Claim, epoch: int) -> bool:
    return claim.epoch is None or epoch <= claim.epoch


def unclaimed_proofs(
    truth: HarmTruth, claims: Sequence[Claim], samples: Mapping[Place, Samples]
) -> list[str]:
    """A text for each range that two samples of one leadership prove, and no claim has."""
    found = []
    for place, shown in samples.items():
        own = [claim for claim in claims if claim.place == place]
        for under, (epoch, start, end) in sorted(shown.oracle.proven):
            left = [o for o in range(start, end) if not any(c.start <= o < c.end for c in own)]
            if left:
                found.append(
                    f"{place[0]}-{place[1]}: two reads under epoch {under} prove that offsets "
                    f"[{start}, {end}) of epochs up to {epoch} are lost; {len(left)} of them are "
                    f"not claimed, such as {left[0]}"
                )
    return found


def _judge_loss(
    verdict: Verdict,
    truth: HarmTruth,
    fault: int,
    records: Sequence[LostRecord],
    claims: Sequence[Claim],
    samples: Samples,
) -> None:
    """One loss: what one fault lost of one partition."""
    began = truth.faults[fault].harmed_at[0]
    own = [claim for claim in claims if claim.at >= began]
    claimed, missed = [], []
    for record in records:
        if any(claim.start <= record.offset < claim.end for claim in own):
            claimed.append(record)
        elif (reason := _why_unclaimed(truth, record, samples)) is None:
            missed.append(record)
        else:
            verdict.unclaimed[reason] += 1
    if missed:
        topic, partition = missed[0].place
        verdict.failures.append(
            f"{topic}-{partition}: {len(missed)} lost records of fault {fault} "
            f"({truth.faults[fault].name}) are not claimed although they were sampled, such as "
            f"offset {missed[0].offset}"
        )
    verdict.claimed += len(claimed)
    verdict.claimed_of[fault] += len(claimed)
    verdict.losses += 1
    if not claimed:
        verdict.silent_losses += 1
        return
    last = max(records, key=lambda record: record.offset)
    last_claimed = max(claimed, key=lambda record: record.offset)
    verdict.shortfalls.append(
        Shortfall(
            sum(record.offset > last_claimed.offset for record in records),
            max(0.0, last.acked_at - last_claimed.acked_at) * 1000.0,
        )
    )


def _why_unclaimed(truth: HarmTruth, lost: LostRecord, samples: Samples) -> str | None:
    """None: it should be claimed."""
    fault = truth.faults[lost.fault]
    harmed_at = next((at for at in fault.harmed_at if at >= lost.acked_at), None)
    if harmed_at is None:
        return DEPOSED
    # Since the fault before was over, nothing was lost at its offset.
    since = truth.faults[lost.fault - 1].end if lost.fault > 0 else 0.0
    covering = [
        reading
        for reading in samples.readings
        if since <= reading.since and reading.until <= harmed_at and reading.committed > lost.offset
    ]
    if not covering:
        return NEVER_SAMPLED
    if samples.log_start() > lost.offset:
        return DELETED
    epoch = covering[-1].leader_epoch
    if epoch is None:
        return NO_EPOCHS
    later = Counter(
        read.leader_epoch
        for read in samples.leader_reads
        if read.at > harmed_at and read.has_lineage and (read.leader_epoch or 0) > epoch
    )
    return None if any(count >= 2 for count in later.values()) else TOO_FEW_READS


def summary(verdict: Verdict) -> list[str]:
    """Lines: what was claimed, what was not and why, and the shortfall of the claims."""
    first = (
        f"{verdict.losses} losses in a partition, {verdict.silent_losses} without a claim; "
        f"{verdict.claims} claims; {verdict.claimed} lost records claimed, "
        f"{sum(verdict.unclaimed.values())} not"
    )
    lines = [first]
    lines += [f"    {count:6}  {reason}" for reason, count in verdict.unclaimed.most_common()]
    if verdict.shortfalls:
        records = [shortfall.records for shortfall in verdict.shortfalls]
        times = [shortfall.milliseconds for shortfall in verdict.shortfalls]
        lines.append(
            f"shortfall of {len(records)} claimed losses: median {statistics.median(records):g} "
            f"records, {statistics.median(times):.0f} ms; most {max(records)} records, "
            f"{max(times):.0f} ms"
        )
    return lines


def _text(claim: Claim) -> str:
    topic, partition = claim.place
    return (
        f"{topic}-{partition}: claim of [{claim.start}, {claim.end}) of epochs up to {claim.epoch}"
    )
