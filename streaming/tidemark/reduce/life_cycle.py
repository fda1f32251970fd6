"""The life of an alert, for its two classes.

States are recomputed each pass: they fire after some passes in a row and clear after some without. Events fire at once
and stay open until they expire or are acknowledged. A change of severity ends one alert (reason "escalated") and fires
the next with the same start and incident. Identity is the label set; everything that varies stands in annotations.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tidemark.core.identity import alert_name, fingerprint, incident
from tidemark.core.partition import MAX_EVENT_LIVES, MAX_LIVES, Life
from tidemark.core.records import Alert, AlertState, OpenAlert, Reason
from tidemark.detect.detector import Condition, Detector

Found = tuple[Detector, Condition]


class Scope(NamedTuple):
    """What an alert is about: a partition, a broker or (all None) the whole cluster."""

    kafka_cluster: str
    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None


class Rules(NamedTuple):
    """What the life cycle needs of the configuration."""

    fire_passes: int
    clear_passes: int
    event_expires_ms: float
    runbook_url: str
    detectors: dict[str, Detector]


def advance_states(
    lives: list[Life],
    found: Iterable[Found],
    scope: Scope,
    rules: Rules,
    now: float,
    *,
    blind: Callable[[Detector], bool],
) -> tuple[list[Life], list[Alert]]:
    """One pass. Lives of the detectors that are `blind` in it neither grow nor clear."""
    alerts: list[Alert] = []
    kept: list[Life] = []
    current = {
        (detector.id, condition.subject): (detector, condition) for detector, condition in found
    }
    for life in lives:
        detector = rules.detectors.get(life.detector)
        if detector is None or detector.kind == "event" or blind(detector):
            kept.append(life)
            current.pop((life.detector, life.subject), None)
            continue
        match = current.pop((life.detector, life.subject), None)
        survivor = (
            _hold(life, match[1], detector, scope, rules, now, alerts)
            if match
            else _release(life, detector, scope, rules, now, alerts)
        )
        if survivor is not None:
            kept.append(survivor)
    for detector, condition in current.values():
        # A page is not kept out by many a note.
        has_room = len(kept) < MAX_LIVES or condition.severity == "critical"
        if detector.kind == "state" and has_room and not blind(detector):
            born = Life(
                detector.id, condition.subject, condition.severity, now, broker=condition.broker
            )
            held = _hold(born, condition, detector, scope, rules, now, alerts)
            kept.append(held)
    return kept, alerts


def raise_events(
    lives: list[Life], found: Iterable[Found], scope: Scope, rules: Rules, now: float
) -> tuple[list[Life], list[Alert]]:
    """Fires the events of one observation; a repeated one only brings its evidence up to date."""
    alerts: list[Alert] = []
    kept = list(lives)
    for detector, condition in found:
        assert condition.epochs is not None, detector.id
        before, after = condition.epochs
        mark = incident(
            scope.kafka_cluster,
            scope.topic_id or scope.topic or "",
            scope.partition,
            detector.id,
            before,
            after,
        )
        index = next(
            (
                i
                for i, life in enumerate(kept)
                if (life.detector, life.subject, life.incident)
                == (detector.id, condition.subject, mark)
            ),
            None,
        )
        if index is None:
            life = Life(
                detector.id,
                condition.subject,
                condition.severity,
                now,
                broker=condition.broker,
                incident=mark,
            )
            kept.append(_fire(_describe(life, condition), scope, rules, now, alerts))
        else:
            kept[index] = _renew(copy.copy(kept[index]), condition, scope, rules, now, alerts)
    events = [life for life in kept if life.incident is not None]
    for life in events[: max(0, len(events) - MAX_EVENT_LIVES)]:
        kept.remove(life)
        alerts.append(_transition(life, "resolved", scope, rules, now, "expired"))
    return kept, alerts


def expire_events(
    lives: list[Life], scope: Scope, rules: Rules, now: float
) -> tuple[list[Life], list[Alert]]:
    """Ends the events that are older than a day."""
    limit = rules.event_expires_ms / 1000.0
    old = [life for life in lives if life.incident is not None and now - life.since >= limit]
    return [life for life in lives if life not in old], [
        _transition(life, "resolved", scope, rules, now, "expired") for life in old
    ]


def close(
    lives: list[Life],
    chosen: Iterable[Life],
    reason: Reason,
    scope: Scope,
    rules: Rules,
    now: float,
) -> tuple[list[Life], list[Alert]]:
    """Ends lives for a reason of their own (deleted, acked)."""
    ended = list(chosen)
    return [life for life in lives if life not in ended], [
        _transition(life, "resolved", scope, rules, now, reason) for life in ended if life.firing
    ]


def open_alerts(lives: list[Life], scope: Scope, rules: Rules) -> list[OpenAlert]:
    """The firing alerts as they stand inside a view."""
    result = []
    for life in lives:
        if life.firing:
            names = labels_of(life, scope)
            mark = fingerprint(names)
            result.append(
                OpenAlert(
                    id=_id(mark, "firing", life.fired_at),
                    fingerprint=mark,
                    labels=names,
                    annotations=annotations_of(life, rules),
                    evidence=life.evidence,
                    starts_at=life.since,
                )
            )
    return result


def labels_of(life: Life, scope: Scope) -> dict[str, str]:
    """The label set that is an alert's identity."""
    labels = {
        "kafka_cluster": scope.kafka_cluster,
        "alertname": alert_name(life.detector),
        "severity": life.severity,
    }
    if scope.topic is not None:
        labels["topic"] = scope.topic
        labels["partition"] = str(scope.partition)
    if life.broker is not None:
        labels["broker"] = str(life.broker)
    if life.incident is not None:
        labels["incident"] = life.incident
    return labels


