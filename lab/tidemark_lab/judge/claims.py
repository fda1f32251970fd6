"""The losses that Tidemark claims, against the truth. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

from tidemark.core.identity import alert_name
from tidemark.core.records import Alert
from tidemark.core.text import counted
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.load_producer import AcknowledgedRecord
from tidemark_lab.judge.truth import Range, Truth

_LOSS = alert_name("COMMITTED_DATA_LOSS")
_RISK = alert_name("LOSS_RISK")
# By partition, (time, high watermark) of each reading from a leader.
Sampled = Mapping[Place, Sequence[tuple[float, int]]]


class Claim(NamedTuple):
    """A proven range, and when the high watermark that proves it was read."""

    proven: Range
    committed_seen_at: float


@dataclass(frozen=True)
class Claims:
    """`untrue`: offsets of proven ranges that still hold a record acknowledged before the reading.

    `unclaimed`: lost records below the last high watermark that was sampled for a claim, outside
    its range. `later`: those from there on, which nothing can prove. `unproven`: those of
    partitions without a claim.
    """

    proven: int
    untrue: Mapping[Place, Sequence[int]]
    unclaimed: Sequence[AcknowledgedRecord]
    later: Sequence[AcknowledgedRecord]
    unproven: Sequence[AcknowledgedRecord]
    shortfall_ms: float | None

    @classmethod
    def of(cls, alerts: Sequence[Alert], truth: Truth, sampled: Sampled) -> Self:
        claims = _claims(alerts)
        untrue: dict[Place, list[int]] = {}
        for place, found in claims.items():
            kept = truth.kept.get(place, {})
            bad = [
                offset
                for claim in found
                for offset in range(*claim.proven)
                if kept.get(offset, claim.committed_seen_at) < claim.committed_seen_at
            ]
            if bad:
                untrue[place] = bad
        unclaimed, later, unproven = [], [], []
        shortfalls = []
        for place, records in truth.lost.items():
            own = claims.get(place, [])
            late: list[AcknowledgedRecord] = []
            known = _known(own, sampled.get(place, []))
            for record in records:
                if any(claim.proven[0] <= record.offset < claim.proven[1] for claim in own):
                    continue
                if not own:
                    unproven.append(record)
                elif record.offset >= known:
                    late.append(record)
                else:
                    unclaimed.append(record)
            later += late
            if own:
                last = max((r.acked_at for r in late), default=own[-1].committed_seen_at)
                shortfalls.append(1000 * (last - max(c.committed_seen_at for c in own)))
        proven = sum(c.proven[1] - c.proven[0] for found in claims.values() for c in found)
        return cls(proven, untrue, unclaimed, later, unproven, max(shortfalls, default=None))

    def checks(self) -> Iterator[tuple[str, Literal["PASSED", "FAILED"], str]]:
        """(name, verdict, text) of the precision and of the completeness of the claims."""
        bad = sum(map(len, self.untrue.values()))
        yield (
            "precision",
            "FAILED" if bad else "PASSED",
            f"{counted(bad, 'surviving record')} in {counted(self.proven, 'proven offset')}",
        )
        missed = len(self.unclaimed)
        text = (
            f"{counted(missed, 'lost record')} below a sampled high watermark not claimed; "
            f"{len(self.later)} acknowledged after the last sample, {len(self.unproven)} where "
            "nothing is proven"
        )
        yield "completeness", "FAILED" if missed else "PASSED", text


def suspicions(alerts: Sequence[Alert], truth: Truth) -> tuple[int, int]:
    """Offsets that alerts suspect to be lost, and those of them that still hold their record."""
    newest = {
        alert.fingerprint: alert
        for alert in alerts
        if alert.labels["alertname"] == _RISK and "suspected" in alert.evidence
    }
    suspected = survived = 0
    for alert in newest.values():
        kept = truth.kept.get(_place(alert), {})
        start, end = alert.evidence["suspected"]
        seen_at = alert.evidence["committed_seen_at"]
        suspected += end - start
        survived += sum(kept.get(offset, seen_at) < seen_at for offset in range(start, end))
    return suspected, survived


def _place(alert: Alert) -> Place:
    return alert.labels["topic"], int(alert.labels["partition"])


def _known(claims: Sequence[Claim], sampled: Sequence[tuple[float, int]]) -> int:
    """The highest offset that was sampled as committed before the losses."""
    until = max((claim.committed_seen_at for claim in claims), default=0.0)
    return max((offset for at, offset in sampled if at <= until), default=0)


def _claims(alerts: Sequence[Alert]) -> dict[Place, list[Claim]]:
    """The newest claim of each incident, by partition."""
    newest = {
        alert.fingerprint: alert
        for alert in alerts
        if alert.labels["alertname"] == _LOSS and alert.state != "resolved"
    }
    found: dict[Place, list[Claim]] = {}
    for alert in newest.values():
        place = _place(alert)
        start, end = alert.evidence["proven"]
        claim = Claim((start, end), alert.evidence["committed_seen_at"])
        found.setdefault(place, []).append(claim)
    return found
