"""The newest incident of a partition by its view and its alerts: a time line without the events.

A view keeps when in-sync sets changed and the last answer of each replica; alerts have their begin
and their end. Former leaders and offsets are only in the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec.structs import replace

from tidemark.assess.incident.changes import age, brokers
from tidemark.assess.incident.step import (
    PAUSE_SECONDS,
    KnownHighWatermark,
    KnownReplica,
    Step,
    brief_text,
    is_about,
    newest_span,
)
from tidemark.assess.incident.timeline import by_severity
from tidemark.core.identity import alert_name
from tidemark.core.links import holder_entries
from tidemark.core.records import Alert, ReplicaView, View

# The newest ones; older steps only count.
MAX_STEPS: Final = 100
MAX_HISTORY: Final = 16
GAP: Final = alert_name("COLLECTOR_GAP")


class Incident(NamedTuple):
    """`steps` ascend by time; `start` and `end` are Unix seconds."""

    steps: list[Step]
    # Older steps that are left out.
    omitted: int
    start: float
    end: float
    # An alert is open, the partition is not seen, or the last step is new.
    goes_on: bool
    # Before it, changes of the in-sync set are not kept; None: the view has all of them.
    changes_since: float | None


def newest_incident(view: View, alerts: Iterable[Alert], now: float) -> Incident | None:
    """None: the view has no change and no alert is about the partition.

    `alerts`: open ones and past ones of the cluster, in any order.
    """
    alerts = [alert for alert in alerts if _concerns(alert, view) and alert.starts_at <= now]
    own = [alert for alert in alerts if "topic" in alert.labels]
    points = [(at, text) for at, text in _points(view) if at <= now]
    spans = [(alert.starts_at, _end(alert, now)) for alert in own]
    spans += [(at, at) for at, _ in points]
    missed_since = _last_answer(view, now) if view.missed_passes else None
    if missed_since is not None:
        spans.append((missed_since, now))
    if not spans:
        return None
    start, end = newest_span(spans)
    # A broker that stops is a cause, and its alert is about no partition.
    causes = (a.starts_at for a in alerts if "topic" not in a.labels and a.starts_at <= start)
    start = min([start, *(at for at in causes if at >= start - PAUSE_SECONDS)])
    steps: dict[int, Step] = {}
    for at, text in points:
        if start <= at <= end:
            _step(steps, at).changes.append(text)
    for alert in alerts:
        if missed_since is None or alert.state == "resolved" or not _is_gap(alert):
            _add_alert(steps, alert, start, end, now)
    if missed_since is not None:
        passes = "1 pass" if view.missed_passes == 1 else f"{view.missed_passes} passes"
        _add_gap(steps, missed_since, now, f"{passes} in a row did not see the partition")
    elif view.at >= start:
        _add_newest(steps, view)
    found = [steps[key] for key in sorted(steps)]
    for step in found:
        step.in_sync_replicas = _in_sync_at(view, step.at)
        step.alerts.sort(key=by_severity)
    return Incident(
        steps=found[-MAX_STEPS:],
        omitted=max(0, len(found) - MAX_STEPS),
        start=start,
        end=end,
        goes_on=now - end < PAUSE_SECONDS,
        changes_since=_changes_since(view, start),
    )


def _concerns(alert: Alert, view: View) -> bool:
    """About the partition, about a broker that has a replica of it, or about a gap."""
    if alert.labels.get("kafka_cluster") != view.kafka_cluster:
        return False
    is_gap = _is_gap(alert) and "topic" not in alert.labels
    return is_gap or is_about(alert, view.topic, view.partition, view.assigned)


def _is_gap(alert: Alert) -> bool:
    return alert.labels.get("alertname") == GAP


def _end(alert: Alert, now: float) -> float:
    """An open alert goes on."""
    if alert.state != "resolved":
        return now
    return min(now, max(alert.starts_at, alert.at if alert.ends_at is None else alert.ends_at))


def _points(view: View) -> Iterator[tuple[float, str]]:
    """Changes of the in-sync set, and the last answers of replicas that are silent now."""
    for (_, before), (at, after) in pairwise(view.isr_history):
        yield at, f"ISR {brokers(before)}→{brokers(after)}"
    for replica in view.replicas:
        if replica.error is not None and replica.sampled_at is not None:
            yield replica.sampled_at, _last_words(view, replica)


def _last_words(view: View, replica: ReplicaView) -> str:
    text = f"{replica.broker} answers for the last time before it is silent ({replica.error})"
    if replica.log_end_offset is not None:
        text += f"; its log ended at {replica.log_end_offset}"
    last = view.last_committed
    if last is not None and last.leader == replica.broker:
        epoch = "" if last.leader_epoch is None else f" in epoch {last.leader_epoch}"
        return f"{text}; it led{epoch}, last HW seen: {last.high_watermark}"
    return text if replica.high_watermark is None else f"{text}, HW {replica.high_watermark}"


def _step(steps: dict[int, Step], at: float) -> Step:
    """The step at that millisecond."""
    return steps.setdefault(round(at * 1000), Step(at=at, observed_at=at, changes=[]))


def _add_alert(steps: dict[int, Step], alert: Alert, start: float, end: float, now: float) -> None:
    """Its begin and its end, as far as they are within the incident."""
    if start <= alert.starts_at <= end:
        step = _step(steps, alert.starts_at)
        if "incident" in alert.labels and not any(
            each.get("state") == "cut"
            for each in holder_entries(alert.evidence.get("records_held_by"))
        ):
            step.alerts.append(replace(alert, state="firing", at=alert.starts_at))
        else:
            # The text that is known is of a later time: that of a state changes with it, and that
            # of a loss when a broker comes back and cuts the records.
            step.changes.append(f"{brief_text(replace(alert, state='firing'))} fires")
    ended = _end(alert, now)
    if alert.state == "resolved" and start <= ended <= end:
        _step(steps, ended).alerts.append(replace(alert, at=ended))
    if _is_gap(alert) and alert.starts_at <= end and start <= ended:
        _add_gap(steps, _blind_since(alert), ended, "passes did not see the partition")


def _blind_since(alert: Alert) -> float:
    """The last observation before a gap; where the evidence has none, the begin of the alert."""
    seen = alert.evidence.get("last_seen_at")
    if isinstance(seen, int | float) and 0 <= alert.starts_at - seen <= PAUSE_SECONDS:
        return float(seen)
    return alert.starts_at


def _add_gap(steps: dict[int, Step], start: float, end: float, why: str) -> None:
    """A window in which nothing was seen."""
    step = _step(steps, start)
    step.until = max(end, step.until or 0.0)
    step.changes.append(f"nothing was seen for {age(end - start)}: {why}")


def _add_newest(steps: dict[int, Step], view: View) -> None:
    """What the newest view says of leader, offsets and replicas."""
    epoch = "" if view.leader_epoch is None else f" in epoch {view.leader_epoch}"
    if view.leader is not None:
        text = f"{view.leader} leads{epoch}"
    else:
        text = f"no leader{epoch}" if view.leaderless else "no broker that answers names a leader"
    step = _step(steps, view.at)
    step.changes.append(f"the newest view: {text}{_offsets(view)}")
    step.leader, step.leader_epoch = view.leader, view.leader_epoch
    step.eligible_leader_replicas = view.eligible_leader_replicas
    if view.leader is not None and view.high_watermark is not None:
        step.high_watermark = KnownHighWatermark(
            view.high_watermark, view.leader, view.leader_epoch, view.at
        )
    step.replicas = [
        KnownReplica(
            broker=each.broker,
            at=each.sampled_at,
            log_end_offset=each.log_end_offset,
            high_watermark=each.high_watermark,
            lineage=each.lineage,
            error=each.error,
        )
        for each in view.replicas
    ]


def _offsets(view: View) -> str:
    known = {"HW": view.high_watermark, "log end": view.log_end_offset}
    found = [f"{name} {value}" for name, value in known.items() if value is not None]
    return f"; {', '.join(found)}" if found else ""


def _in_sync_at(view: View, at: float) -> list[int] | None:
    """The in-sync set at that time as far as the view has it; None: unknown."""
    known = [members for since, members in view.isr_history if since <= at]
    return known[-1] if known else None


def _changes_since(view: View, start: float) -> float | None:
    """Where the kept changes begin, if the incident may have earlier ones."""
    history = view.isr_history
    if len(history) < MAX_HISTORY or history[0][0] < start - PAUSE_SECONDS:
        return None
    return history[0][0]


def _last_answer(view: View, now: float) -> float | None:
    """When a replica was sampled last, at most `now`."""
    sampled = [each.sampled_at for each in view.replicas if each.sampled_at is not None]
    return min(now, max(sampled)) if sampled else None