def annotations_of(life: Life, rules: Rules) -> dict[str, str]:
    """Summary, description and runbook."""
    return {
        "summary": rules.detectors[life.detector].summary,
        "description": life.description,
        "runbook_url": f"{rules.runbook_url}#{alert_name(life.detector).lower()}",
    }


def _hold(
    life: Life,
    condition: Condition,
    detector: Detector,
    scope: Scope,
    rules: Rules,
    now: float,
    alerts: list[Alert],
) -> Life:
    life = copy.copy(life)
    life.held, life.clean = life.held + 1, 0
    if life.firing:
        return _renew(life, condition, scope, rules, now, alerts)
    life.severity = condition.severity
    if condition.broker is not None:
        life.broker = condition.broker
    _describe(life, condition)
    long_enough = (now - life.since) * 1000.0 >= condition.hold_ms
    if long_enough and life.held >= (detector.fire_passes or rules.fire_passes):
        _fire(life, scope, rules, now, alerts)
    return life


def _release(
    life: Life, detector: Detector, scope: Scope, rules: Rules, now: float, alerts: list[Alert]
) -> Life | None:
    life = copy.copy(life)
    if not life.firing:
        return None
    life.held, life.clean = 0, life.clean + 1
    if life.clean < (detector.clear_passes or rules.clear_passes):
        return life
    alerts.append(_transition(life, "resolved", scope, rules, now, "cleared"))
    return None


def _renew(
    life: Life, condition: Condition, scope: Scope, rules: Rules, now: float, alerts: list[Alert]
) -> Life:
    if condition.severity != life.severity:
        alerts.append(_transition(life, "resolved", scope, rules, now, "escalated"))
        life.severity = condition.severity
        return _fire(_describe(life, condition), scope, rules, now, alerts)
    changed = condition.revision != life.revision
    _describe(life, condition)
    if changed:
        alerts.append(_transition(life, "update", scope, rules, now))
    return life


def _fire(life: Life, scope: Scope, rules: Rules, now: float, alerts: list[Alert]) -> Life:
    life.firing, life.fired_at = True, now
    alerts.append(_transition(life, "firing", scope, rules, now))
    return life


def _describe(life: Life, condition: Condition) -> Life:
    life.description, life.evidence, life.revision = (
        condition.description,
        condition.evidence,
        condition.revision,
    )
    return life


def _transition(
    life: Life,
    state: AlertState,
    scope: Scope,
    rules: Rules,
    now: float,
    reason: Reason | None = None,
) -> Alert:
    labels = labels_of(life, scope)
    mark = fingerprint(labels)
    return Alert(
        id=_id(mark, state, now),
        fingerprint=mark,
        state=state,
        labels=labels,
        annotations=annotations_of(life, rules),
        evidence=life.evidence,
        starts_at=life.since,
        ends_at=now if state == "resolved" else None,
        reason=reason,
        at=now,
    )


def _id(mark: str, state: AlertState, at: float) -> str:
    """The same transition of the same alert has the same id in every run of a batch, for `at` is event time."""
    return f"{mark}.{round(at * 1000):x}.{state}"
