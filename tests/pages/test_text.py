from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.export.make import NOW
from tests.pages.make import HOSTILE, TRICKY, lost_evidence
from tidemark_exporters.pages.evidence_text import (
    MAX_CHARACTERS,
    MAX_FACTS,
    evidence_facts,
    lost_ranges,
    written_between,
)
from tidemark_exporters.pages.text import (
    age,
    broker_list,
    count,
    counted,
    duration,
    iso_time,
    offset,
    page_address,
    utc_time,
    visible,
)


def test_unknown_is_never_a_number() -> None:
    assert {
        count(None),
        offset(None),
        broker_list(None),
        duration(None),
        utc_time(None),
        age(None, NOW),
    } == {"unknown"}
    assert (count(0), offset(0), broker_list([]), duration(0)) == ("0", "0", "none", "0 ms")


@pytest.mark.parametrize(
    ("write", "values", "text"),
    [
        # Counts have separators and keep every digit.
        (counted, (1, "record"), "1 record"),
        (counted, (22_345, "record"), "22,345 records"),
        (count, (2**53 + 1,), "9,007,199,254,740,993"),
        (count, (2.6,), "3"),
        (utc_time, (NOW,), "2027-01-15 08:00:00 UTC"),
        (iso_time, (NOW + 0.5,), "2027-01-15T08:00:00.500Z"),
        (age, (NOW - 3, NOW), "3 s ago"),
        (age, (NOW + 5, NOW), "0 s ago"),
        (age, (NOW - 7_200, NOW), "2 h ago"),
        # Hidden and reordering characters become visible.
        (visible, (TRICKY,), "orders\ufffd/?&#\n%00 {{7*7}}"),
        (visible, ("a\x00b\u200bc\ud800",), "a\ufffdb\ufffdc\ufffd"),
        # Arabic letter mark, soft hyphen, word joiner, inhibited symmetric swapping, annotation
        # anchor, tag letter.
        (
            visible,
            ("a\u061cb\u00adc\u2060d\u206ae\ufff9f\U000e0041",),
            "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffd",
        ),
        (visible, ("naïve 日本 👍",), "naïve 日本 👍"),
    ],
)
def test_values_as_text(write: Callable[..., str], values: tuple[Any, ...], text: str) -> None:
    assert write(*values) == text


@pytest.mark.parametrize("value", [None, 1e300, float("nan"), -1, "2027", [1]])
def test_an_invalid_time_is_unknown(value: Any) -> None:
    assert (utc_time(value), iso_time(value)) == ("unknown", "")


def test_page_addresses_escape_values_and_omit_null() -> None:
    assert page_address("topic", cluster="a&b", topic=TRICKY, page=None) == (
        "topic?cluster=a%26b&topic=orders%E2%80%AE%2F%3F%26%23%0A%2500+%7B%7B7%2A7%7D%7D"
    )
    assert page_address("topics") == "topics"
    assert page_address("topic", topic="\ud800") == "topic?topic=%3F"


def test_lost_ranges_and_when_they_were_written() -> None:
    evidence = lost_evidence()
    assert [(each.text, each.proven) for each in lost_ranges(evidence)] == [
        ("offsets 1000240 to 1000261, 22 records", True),
        ("offsets 1000262 to 1000270, 9 records", False),
    ]
    written = "after 2027-01-15 07:58:50 UTC and by 2027-01-15 07:58:56 UTC"
    assert written_between(evidence) == written
    assert written_between({"written_between": [None, NOW]}) == "by 2027-01-15 08:00:00 UTC"
    assert written_between({"written_between": [None, None]}) is None
    assert lost_ranges({"proven": [5, 6]})[0].text == "offset 5, 1 record"


def test_facts_of_each_form() -> None:
    shown = dict(evidence_facts(lost_evidence()))
    assert shown == shown | {
        "Proven": "[1000240, 1000262): offsets 1000240 to 1000261, 22 records",
        "Lineage": "epoch 7 ends at 1000240, epoch 8 ends at 1000300",
        "Read at": "2027-01-15 07:59:19 UTC, then 2027-01-15 07:59:20 UTC",
        "Log start offset": "unknown",
    }
    more = dict(
        evidence_facts(
            {
                "lag_ms": 2_100,
                "cut_at": 305,
                "inferred": True,
                "before": [1, 2],
                "shrinks": [[NOW, 1, "reassignment"]],
                "suspected_causes": {"x": 2},
            }
        )
    )
    assert more == {
        "Lag": "2.1 s",
        "Cut at": "305",
        "Inferred": "yes",
        "Before": "1, 2",
        "Shrinks": "2027-01-15 08:00:00 UTC · 1 · reassignment",
        "Suspected causes": '{"x":2}',
    }


@pytest.mark.parametrize(
    "value",
    [
        HOSTILE,
        [HOSTILE],
        [[HOSTILE]],
        {"a": {"b": [1e308, None]}},
        [None, "x"],
        [1, [2]],
        1e308,
        -5,
        "x" * 10_000,
        [[1, 2]] * 5_000,
    ],
)
@pytest.mark.parametrize(
    "key", ["proven", "written_between", "read_at", "lag_ms", "lineage_before", "other", ""]
)
def test_any_evidence_is_shown_within_bounds(key: str, value: Any) -> None:
    ((name, text),) = evidence_facts({key: value})
    assert name
    assert len(text) <= MAX_CHARACTERS


def test_facts_beyond_the_maximum_are_counted() -> None:
    shown = evidence_facts({str(number): number for number in range(100)})
    assert len(shown) == MAX_FACTS + 1
    assert shown[-1] == ("…", "36 more")
