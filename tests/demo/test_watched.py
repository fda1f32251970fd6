from __future__ import annotations

import pytest

from tidemark_lab.brokers.receiver import ReceivedAlert
from tidemark_lab.demo.watched import as_received, parse_range

STARTED = "2026-01-01T00:00:00Z"


def test_a_webhooks_alert_has_its_state_and_the_ranges_of_its_annotations() -> None:
    labels = {"alertname": "KafkaX", "severity": "critical"}
    posted = ReceivedAlert(7.0, "firing", labels, {"proven": "5-12"}, STARTED)
    alert, received_at = as_received(posted)
    assert (alert.state, alert.evidence, received_at) == (
        "firing",
        {"proven": (5, 12), "exposed": None},
        7.0,
    )
    ended = as_received(ReceivedAlert(9.0, "resolved", labels, {}, STARTED)).alert
    assert (ended.state, ended.fingerprint) == ("resolved", alert.fingerprint)
    named = as_received(ReceivedAlert(9.0, "resolved", labels, {}, STARTED, "f")).alert
    assert named.fingerprint == "f"


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("5-12", (5, 12)),
        ("0-1", (0, 1)),
        (None, None),
        ("", None),
        ("12", None),
        ("5-", None),
        ("-5", None),
        ("7-7", None),
        ("9-3", None),
        ("a-b", None),
    ],
)
def test_ranges_are_parsed_strictly(text: str | None, bounds: tuple[int, int] | None) -> None:
    assert parse_range(text) == bounds
