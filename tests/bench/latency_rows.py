"""The rows of two pipelines that watched the same faults. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

from tests.bench.row import Row, with_target
from tests.bench.usual_stack import TEXT, UNDER_REPLICATED
from tests.bench.watched_faults import Outcome
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS as ALL_DETECTORS
from tidemark.detect.default_thresholds import Thresholds
from tidemark_lab.judge.expected import EXTRA_PASSES, EXTRA_SECONDS, Expected

# `collect`'s default up to 2,000 partitions.
PASS_SECONDS: Final = 1.0
TIDEMARK: Final = (
    "collect with a pass each second, Kafka, the stream with a batch each 0.5 s, export, webhook, "
    "all with default settings, warnings and worse"
)
BASIS: Final = "one cluster, both pipelines at once, Kafka's own timeouts"
# Alerts of Tidemark whose condition the probe dates.
DETECTORS: Final = ("FOLLOWER_LAG", "BROKER_DOWN", "HW_STALLED", "OFFLINE")
DETECTOR_OF: Final = {alert_name(detector): detector for detector in ALL_DETECTORS}
# The target, beside the hysteresis of the detector.
ALLOWED_SECONDS: Final = EXTRA_PASSES * PASS_SECONDS + EXTRA_SECONDS


def latency_rows(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    for fault in dict.fromkeys(outcome.fault for outcome in outcomes):
        yield from _rows_of(fault, [each for each in outcomes if each.fault == fault])
    yield from _pooled(outcomes)


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
        yield from _from_detectable(fault, outcomes, detector, len(outcomes))
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
    fault: str, outcomes: Sequence[Outcome], detector: str, runs: int
) -> Iterator[Row]:
    alert = alert_name(detector)
    found = [
        outcome.tidemark[alert] - outcome.detectable[detector]
        for outcome in outcomes
        if alert in outcome.tidemark and detector in outcome.detectable
    ]
    if not found:
        return
    allowed = Expected(detector, fault).allowed_seconds(Thresholds(), PASS_SECONDS)
    row = Row(
        name=f"latency: {fault}, detectable to webhook, {alert}",
        value=max(0.0, *found),
        unit="s",
        kind="wall",
        how=f"the longest of {len(found)} in {runs} runs, from the moment when a probe first saw "
        f"the condition{_early_text(found)}; target: 2 passes, 2 s and the detector's hysteresis; "
        f"{TIDEMARK}",
    )
    yield with_target(row, allowed)


def _early_text(seconds: Sequence[float]) -> str:
    """The probe knows that a leader is down only when another one leads."""
    early = sum(each < 0.0 for each in seconds)
    return f" ({early} came before that and count as 0)" if early else ""


class FirstMessage(NamedTuple):
    """From the first moment of its condition to Tidemark's first message about a fault.

    `seconds` may be negative. `hysteresis` is what its detector may take besides.
    """

    seconds: float
    hysteresis: float

    @property
    def beyond(self) -> float:
        return max(0.0, self.seconds - self.hysteresis)


def first_message_of(outcome: Outcome) -> FirstMessage:
    """A fault without a message has the time until it ended, and no hysteresis.

    The condition is that of the alert; where the probe does not date it, the first one of any kind,
    and where it saw none, the fault itself.
    """
    earliest = min(outcome.detectable.values(), default=outcome.began)
    if not outcome.tidemark:
        return FirstMessage(outcome.ended - earliest, 0.0)
    alert = min(outcome.tidemark, key=lambda name: outcome.tidemark[name])
    detector, hysteresis = DETECTOR_OF.get(alert), 0.0
    if detector is not None:
        expected = Expected(detector, outcome.fault)
        hysteresis = expected.allowed_seconds(Thresholds(), PASS_SECONDS) - ALLOWED_SECONDS
    began = outcome.detectable.get(detector or "", earliest)
    return FirstMessage(outcome.tidemark[alert] - began, hysteresis)


def _pooled(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """Over all faults of all kinds. None of them is left out."""
    found = [first_message_of(outcome) for outcome in outcomes]
    if not found:
        return
    silent = sum(not outcome.tidemark for outcome in outcomes)
    without = f", {silent} without a message until it ended" if silent else ""
    how = (
        f"{len(found)} faults{without}; from the moment when a probe first saw the condition of "
        f"the alert to the first message{_early_text([each.seconds for each in found])}; {TIDEMARK}"
    )
    seconds = [max(0.0, each.seconds) for each in found]
    for name, value in (("p50", median(seconds)), ("p99", p99(seconds))):
        yield Row(
            name=f"latency: all faults, detectable to first message, {name}",
            value=value,
            unit="s",
            kind="wall",
            how=how,
        )
    row = Row(
        name="latency: all faults, beyond the hysteresis, p99",
        value=p99([each.beyond for each in found]),
        unit="s",
        kind="wall",
        how="the same without the hysteresis of the alert's own detector; target: 2 passes and "
        f"2 s; {how}",
    )
    yield with_target(row, ALLOWED_SECONDS)
    yield Row(
        name="latency: all faults, number",
        value=float(len(found)),
        unit="faults",
        kind="wall",
        how="`LATENCY_ROUNDS=17 python -m tests.bench latency` injects 52",
    )


def p99(values: Sequence[float]) -> float:
    """By nearest rank: the highest one of up to 100 values."""
    return sorted(values)[math.ceil(0.99 * len(values)) - 1]
