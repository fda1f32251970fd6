"""Panels of the Brokers dashboard: what the death of a broker would cost, and who leaves next."""

from __future__ import annotations

from dashboards.panels import SECONDS, AnyPanel, lines, queries
from dashboards.promql import FEW, chosen, largest, smallest

BROKER = "{{kafka_cluster}} broker {{broker}}"
# Where a kind follows, so that two names fit a line.
SHORT = "{{kafka_cluster}} {{broker}}"


def _of(metric: str) -> str:
    return chosen(metric, broker="=~$broker")


def risks() -> list[AnyPanel]:
    """A row: records at risk, their age, and the countdown of the in-sync sets."""
    return [
        lines(
            21,
            "Records at risk",
            "Records that would be lost, or unavailable, if the broker died now: committed, or "
            f"uncommitted, which only producers with acks=1 take for written. {FEW}",
            queries((largest(_of("tidemark_broker_records_at_risk")), f"{SHORT}, {{{{kind}}}}")),
            unit="short",
            dashed="uncommitted",
        ),
        lines(
            22,
            "Age of the records at risk",
            "Age of the oldest record that would be lost, or unavailable, if the broker died now. "
            f"A lower bound. {FEW}",
            queries((largest(_of("tidemark_broker_records_at_risk_age_seconds_max")), BROKER)),
            unit=SECONDS,
        ),
        lines(
            23,
            "Time until a replica leaves an in-sync set",
            "Estimated time, at the earliest, until the first lagging replica of the broker leaves "
            f"an in-sync set. {FEW}",
            queries((smallest(_of("tidemark_broker_isr_removal_seconds_min")), BROKER)),
            unit=SECONDS,
            absent="none lags, or unknown: no right to describe the brokers' configurations",
        ),
    ]
