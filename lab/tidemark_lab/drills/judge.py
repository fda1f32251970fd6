"""The checks of a drill and its verdict. Pure: everything that was seen is an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from tidemark.core.identity import alert_name
from tidemark.core.text import counted
from tidemark.detect import DETECTORS
from tidemark.detect.thresholds import Thresholds
from tidemark_exporters.notify.groups import Groups, is_page
from tidemark_lab.drills.drill import Drill, Expected
from tidemark_lab.drills.notifications import Notification
from tidemark_lab.drills.pipeline import ReceivedAlert
from tidemark_lab.drills.stage import Mark, Shown
from tidemark_lab.judge.claims import Claims, Sampled, suspicions
from tidemark_lab.judge.truth import Truth

Verdict = Literal["PASSED", "FAILED", "UNKNOWN"]
# When a condition was first visible to a client apart from Tidemark: detector, since, broker.
FirstSeen = Callable[[str, float, int | None], float | None]

# What the independent probe dates (tidemark_lab.brokers.reference_detector).
DATED: Final = frozenset(
    {
        *("OFFLINE", "UNCLEAN_ELECTION", "COMMITTED_DATA_LOSS", "LOG_TRUNCATION"),
        *("FOLLOWER_LAG", "BROKER_DOWN", "HW_STALLED", "ISR_CHANGE", "UNDER_REPLICATED"),
    }
)
_OF_LEADERS: Final = frozenset({"UNCLEAN_ELECTION", "COMMITTED_DATA_LOSS"})
# The allowed time beyond the detector's hysteresis, as in the demo.
_EXTRA_PASSES: Final = 2
_EXTRA_SECONDS: Final = 2.0
_LOSS_READS: Final = 2
# notify.gather_seconds, and a second for the post.
_GATHERED_SECONDS: Final = 3.0
_PASS_SECONDS: Final = 1.0


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
    sampled: Sampled = field(default_factory=dict)
    differences: int | None = None
    first_seen: FirstSeen = field(default=lambda *_: None)
    notifications: Sequence[Notification] = ()
    # When a leader of each newer epoch first answered (Unix seconds), ascending.
    served: Sequence[float] = ()
    shown: Sequence[Shown] = ()


def judge(drill: Drill, version: str, seen: Seen) -> list[Check]:
    """Every check of a drill that ran to its end."""
    thresholds = Thresholds(**drill.thresholds)
    checks = [_expected(e, seen, thresholds) for e in drill.expected_on(version)]
    checks += _unexpected(drill, version, seen)
    checks += _truth(drill, version, seen)
    checks += [Check(s.name, "PASSED" if s.holds else "FAILED", s.text) for s in seen.shown]
    if drill.audited:
        checks.append(_audited(seen))
    if drill.causes is not None:
        checks.append(_causes(drill.causes, seen.alerts))
    return checks


def _expected(expected: Expected, seen: Seen, thresholds: Thresholds) -> Check:
    mark = seen.marks[expected.after]
    found: dict[str | None, ReceivedAlert] = {}
    for received in seen.alerts:
        labels = received.alert.labels
        if (
            labels["alertname"] == expected.alert
            and received.alert.state == "firing"
            and received.received_at >= mark.at
            and expected.severity in (None, labels["severity"])
            and expected.broker in (None, int(labels.get("broker", -1)))
        ):
            found.setdefault(labels.get("partition"), received)
    what = expected.alert + (f" of broker {expected.broker}" if expected.broker else "")
    if len(found) < expected.partitions:
        of = f" of {expected.partitions} partitions" if expected.partitions > 1 else ""
        text = f"fired for {len(found)}{of}" if of else "did not fire"
        return Check(what, "FAILED", text)
    last = sorted(r.received_at for r in found.values())[expected.partitions - 1]
    if expected.resolves and not _have_resolved(found.values(), seen.alerts):
        return Check(what, "FAILED", "fired and did not resolve", last - mark.at)
    watched = found.get("0") or found.get(None)
    times = _Times() if watched is None else _times(expected, mark.at, watched, seen)
    return Check(
        what,
        "PASSED",
        "fired",
        last - mark.at,
        times.to_alert,
        allowed_seconds(expected.detector, thresholds),
        times.to_webhook,
        times.from_leader,
        times.in_update,
    )


class _Times(NamedTuple):
    """Seconds of one alert, as in `Check`."""

    to_alert: float | None = None
    to_webhook: float | None = None
    from_leader: float | None = None
    in_update: bool = False


def _times(expected: Expected, fault_at: float, fired: ReceivedAlert, seen: Seen) -> _Times:
    """It may have fired by what was visible before the probe's next sample: 0 s then."""
    since = None
    if expected.detector in DATED:
        since = seen.first_seen(expected.detector, fault_at, expected.broker)
    posted = next(
        (
            notification
            for notification in seen.notifications
            if notification.fingerprint == fired.alert.fingerprint
            and notification.status == "firing"
            and notification.received_at >= fired.received_at
        ),
        None,
    )
    served = None
    if expected.detector in _OF_LEADERS:
        served = max(
            (at for at in seen.served if fault_at <= at <= fired.received_at), default=None
        )
    return _Times(
        _between(since, fired.received_at),
        None if posted is None else _between(since, posted.received_at),
        None if posted is None else _between(served, posted.received_at),
        posted is not None
        and posted.in_update
        and posted.received_at - fired.received_at > _GATHERED_SECONDS,
    )


