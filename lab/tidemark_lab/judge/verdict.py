"""The checks of a run and its verdict. Pure: everything that was seen is an argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from tidemark.core.identity import alert_name
from tidemark.core.text import counted
from tidemark.detect.default_thresholds import Thresholds
from tidemark_exporters.notify.groups import Groups, is_page
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.brokers.versions import is_current
from tidemark_lab.judge.claims import Claims, claims_of, judge_claims, suspicions
from tidemark_lab.judge.expected import (
    DATED,
    Expected,
    FirstSeen,
    Mark,
    ReceivedAlert,
    have_resolved,
)
from tidemark_lab.judge.samples import Samples
from tidemark_lab.judge.truth import Truth

Verdict = Literal["PASSED", "FAILED", "UNKNOWN"]
Outcome = Literal["none", "some"]
_OF_LEADERS: Final = frozenset({"UNCLEAN_ELECTION", "COMMITTED_DATA_LOSS"})
# notify.gather_seconds, and a second for the post.
_GATHERED_SECONDS: Final = 3.0


class Notification(NamedTuple):
    """A transition of an alert, as the webhook got it, and when: Unix seconds.

    `in_update`: its cause was notified before. Such a post waits for others, by design.
    """

    fingerprint: str
    status: str
    received_at: float
    in_update: bool = False


class Shown(NamedTuple):
    """A property of the brokers that a step compared."""

    name: str
    holds: bool
    text: str


@dataclass(frozen=True, kw_only=True)
class Demands:
    """What must and must not follow from a schedule.

    `forbidden`: detectors that must not fire at any severity. A critical alert that is neither
    expected nor `allowed` never may, nor a warning where it is `quiet`. `causes`: the number of
    causes that receivers get. `thresholds`: those that differ from the defaults.
    """

    expected: tuple[Expected, ...] = ()
    forbidden: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    quiet: bool = False
    # Whether acknowledged records are lost, by version, and versions on which replicas differ.
    lost: Mapping[str, Outcome] | Outcome = "none"
    diverged: tuple[str, ...] = ()
    # Whether `tidemark audit` runs, and must find what the disks show.
    audited: bool = False
    causes: int | None = None
    # Brokers that no warning and no critical alert may name.
    healthy: tuple[int, ...] = ()
    thresholds: Mapping[str, Any] = field(default_factory=dict)

    def lost_on(self, version: str) -> Outcome:
        return self.lost if isinstance(self.lost, str) else self.lost.get(version, "none")

    def expected_on(self, version: str) -> list[Expected]:
        return [e for e in self.expected if e.versions is None or version in e.versions]


@dataclass(frozen=True)
class Check:
    """One thing that had to hold. Seconds are those of an alert that came.

    `seconds_to_webhook`: from the moment when a client could see the condition to the webhook.
    `seconds_from_leader`: from the first answer of the new leader to the webhook, of an unclean
    election or a loss. `in_update`: its cause was notified shortly before, and it waited
    for the next post.
    """

    name: str
    verdict: Verdict
    text: str
    seconds_from_fault: float | None = None
    seconds_from_detectable: float | None = None
    allowed_seconds: float | None = None
    seconds_to_webhook: float | None = None
    seconds_from_leader: float | None = None
    in_update: bool = False


@dataclass(frozen=True)
class Result:
    """A drill on one version. `error`: the reason why it ended early."""

    name: str
    version: str
    seconds: float
    checks: Sequence[Check] = ()
    marks: Sequence[Mark] = ()
    acknowledged: int = 0
    lost: int = 0
    proven: int = 0
    shortfall_records: int | None = None
    shortfall_ms: float | None = None
    error: str | None = None
    # Lost records that no range claims, by reason.
    unproven: Mapping[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """FAILED for any check that failed; UNKNOWN for one that could not be made."""
        verdicts = {check.verdict for check in self.checks}
        if "FAILED" in verdicts:
            return "FAILED"
        return "UNKNOWN" if self.error is not None or "UNKNOWN" in verdicts else "PASSED"

    @property
    def findings(self) -> list[str]:
        found = [f"{c.name}: {c.text}" for c in self.checks if c.verdict != "PASSED"]
        return found if self.error is None else [*found, self.error]


@dataclass(frozen=True)
class Seen:
    """What a run left behind. `truth` is None where the logs could not be read."""

    alerts: Sequence[ReceivedAlert]
    marks: Mapping[str, Mark]
    truth: Truth | None
    samples: Mapping[Place, Samples] = field(default_factory=dict)
    differences: int | None = None
    first_seen: FirstSeen = field(default=lambda *_: None)
    notifications: Sequence[Notification] = ()
    # When a leader of each newer epoch first answered (Unix seconds), ascending.
    served: Sequence[float] = ()
    shown: Sequence[Shown] = ()

    def claims(self, version: str) -> Claims:
        """Of the one loss that a drill causes."""
        number = tuple(int(part) for part in version.split(".")[:2])
        claims = claims_of(received.alert for received in self.alerts)
        truth = self.truth or Truth()
        return judge_claims(truth, claims, self.samples, (number[0], number[1]), one_loss=True)


def judge(demands: Demands, version: str, seen: Seen) -> list[Check]:
    """Every check of a run that came to its end."""
    version = KAFKA_VERSION if is_current(version) else version
    thresholds = Thresholds(**demands.thresholds)
    checks = [_expected(e, seen, thresholds) for e in demands.expected_on(version)]
    checks += _unexpected(demands, version, seen)
    checks += _truth(demands, version, seen)
    checks += [_check(s.name, s.text, holds=s.holds) for s in seen.shown]
    if demands.audited:
        checks.append(_audited(seen))
    if demands.causes is not None:
        checks.append(_causes(demands.causes, seen.alerts))
    if demands.healthy:
        checks.append(_blame(demands.healthy, seen.alerts))
    return checks


def _check(name: str, text: str, *, holds: bool) -> Check:
    return Check(name, "PASSED" if holds else "FAILED", text)


def _expected(expected: Expected, seen: Seen, thresholds: Thresholds) -> Check:
    mark = seen.marks[expected.after]
    found: dict[str | None, ReceivedAlert] = {}
    for received in seen.alerts:
        if received.received_at >= mark.at and expected.is_met_by(received.alert):
            found.setdefault(received.alert.labels.get("partition"), received)
    what = expected.alert + (f" of broker {expected.broker}" if expected.broker else "")
    if len(found) < expected.partitions:
        of = f" of {expected.partitions} partitions" if expected.partitions > 1 else ""
        text = f"fired for {len(found)}{of}" if of else "did not fire"
        return Check(what, "FAILED", text)
    last = sorted(r.received_at for r in found.values())[expected.partitions - 1]
    if expected.resolves and not have_resolved(found.values(), seen.alerts):
        return Check(what, "FAILED", "fired and did not resolve", last - mark.at)
    watched = found.get("0") or found.get(None)
    times = _Times() if watched is None else _times(expected, mark.at, watched, seen)
    allowed = expected.allowed_seconds(thresholds)
    return Check(what, "PASSED", "fired", last - mark.at, times.to_alert, allowed, *times[1:])


class _Times(NamedTuple):
    """Seconds of one alert, as in `Check`."""

    to_alert: float | None = None
    to_webhook: float | None = None
    from_leader: float | None = None
    in_update: bool = False


def _times(expected: Expected, fault_at: float, fired: ReceivedAlert, seen: Seen) -> _Times:
    """It may have fired by what was visible before the probe's next sample: 0 s then."""
    since = served = None
    if expected.detector in DATED:
        since = seen.first_seen(expected.detector, fault_at, expected.broker)
    if expected.detector in _OF_LEADERS:
        served = max(
            (at for at in seen.served if fault_at <= at <= fired.received_at), default=None
        )
    to_alert = _between(since, fired.received_at)
    for posted in seen.notifications:
        if (
            posted.fingerprint == fired.alert.fingerprint
            and posted.status == "firing"
            and posted.received_at >= fired.received_at
        ):
            waited = posted.received_at - fired.received_at > _GATHERED_SECONDS
            return _Times(
                to_alert,
                _between(since, posted.received_at),
                _between(served, posted.received_at),
                posted.in_update and waited,
            )
    return _Times(to_alert)


