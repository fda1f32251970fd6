"""The life cycle of alerts.

States are judged at each pass: they fire after some passes in a row with the condition and resolve
after some without it. Events fire at once, and remain open until they expire or are acknowledged.
A change of severity resolves the alert (reason "escalated") and fires the next one with the same
start and incident. The label set is the identity of an alert; values that vary are annotations.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from tidemark.core.identity import alert_name, fingerprint, incident, transition_id
from tidemark.core.partition import MAX_ALERTS, MAX_EVENT_ALERTS
from tidemark.core.records import Alert, AlertState, OpenAlert, Reason
from tidemark.core.tracked_alert import TrackedAlert, tracked
from tidemark.detect.detector import Condition, Detector
from tidemark.reduce.worst_alert import FOLDED, fold, open_one

Found = tuple[Detector, Condition]
Alerts = list[TrackedAlert]


class Scope(NamedTuple):
    """What an alert is about: a partition, a broker, or (all None) the whole cluster."""

    kafka_cluster: str
    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None


class Rules(NamedTuple):
    """The part of the configuration that the life cycle needs."""

    fire_passes: int
    clear_passes: int
    event_expires_ms: float
    detectors: dict[str, Detector]


class Phase(Enum):
    """PENDING counts passes; GONE is not tracked any more."""

    PENDING = auto()
    FIRING = auto()
    GONE = auto()


class Judgement(Enum):
    """The result of judging one alert."""

    # The condition holds: not long enough yet, long enough, with another revision or severity.
    HELD = auto()
    DUE = auto()
    REVISED = auto()
    ESCALATED = auto()
    # The condition is absent: not long enough yet, long enough.
    ABSENT = auto()
    CLEARED = auto()
    # For another reason than its condition.
    EXPIRED = auto()
    ACKED = auto()
    DELETED = auto()
    REMOVED = auto()


class Transition(NamedTuple):
    """`resolved` is published as the alert was, `state` as it is now."""

    phase: Phase
    resolved: Reason | None = None
    state: AlertState | None = None


TRANSITIONS: Final = {
    (Phase.PENDING, Judgement.HELD): Transition(Phase.PENDING),
    (Phase.PENDING, Judgement.DUE): Transition(Phase.FIRING, state="firing"),
    (Phase.PENDING, Judgement.ABSENT): Transition(Phase.GONE),
    (Phase.PENDING, Judgement.DELETED): Transition(Phase.GONE),
    (Phase.PENDING, Judgement.REMOVED): Transition(Phase.GONE),
    (Phase.FIRING, Judgement.HELD): Transition(Phase.FIRING),
    (Phase.FIRING, Judgement.REVISED): Transition(Phase.FIRING, state="update"),
    (Phase.FIRING, Judgement.ESCALATED): Transition(
        Phase.FIRING, resolved="escalated", state="firing"
    ),
    (Phase.FIRING, Judgement.ABSENT): Transition(Phase.FIRING),
    (Phase.FIRING, Judgement.CLEARED): Transition(Phase.GONE, resolved="cleared"),
    (Phase.FIRING, Judgement.EXPIRED): Transition(Phase.GONE, resolved="expired"),
    (Phase.FIRING, Judgement.ACKED): Transition(Phase.GONE, resolved="acked"),
    (Phase.FIRING, Judgement.DELETED): Transition(Phase.GONE, resolved="deleted"),
    (Phase.FIRING, Judgement.REMOVED): Transition(Phase.GONE, resolved="removed"),
}


# Of what the alert is about, not of its condition.
ENDS: Final = (Judgement.DELETED, Judgement.REMOVED)


class LifeCycle:
    """One judgement of the alerts of one scope, at `now`. `published` collects the transitions."""

    def __init__(self, scope: Scope, rules: Rules, now: float) -> None:
        self.published: list[Alert] = []
        self._scope, self._rules, self._now = scope, rules, now

    def judge_states(
        self, alerts: Alerts, found: Iterable[Found], waits: Callable[[Detector], bool]
    ) -> Alerts:
        """The alerts after one pass. Those of a detector that `waits` do not change.

        Of those that are folded into one, only the open one is published (`reduce.worst_alert`).
        """
        kept: Alerts = []
        current = {(detector.id, c.subject): (detector, c) for detector, c in found}
        for alert in alerts:
            detector = self._rules.detectors.get(alert.detector)
            match = current.pop((alert.detector, alert.subject), None)
            if detector is None or detector.kind == "event" or waits(detector):
                kept.append(alert)
                continue
            survivor = self._hold(alert, *match) if match else self._release(alert, detector)
            if survivor is not None:
                kept.append(survivor)
        for detector, condition in current.values():
            # Info alerts never keep out a critical one.
            may_open = len(kept) < MAX_ALERTS or condition.severity == "critical"
            if detector.kind == "state" and may_open and not waits(detector):
                held = self._hold(self._new_alert(detector, condition), detector, condition)
                kept += [held] if held is not None else []
        kept = fold(kept, self._now)
        self._publish_open(open_one(alerts), open_one(kept), kept)
        return kept

    def _publish_open(
        self, before: TrackedAlert | None, after: TrackedAlert | None, kept: Alerts
    ) -> None:
        """What became of the open one of those that are folded: the old one ends first."""
        is_same = before is not None and after is not None and _label_of(before) == _label_of(after)
        if before is not None and not is_same:
            now = tracked(kept, before.detector, before.subject)
            reason: Reason = "cleared"
            if now is not None and now.firing:
                reason = "folded" if now.folded else "escalated"
            self._publish(before, "resolved", reason)
        if after is not None and not is_same:
            self._publish(after, "firing")
        elif before is not None and after is not None and before.revision != after.revision:
            self._publish(after, "update")

    def raise_events(self, alerts: Alerts, found: Iterable[Found]) -> Alerts:
        """The alerts after one observation. A repeated event updates its evidence."""
        kept = list(alerts)
        for detector, condition in found:
            event = self._new_alert(detector, condition)
            identity = (event.detector, event.subject, event.incident)
            known = [(a.detector, a.subject, a.incident) for a in kept]
            if identity in known:
                index = known.index(identity)
                judgement = _judgement(kept[index], condition)
                known_event = copy.copy(kept[index])
                kept[index] = self._apply(known_event, judgement, condition) or known_event
            else:
                kept.append(self._apply(event, Judgement.DUE, condition) or event)
        events = [alert for alert in kept if alert.is_event]
        for alert in events[: max(0, len(events) - MAX_EVENT_ALERTS)]:
            self._apply(alert, Judgement.EXPIRED)
            kept.remove(alert)
        return kept

    def expire_events(self, alerts: Alerts) -> Alerts:
        """The alerts without the events that have reached their age."""
        limit_ms = self._rules.event_expires_ms
        return self.end(
            alerts, Judgement.EXPIRED, lambda a: a.is_event and a.held_ms(self._now) >= limit_ms
        )

    def acknowledge(self, alerts: Alerts, alert_fingerprint: str) -> Alerts:
        """The alerts without the event of a fingerprint. States cannot be acknowledged."""
        return self.end(
            alerts,
            Judgement.ACKED,
            lambda a: a.is_event and fingerprint(labels_of(a, self._scope)) == alert_fingerprint,
        )

    def end(
        self, alerts: Alerts, judgement: Judgement, ends: Callable[[TrackedAlert], bool]
    ) -> Alerts:
        """The alerts without those that end for a reason other than their condition."""
        kept = []
        for alert in alerts:
            survivor = self._apply(alert, judgement) if ends(alert) else alert
            kept += [survivor] if survivor is not None else []
        return kept

    def _new_alert(self, detector: Detector, condition: Condition) -> TrackedAlert:
        alert = TrackedAlert(
            detector.id,
            condition.subject,
            condition.severity,
            self._now,
            broker=condition.broker,
        )
        if detector.kind == "event":
            assert condition.epochs is not None, detector.id
            cluster, topic, partition, topic_id = self._scope
            place = topic_id or topic or ""
            alert.incident = incident(cluster, place, partition, detector.id, *condition.epochs)
        return alert

    def _hold(
        self, alert: TrackedAlert, detector: Detector, condition: Condition
    ) -> TrackedAlert | None:
        alert = copy.copy(alert)
        alert.held, alert.clean = alert.held + 1, 0
        judgement = Judgement.HELD
        if alert.firing:
            is_other = condition.broker not in (None, alert.broker)
            alert.suspects_other = alert.suspects_other + 1 if is_other else 0
            judgement = _judgement(alert, condition)
            if alert.suspects_other >= self._rules.fire_passes:
                judgement = Judgement.ESCALATED
        else:
            alert.severity = condition.severity
            alert.broker = condition.broker
            long_enough = alert.held_ms(self._now) >= condition.hold_ms
            if long_enough and alert.held >= (detector.fire_passes or self._rules.fire_passes):
                judgement = Judgement.DUE
        return self._apply(alert, judgement, condition)

    def _release(self, alert: TrackedAlert, detector: Detector) -> TrackedAlert | None:
        alert = copy.copy(alert)
        alert.held, alert.clean = 0, alert.clean + 1
        cleared = alert.clean >= (detector.clear_passes or self._rules.clear_passes)
        return self._apply(
            alert, Judgement.CLEARED if alert.firing and cleared else Judgement.ABSENT
        )

    def _apply(
        self, alert: TrackedAlert, judgement: Judgement, condition: Condition | None = None
    ) -> TrackedAlert | None:
        """Takes one step of the table; None when the alert is gone.

        A condition changes the alert: pass one that no other state holds.
        """
        step = TRANSITIONS[Phase.FIRING if alert.firing else Phase.PENDING, judgement]
        # `judge_states` publishes the open one of those that are folded.
        is_public = not alert.folded and (alert.detector not in FOLDED or judgement in ENDS)
        if step.resolved is not None and is_public:
            self._publish(alert, "resolved", step.resolved)
        if condition is not None:
            _describe(alert, condition)
            if judgement is Judgement.ESCALATED:
                alert.broker = alert.broker if condition.broker is None else condition.broker
        if step.state == "firing":
            alert.firing, alert.fired_at = True, self._now
        if step.state is not None and is_public:
            self._publish(alert, step.state)
        return None if step.phase is Phase.GONE else alert

    def _publish(
        self, alert: TrackedAlert, state: AlertState, reason: Reason | None = None
    ) -> None:
        labels = labels_of(alert, self._scope)
        alert_fingerprint = fingerprint(labels)
        self.published.append(
            Alert(
                id=transition_id(alert_fingerprint, self._now, state),
                fingerprint=alert_fingerprint,
                state=state,
                labels=labels,
                annotations=annotations_of(alert, self._rules),
                evidence=alert.evidence,
                starts_at=alert.since,
                ends_at=self._now if state == "resolved" else None,
                reason=reason,
                at=self._now,
            )
        )


def open_alerts(alerts: Alerts, scope: Scope, rules: Rules) -> list[OpenAlert]:
    """The open alerts, as a view contains them."""
    result = []
    for alert in alerts:
        if alert.is_open:
            labels = labels_of(alert, scope)
            alert_fingerprint = fingerprint(labels)
            result.append(
                OpenAlert(
                    id=transition_id(alert_fingerprint, alert.fired_at, "firing"),
                    fingerprint=alert_fingerprint,
                    labels=labels,
                    annotations=annotations_of(alert, rules),
                    evidence=alert.evidence,
                    starts_at=alert.since,
                )
            )
    return result


def labels_of(alert: TrackedAlert, scope: Scope) -> dict[str, str]:
    """The label set that identifies an alert."""
    labels = {
        "kafka_cluster": scope.kafka_cluster,
        "alertname": alert_name(alert.detector),
        "severity": alert.severity,
    }
    if scope.topic is not None:
        labels["topic"] = scope.topic
        labels["partition"] = str(scope.partition)
    if alert.broker is not None:
        labels["broker"] = str(alert.broker)
    if alert.incident is not None:
        labels["incident"] = alert.incident
    return labels


def annotations_of(alert: TrackedAlert, rules: Rules) -> dict[str, str]:
    """Summary and description."""
    return {
        "summary": rules.detectors[alert.detector].summary,
        "description": alert.description,
    }


def _label_of(alert: TrackedAlert) -> tuple[str, int | None, str, int | None]:
    return alert.detector, alert.subject, alert.severity, alert.broker


def _judgement(alert: TrackedAlert, condition: Condition) -> Judgement:
    """What a condition means for an alert that fires."""
    if condition.severity != alert.severity:
        return Judgement.ESCALATED
    return Judgement.REVISED if condition.revision != alert.revision else Judgement.HELD


def _describe(alert: TrackedAlert, condition: Condition) -> None:
    """Takes over what a condition says now."""
    evidence = condition.evidence
    alert.severity, alert.description = condition.severity, condition.description
    alert.evidence = msgspec.to_builtins(evidence) if isinstance(evidence, Struct) else evidence
    alert.revision = condition.revision
