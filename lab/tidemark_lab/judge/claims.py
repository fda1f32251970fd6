"""The ranges that alerts claim to be lost, against the truth and the samples. Pure.

* No claimed range holds a record that survived, or ends above every high watermark that was sampled
  under the epochs that it names.
* Each lost record below a high watermark that was sampled before its fault is claimed. The others
  are counted by the reason why no sample could show them.
* Each range that two samples prove by themselves (`judge.proofs`) is claimed.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tidemark.assess.losses import LOSS
from tidemark.core.identity import alert_name
from tidemark.core.records import Alert
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.judge.samples import Samples
from tidemark_lab.judge.truth import Held, LostRecord, Truth, name_of

_RISK: Final = alert_name("LOSS_RISK")
NEVER_SAMPLED: Final = "never sampled"
TOO_FEW_READS: Final = "overwritten before two reads"
DELETED: Final = "deleted"
NO_EPOCHS: Final = "no epochs"
NO_TOPIC_IDS: Final = "no topic ids"
DEPOSED: Final = "acknowledged by a deposed leader"
# Why a lost record is in no claimed range.
REASONS: Final = (NEVER_SAMPLED, TOO_FEW_READS, DELETED, NO_EPOCHS, NO_TOPIC_IDS, DEPOSED)
# Leader epochs came with KIP-101, topic ids with KIP-516.
_EPOCHS: Final = (0, 11)
_TOPIC_IDS: Final = (2, 8)


class Claim(NamedTuple):
    """[start, end) of the leader epochs up to `epoch` is lost. `at`: when it was claimed.

    `committed_seen_at`: when the high watermark was read that proves it.
    """

    place: Place
    start: int
    end: int
    epoch: int | None
    at: float
    committed_seen_at: float

    def __str__(self) -> str:
        return (
            f"{name_of(self.place)}: claim of [{self.start}, {self.end}) of epochs up to "
            f"{self.epoch}"
        )

    def has(self, offset: int) -> bool:
        return self.start <= offset < self.end

    def covers(self, epoch: int) -> bool:
        return self.epoch is None or epoch <= self.epoch

    def is_refuted_by(self, held: Held) -> bool:
        """Whether a record that is at one of its offsets was there before, and survived."""
        known = held.acked_at is not None and held.acked_at < self.committed_seen_at
        return known or (held.epoch >= 0 and self.covers(held.epoch))


class Shortfall(NamedTuple):
    """How far the claims of a loss in one partition end before the truth."""

    records: int
    milliseconds: float


@dataclass
class Claims:
    """Every claim of a run, and what is wrong with them: a text for each.

    `untrue`: a record survived. `beyond`: no sample reaches the end. `missed`: what samples show
    and nobody claimed. `claimed` and `unclaimed` (by reason) count lost records, `claimed_of` by
    fault; `losses` and `silent_losses` (without a claim) what one fault lost of one partition.
    """

    claims: Sequence[Claim]
    untrue: list[str] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    claimed: int = 0
    unclaimed: Counter[str] = field(default_factory=Counter)
    shortfalls: list[Shortfall] = field(default_factory=list)
    losses: int = 0
    silent_losses: int = 0
    claimed_of: Counter[int] = field(default_factory=Counter)

    @property
    def failures(self) -> list[str]:
        return [*self.untrue, *self.beyond, *self.missed]

    @property
    def proven(self) -> int:
        """The number of offsets in any claim."""
        offsets = {(c.place, offset) for c in self.claims for offset in range(c.start, c.end)}
        return len(offsets)


def claims_of(alerts: Iterable[Alert]) -> list[Claim]:
    """Every range that an alert or an update of it claims."""
    found = []
    for alert in alerts:
        if alert.labels["alertname"] == LOSS and alert.state != "resolved":
            start, end = alert.evidence["proven"]
            epoch = alert.evidence.get("leader_epoch_before")
            seen_at = alert.evidence.get("committed_seen_at") or 0.0
            found.append(Claim(place_of(alert), start, end, epoch, alert.at, seen_at))
    return found


def place_of(alert: Alert) -> Place:
    return alert.labels["topic"], int(alert.labels["partition"])


def judge_claims(
    truth: Truth,
    claims: Sequence[Claim],
    samples: Mapping[Place, Samples],
    version: tuple[int, int] = (4, 0),
    *,
    one_loss: bool = False,
) -> Claims:
    """`version`: of Kafka. `one_loss`: every claim in a partition is of one and the same loss."""
    judged = Claims(claims)
    judged.untrue += survivors(truth, claims)
    judged.beyond += beyond_samples(claims, samples)
    if version >= _TOPIC_IDS:
        judged.missed += unclaimed_proofs(claims, samples)
    by_loss: dict[tuple[int, Place], list[LostRecord]] = defaultdict(list)
    for lost in truth.lost:
        by_loss[lost.fault, lost.place].append(lost)
    for (fault, place), records in sorted(by_loss.items()):
        began = truth.faults[fault].harmed_at[0]
        own = [claim for claim in claims if claim.place == place and claim.at >= began]
        shown = samples.get(place, Samples())
        known = _committed_before(own, shown) if one_loss else 0
        claimed, missed = [], []
        for record in records:
            if any(claim.has(record.offset) for claim in own):
                claimed.append(record)
                continue
            reason = _why_unclaimed(truth, record, shown, version)
            if reason is None or record.offset < known:
                missed.append(record)
            else:
                judged.unclaimed[reason] += 1
        _count(judged, fault, records, claimed)
        if missed:
            judged.missed.append(
                f"{name_of(place)}: {len(missed)} lost records of fault {fault} "
                f"({truth.faults[fault].name}) are not claimed although they were sampled, such as "
                f"offset {missed[0].offset}"
            )
    return judged


def survivors(truth: Truth, claims: Sequence[Claim]) -> list[str]:
    """A text for each claim of which a record is on disk, or was until a later fault."""
    found = []
    for claim in claims:
        offsets = [
            offset
            for offset, held in truth.held.get(claim.place, {}).items()
            if claim.has(offset) and claim.is_refuted_by(held)
        ]
        offsets += [
            lost.offset
            for lost in truth.lost_of(claim.place)
            if lost.epoch is not None
            and claim.covers(lost.epoch)
            and claim.has(lost.offset)
            and lost.acked_at < claim.at < truth.faults[lost.fault].begin
        ]
        if offsets:
            found.append(f"{claim}: {len(offsets)} records survived, such as offset {min(offsets)}")
    return found


def beyond_samples(claims: Sequence[Claim], samples: Mapping[Place, Samples]) -> list[str]:
    """A text for each claim that no sample reaches: its end may never have been committed."""
    found = []
    for claim in claims:
        highest = max(
            (
                reading.committed
                for reading in samples.get(claim.place, Samples()).readings
                if reading.until <= claim.at and claim.covers(reading.leader_epoch or 0)
            ),
            default=0,
        )
        if claim.end > highest:
            found.append(f"{claim}: the highest sampled high watermark was {highest}")
    return found


def unclaimed_proofs(claims: Sequence[Claim], samples: Mapping[Place, Samples]) -> list[str]:
    """A text for each range that two samples of one leadership prove, and no claim has."""
    found = []
    for place, shown in samples.items():
        own = [claim for claim in claims if claim.place == place]
        for under, (epoch, start, end) in sorted(shown.oracle.proven):
            left = [o for o in range(start, end) if not any(claim.has(o) for claim in own)]
            if left:
                found.append(
                    f"{name_of(place)}: two reads under epoch {under} prove that offsets "
                    f"[{start}, {end}) of epochs up to {epoch} are lost; {len(left)} of them are "
                    f"not claimed, such as {left[0]}"
                )
    return found


def suspicions(
    alerts: Sequence[Alert], truth: Truth, samples: Mapping[Place, Samples]
) -> tuple[int, int]:
    """Offsets that alerts suspect to be lost, and those of them that still hold their record.

    A record that was acknowledged after the leader answered may be one of the suspected log's
    successor, although the pass ended later.
    """
    newest = {
        alert.fingerprint: alert
        for alert in alerts
        if alert.labels["alertname"] == _RISK and "suspected" in alert.evidence
    }
    suspected = survived = 0
    for alert in newest.values():
        place, seen_at = place_of(alert), alert.evidence["committed_seen_at"]
        held, readings = truth.held.get(place, {}), samples.get(place, Samples()).readings
        read_from = min((r.since for r in readings if r.until == seen_at), default=seen_at)
        offsets = range(*alert.evidence["suspected"])
        suspected += len(offsets)
        times = (held[offset].acked_at for offset in offsets if offset in held)
        survived += sum(at is not None and at < read_from for at in times)
    return suspected, survived


def _committed_before(claims: Sequence[Claim], samples: Samples) -> int:
    """The highest offset that was sampled as committed before a loss that is claimed."""
    until = max((claim.committed_seen_at for claim in claims), default=0.0)
    return max((r.committed for r in samples.readings if r.until <= until), default=0)


def _count(
    judged: Claims, fault: int, records: Sequence[LostRecord], claimed: Sequence[LostRecord]
) -> None:
    judged.claimed += len(claimed)
    judged.claimed_of[fault] += len(claimed)
    judged.losses += 1
    if not claimed:
        judged.silent_losses += 1
        return
    last = max(records, key=lambda record: record.offset)
    last_claimed = max(claimed, key=lambda record: record.offset)
    judged.shortfalls.append(
        Shortfall(
            sum(record.offset > last_claimed.offset for record in records),
            max(0.0, last.acked_at - last_claimed.acked_at) * 1000.0,
        )
    )


def _why_unclaimed(
    truth: Truth, lost: LostRecord, samples: Samples, version: tuple[int, int]
) -> str | None:
    """None: it should be claimed."""
    harmed_at = next((at for at in truth.faults[lost.fault].harmed_at if at >= lost.acked_at), None)
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
    if samples.log_start > lost.offset:
        return DELETED
    epoch = covering[-1].leader_epoch
    if epoch is None or version < _EPOCHS:
        return NO_EPOCHS
    if version < _TOPIC_IDS:
        return NO_TOPIC_IDS
    later = Counter(
        read.leader_epoch
        for read in samples.leader_reads
        if read.at > harmed_at and read.has_lineage and (read.leader_epoch or 0) > epoch
    )
    return None if any(count >= 2 for count in later.values()) else TOO_FEW_READS


def summary(judged: Claims) -> list[str]:
    """Lines: what was claimed, what was not and why, and the shortfall of the claims."""
    first = (
        f"{judged.losses} losses in a partition, {judged.silent_losses} without a claim; "
        f"{len(judged.claims)} claims; {judged.claimed} lost records claimed, "
        f"{judged.unclaimed.total()} not"
    )
    lines = [first]
    lines += [f"    {count:6}  {reason}" for reason, count in judged.unclaimed.most_common()]
    if judged.shortfalls:
        records = [shortfall.records for shortfall in judged.shortfalls]
        times = [shortfall.milliseconds for shortfall in judged.shortfalls]
        lines.append(
            f"shortfall of {len(records)} claimed losses: median {statistics.median(records):g} "
            f"records, {statistics.median(times):.0f} ms; most {max(records)} records, "
            f"{max(times):.0f} ms"
        )
    return lines