def _between(since: float | None, until: float) -> float | None:
    return None if since is None else max(0.0, until - since)


def _unexpected(demands: Demands, version: str, seen: Seen) -> Iterator[Check]:
    awaited = {e.alert for e in demands.expected_on(version)} | {*map(alert_name, demands.allowed)}
    forbidden = {*map(alert_name, demands.forbidden)}
    bad: dict[str, str] = {}
    for alert, _ in seen.alerts:
        name, severity = alert.labels["alertname"], alert.labels["severity"]
        if alert.state != "firing" or (name in awaited and name not in forbidden):
            continue
        noisy = severity == "critical" or (demands.quiet and severity == "warning")
        if name in forbidden or noisy:
            bad.setdefault(name, f"{severity}: {alert.annotations['description']}")
    for name, text in bad.items():
        yield Check(f"no {name}", "FAILED", text)
    if not bad:
        quiet = "no critical alert and no warning" if demands.quiet else "no other critical alert"
        yield Check("silence", "PASSED", quiet)


def _truth(demands: Demands, version: str, seen: Seen) -> Iterator[Check]:
    truth = seen.truth
    if truth is None or truth.unread:
        yield Check("truth", "UNKNOWN", "the logs of some leaders could not be read")
        return
    if truth.acknowledged == 0:
        yield Check("load", "UNKNOWN", "no record was acknowledged")
    lost = len(truth.lost)
    text = f"{counted(lost, 'acknowledged record')} lost of {truth.acknowledged:,}"
    yield _check("records", text, holds=(lost > 0) == (demands.lost_on(version) == "some"))
    different = sum(map(len, truth.diverged.values()))
    text = f"the replicas differ at {counted(different, 'offset')}"
    yield _check("replicas", text, holds=(different > 0) == (version in demands.diverged))
    claims = seen.claims(version)
    untrue = [*claims.untrue, *claims.beyond]
    text = f"{counted(len(untrue), 'untrue claim')} of {counted(claims.proven, 'proven offset')}"
    yield _check("precision", "; ".join([text, *untrue]), holds=not untrue)
    text = f"{counted(claims.claimed, 'lost record')} claimed, {claims.unclaimed.total()} not"
    reasons = [f"{count:,} {reason}" for reason, count in claims.unclaimed.most_common()]
    yield _check(
        "completeness", "; ".join([text, *reasons, *claims.missed]), holds=not claims.missed
    )
    suspected, survived = suspicions([r.alert for r in seen.alerts], truth, seen.samples)
    if suspected:
        text = (
            f"{counted(survived, 'surviving record')} in {counted(suspected, 'suspected offset')}"
        )
        yield _check("suspicion", text, holds=not survived)


