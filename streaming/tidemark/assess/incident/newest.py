"""Of the steps of a partition, those of its newest incident, and those that matter most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from tidemark.assess.incident.step import NEWEST, Step
from tidemark.core.records import Alert

# What is further apart belongs to two incidents.
PAUSE_SECONDS: Final = 900.0
Span = tuple[float, float]


def newest_span(spans: Sequence[Span]) -> Span:
    """The newest spans that are at most PAUSE_SECONDS apart, as one."""
    by_end = sorted(spans, key=lambda span: span[1], reverse=True)
    start, end = by_end[0]
    for first, last in by_end[1:]:
        if last < start - PAUSE_SECONDS:
            break
        start = min(start, first)
    return start, end


def newest_begin(steps: Sequence[Step]) -> float:
    """When the newest incident begins, with what was seen just before; 0 where there is none.

    `steps` ascend by time.
    """
    spans = [
        (step.at, step.until or step.at)
        for step, weight in zip(steps, weights(steps), strict=True)
        if weight
    ]
    # An event, such as a loss, has no end of its own.
    states = [alert for alert in newest_alerts(steps) if "incident" not in alert.labels]
    spans += [
        (each.starts_at, each.at if each.state == "resolved" else steps[-1].at) for each in states
    ]
    if not spans:
        return 0.0
    start = newest_span(spans)[0]
    return max((s.at for s in steps if start - PAUSE_SECONDS <= s.at < start), default=start)


def newest_alerts(steps: Sequence[Step]) -> list[Alert]:
    """The newest record of each alert, in the order in which they fired."""
    return list({each.fingerprint: each for step in steps for each in step.alerts}.values())


def weights(steps: Sequence[Step]) -> Iterator[int]:
    """How much each step matters: 4 an alert that pages, 0 only lesser or ended alerts."""
    for before, step in pairwise([None, *steps]):
        assert step is not None, "only the first pair has none before"
        fired = {each.labels["severity"] for each in step.alerts if each.state != "resolved"}
        old = step if before is None else before
        if "critical" in fired:
            yield 4
        elif step.cuts or (step.leader, step.leader_epoch) != (old.leader, old.leader_epoch):
            yield 3
        elif "warning" in fired or _silent(step) != (_silent(before) if before else set()):
            yield 2
        else:
            yield int(before is not None and step.changes not in ([], [NEWEST]))


def _silent(step: Step) -> set[int]:
    return {each.broker for each in step.replicas if each.error is not None}
