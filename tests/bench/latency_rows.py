"""The rows of two pipelines that watched the same faults. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.bench.row import Row, with_bar
from tests.bench.usual_stack import TEXT, UNDER_REPLICATED
from tests.bench.watched_faults import Outcome
from tidemark.core.identity import alert_name
from tidemark.demo.expected_alerts import ExpectedAlert, allowed_seconds
from tidemark.detect.thresholds import Thresholds

# `collect`'s default up to 2,000 partitions.
PASS_SECONDS: Final = 1.0
TIDEMARK: Final = (
    "collect with a pass each second, Kafka, the stream with a batch each 0.5 s, export, webhook, "
    "all with default settings, warnings and worse"
)
BASIS: Final = "one cluster, both pipelines at once, Kafka's own timeouts"
# Alerts of Tidemark whose condition the probe dates.
DETECTORS: Final = ("FOLLOWER_LAG", "BROKER_DOWN", "HW_STALLED", "OFFLINE")


def latency_rows(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    for fault in dict.fromkeys(outcome.fault for outcome in outcomes):
        yield from _rows_of(fault, [each for each in outcomes if each.fault == fault])


def _rows_of(fault: str, outcomes: list[Outcome]) -> Iterator[Row]:
    several = len(outcomes) > 1
    count = f"the longest of {len(outcomes)}" if several else "one run"
    lowest = f"the lowest of {len(outcomes)}" if several else "one run"
    yield _first_message(
        f"latency: {fault}, Tidemark",
        outcomes,
        [outcome.tidemark for outcome in outcomes],
        f"{count}, from the fault; {BASIS}; {TIDEMARK}",
    )
    yield _first_message(
        f"latency: {fault}, usual stack",
        outcomes,
        [outcome.usual for outcome in outcomes],
        f"{count}, from the fault; {BASIS}; {TEXT}",
    )
    ratios = [_ratio(outcome) for outcome in outcomes if outcome.tidemark and outcome.usual]
    if len(ratios) == len(outcomes):
        yield Row(
            name=f"latency: {fault}, usual stack to Tidemark",
            value=min(ratios),
            unit="times",
            # Of times by the clock, in which both sides ran at once.
            kind="wall",
            how=f"{lowest}, from the fault to the first message; {BASIS}",
        )
    for detector in DETECTORS:
        yield from _from_detectable(fault, outcomes, detector, count)
    seconds = [
        outcome.usual[UNDER_REPLICATED] - outcome.detectable["UNDER_REPLICATED"]
        for outcome in outcomes
        if UNDER_REPLICATED in outcome.usual and "UNDER_REPLICATED" in outcome.detectable
    ]
    if seconds:
        yield Row(
            name=f"latency: {fault}, detectable to webhook, {UNDER_REPLICATED}",
            value=max(seconds),
            unit="s",
            how=f"{count}, from the moment when a leader shows the smaller in-sync set; {TEXT}",
        )


def _first_message(
    name: str, outcomes: Sequence[Outcome], posts: Sequence[Mapping[str, float]], how: str
) -> Row:
    """A fault that is not reported in every run has the time without a message."""
    silent = [each for each, posted in zip(outcomes, posts, strict=True) if not posted]
    if silent:
        held = min(outcome.ended - outcome.began for outcome in silent)
        return Row(name=f"{name}: no message in", value=held, unit="s", kind="wall", how=how)
    seconds = [
        min(posted.values()) - outcome.began
        for outcome, posted in zip(outcomes, posts, strict=True)
    ]
    alerts = sorted({min(posted, key=lambda a, p=posted: p[a]) for posted in posts})  # type: ignore[misc]
    return Row(
        name=f"{name}: first message, {' or '.join(alerts)}",
        value=max(seconds),
        unit="s",
        kind="wall",
        how=how,
    )


def _ratio(outcome: Outcome) -> float:
    first_usual, first = min(outcome.usual.values()), min(outcome.tidemark.values())
    return (first_usual - outcome.began) / (first - outcome.began)


def _from_detectable(
    fault: str, outcomes: Sequence[Outcome], detector: str, count: str
) -> Iterator[Row]:
    alert = alert_name(detector)
    seconds = [
        outcome.tidemark[alert] - outcome.detectable[detector]
        for outcome in outcomes
        if alert in outcome.tidemark and detector in outcome.detectable
    ]
    # The probe knows that a leader is down only when another one leads.
    if not seconds or min(seconds) < 0.0:
        return
    expected = ExpectedAlert("", detector, fault)
    allowed = allowed_seconds(expected, Thresholds(), PASS_SECONDS)
    row = Row(
        name=f"latency: {fault}, detectable to webhook, {alert}",
        value=max(seconds),
        unit="s",
        kind="wall",
        how=f"{count}, from the moment when a probe first saw the condition; bar: 2 passes, 2 s "
        f"and the detector's hysteresis; {TIDEMARK}",
    )
    yield with_bar(row, allowed)