def _audited(seen: Seen) -> Check:
    """Whether the audit sees what the disks show."""
    found, truth = seen.differences, seen.truth
    if found is None or truth is None:
        return Check("audit", "UNKNOWN", "it did not run")
    text = f"tidemark audit reports {counted(found, 'difference')}"
    return _check("audit", text, holds=(found > 0) == bool(truth.diverged))


def _blame(healthy: Sequence[int], alerts: Sequence[ReceivedAlert]) -> Check:
    """Whether no alert that asks for something names one of these brokers."""
    named = [
        f"{alert.labels['alertname']} names broker {alert.labels['broker']}"
        for alert, _ in alerts
        if alert.state == "firing"
        and alert.labels["severity"] != "info"
        and int(alert.labels.get("broker", -1)) in healthy
    ]
    return _check("blame", "; ".join(named) or "no healthy broker is named", holds=not named)


def _causes(wanted: int, alerts: Sequence[ReceivedAlert]) -> Check:
    """How many causes the receivers are told of, by the groups of the delivery."""
    groups = Groups()
    found: set[str | None] = set()
    for alert, _ in alerts:
        if alert.state == "firing":
            groups.fire(alert)
            if is_page(alert):
                found.add(groups.cause_of(alert.fingerprint))
        elif alert.state == "update":
            groups.refresh(alert)
        else:
            groups.end(alert.fingerprint)
    pages = sum(alert.state == "firing" and is_page(alert) for alert, _ in alerts)
    text = f"{counted(pages, 'critical alert')} in {counted(len(found), 'cause')}"
    return _check("causes", text, holds=len(found) == wanted)