def _between(since: float | None, until: float) -> float | None:
    return None if since is None else max(0.0, until - since)


def _have_resolved(fired: Iterable[ReceivedAlert], alerts: Sequence[ReceivedAlert]) -> bool:
    ended = {r.alert.fingerprint for r in alerts if r.alert.state == "resolved"}
    return all(r.alert.fingerprint in ended for r in fired)


def allowed_seconds(detector: str, thresholds: Thresholds) -> float:
    """From the first moment that a condition is visible: hysteresis, 2 passes and 2 s."""
    known = DETECTORS[detector]
    passes = 0 if known.kind == "event" else known.fire_passes or thresholds.fire_passes
    if detector == "COMMITTED_DATA_LOSS":
        passes = _LOSS_READS
    held = {"BROKER_DOWN": 5.0, "ZOMBIE_LEADER": thresholds.zombie_leader_ms / 1000}
    return (_EXTRA_PASSES + passes) * _PASS_SECONDS + held.get(detector, 0.0) + _EXTRA_SECONDS


def _unexpected(drill: Drill, version: str, seen: Seen) -> Iterator[Check]:
    awaited = {e.alert for e in drill.expected_on(version)} | {*map(alert_name, drill.allowed)}
    forbidden = {*map(alert_name, drill.forbidden)}
    bad: dict[str, str] = {}
    for alert, _ in seen.alerts:
        name, severity = alert.labels["alertname"], alert.labels["severity"]
        if alert.state != "firing" or (name in awaited and name not in forbidden):
            continue
        noisy = severity == "critical" or (drill.quiet and severity == "warning")
        if name in forbidden or noisy:
            bad.setdefault(name, f"{severity}: {alert.annotations['description']}")
    for name, text in bad.items():
        yield Check(f"no {name}", "FAILED", text)
    if not bad:
        quiet = "no critical alert and no warning" if drill.quiet else "no other critical alert"
        yield Check("silence", "PASSED", quiet)


def _truth(drill: Drill, version: str, seen: Seen) -> Iterator[Check]:
    truth = seen.truth
    if truth is None or truth.unread:
        yield Check("truth", "UNKNOWN", "the logs of some leaders could not be read")
        return
    if truth.acknowledged == 0:
        yield Check("load", "UNKNOWN", "no record was acknowledged")
    lost, wanted = truth.lost_records, drill.lost_on(version)
    text = f"{counted(lost, 'acknowledged record')} lost of {truth.acknowledged:,}"
    yield Check("records", "PASSED" if (lost > 0) == (wanted == "some") else "FAILED", text)
    found, expected = bool(truth.diverged), version in drill.diverged
    different = sum(map(len, truth.diverged.values()))
    text = f"the replicas differ at {counted(different, 'offset')}"
    yield Check("replicas", "PASSED" if found == expected else "FAILED", text)
    claims = Claims.of([received.alert for received in seen.alerts], truth, seen.sampled)
    for name, verdict, what in claims.checks():
        yield Check(name, verdict, what)
    suspected, survived = suspicions([received.alert for received in seen.alerts], truth)
    if suspected:
        text = (
            f"{counted(survived, 'surviving record')} in {counted(suspected, 'suspected offset')}"
        )
        yield Check("suspicion", "FAILED" if survived else "PASSED", text)


def _audited(seen: Seen) -> Check:
    """Whether the audit sees what the disks show."""
    found, truth = seen.differences, seen.truth
    if found is None or truth is None:
        return Check("audit", "UNKNOWN", "it did not run")
    text = f"tidemark audit reports {counted(found, 'difference')}"
    return Check("audit", "PASSED" if (found > 0) == bool(truth.diverged) else "FAILED", text)


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
    return Check("causes", "PASSED" if len(found) == wanted else "FAILED", text)
