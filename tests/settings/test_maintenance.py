"""When a maintenance window is open, in local time of its time zone, and which alerts it mutes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.settings.load import load
from tidemark.settings import Maintenance, read_schedule


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def window(**changes: Any) -> Maintenance:
    return Maintenance(
        **{"name": "work", "start": "2026-11-21 22:00", "end": "2026-11-22 02:00", **changes}
    )


SATURDAYS = {"start": "22:00", "end": "02:00", "days": ["saturday"]}
WITHIN_A_DAY = {"start": "08:00", "end": "09:30", "days": ["monday", "tuesday"]}
BERLIN = {**SATURDAYS, "time_zone": "Europe/Berlin"}
# An explicit offset wins over the zone.
OFFSET = {
    "start": "2026-11-21T22:00:00+05:30",
    "end": "2026-11-22T02:00:00+05:30",
    "time_zone": "Europe/Berlin",
}


@pytest.mark.parametrize(
    ("changes", "moment", "end"),
    [
        ({}, "2026-11-21 21:59:59", None),
        ({}, "2026-11-21 22:00:00", "2026-11-22 02:00"),
        ({}, "2026-11-22 01:59:59", "2026-11-22 02:00"),
        ({}, "2026-11-22 02:00:00", None),
        ({}, "2026-11-28 23:00:00", None),
        # 21 November 2026 is a Saturday.
        (SATURDAYS, "2026-11-20 23:00", None),
        (SATURDAYS, "2026-11-21 22:00", "2026-11-22 02:00"),
        (SATURDAYS, "2026-11-22 01:59", "2026-11-22 02:00"),
        (SATURDAYS, "2026-11-22 02:00", None),
        (SATURDAYS, "2026-11-22 23:00", None),
        (SATURDAYS, "2026-11-28 23:00", "2026-11-29 02:00"),
        (WITHIN_A_DAY, "2026-11-23 08:00", "2026-11-23 09:30"),
        (WITHIN_A_DAY, "2026-11-23 09:30", None),
        (WITHIN_A_DAY, "2026-11-25 08:30", None),
        # In winter and in summer.
        (BERLIN, "2026-11-21 21:00", "2026-11-22 01:00"),
        (BERLIN, "2026-07-04 20:00", "2026-07-05 00:00"),
        # The clocks go back at 03:00 on 25 October 2026: the window still ends at 02:00.
        (BERLIN, "2026-10-24 20:00", "2026-10-25 00:00"),
        (OFFSET, "2026-11-21 16:29", None),
        (OFFSET, "2026-11-21 16:30", "2026-11-21 20:30"),
    ],
)
def test_until_when_a_window_is_open(changes: dict[str, Any], moment: str, end: str | None) -> None:
    expected = None if end is None else at(end)
    assert read_schedule(window(**changes)).open_until(at(moment)) == expected


@pytest.mark.parametrize(
    ("start", "end", "days"),
    [
        ("22:00", "2:00", "[saturday]"),
        ('"22:00"', '"02:00"', "[saturday]"),
        ("2026-11-21 22:00:00", "2026-11-22T02:00:00Z", "[]"),
        ("2026-11-21T22:00:00+00:00", "2026-11-22 02:00", "[]"),
    ],
)
def test_times_need_no_quotes_in_yaml(start: str, end: str, days: str, tmp_path: Path) -> None:
    text = (
        "notify:\n  maintenance:\n    - name: work\n"
        f"      days: {days}\n      start: {start}\n      end: {end}\n"
    )
    (found,) = load(text, tmp_path).notify.maintenance
    assert read_schedule(found).open_until(at("2026-11-21 23:00")) == at("2026-11-22 02:00")


@pytest.mark.parametrize(
    ("matchers", "matches"),
    [
        ({}, True),
        (
            {
                "clusters": ["east"],
                "topics": ["orders", "x"],
                "brokers": ["2"],
                "alerts": ["Kafka.*"],
            },
            True,
        ),
        ({"clusters": ["eas"]}, False),
        ({"topics": ["order"]}, False),
        ({"brokers": ["1", "3"]}, False),
        ({"alerts": ["KafkaOffline"]}, False),
        ({"alerts": []}, False),
    ],
)
def test_all_matchers_must_match_whole_labels(
    matchers: dict[str, list[str]], matches: bool
) -> None:
    labels = {
        "kafka_cluster": "east",
        "topic": "orders",
        "broker": "2",
        "alertname": "KafkaFollowerLag",
    }
    assert window(**matchers).matches(labels) is matches


def test_an_absent_label_matches_as_empty_text() -> None:
    assert window().matches({"alertname": "TidemarkStreamStalled"})
    assert not window(topics=["orders"]).matches({"alertname": "KafkaFollowerLag"})
