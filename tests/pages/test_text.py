from __future__ import annotations

from typing import Any

import pytest

from tests.export.make import NOW
from tests.pages.make import HOSTILE, TRICKY, lost_evidence
from tidemark_exporters.pages.text import (
    MAX_CHARACTERS,
    MAX_FACTS,
    address,
    age,
    count,
    duration,
    facts,
    lost_ranges,
    members,
    moment,
    offset,
    visible,
    web_address,
    written_between,
)


def test_unknown_is_a_word_and_never_a_number() -> None:
    assert {
        count(None),
        offset(None),
        members(None),
        duration(None),
        moment(None),
        age(None, NOW),
    } == {"unknown"}
    assert (count(0), offset(0), members([]), duration(0)) == ("0", "0", "none", "0 ms")


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (350, "350 ms"),
        (2_340, "2.3 s"),
        (60_000, "1 min"),
        (245_000, "4 min 5 s"),
        (11_400_000, "3 h 10 min"),
        (187_200_000, "2 d 4 h"),
        (1e300, "1157407 d 9 h"),
    ],
)
def test_durations(milliseconds: float, words: str) -> None:
    assert duration(milliseconds) == words


def test_large_whole_numbers_keep_every_digit() -> None:
    assert count(2**53 + 1) == "9,007,199,254,740,993"
    assert count(2.6) == "3"


def test_times() -> None:
    assert moment(NOW) == "2027-01-15 08:00:00 UTC"
    assert moment(1e300) == moment(float("nan")) == "unknown"
    assert age(NOW - 3, NOW) == "3 s ago"
    assert age(NOW + 5, NOW) == "0 s ago"
    assert age(NOW - 7_200, NOW) == "2 h ago"


def test_addresses_carry_anything_and_leave_out_what_is_not_given() -> None:
    assert address("topic", cluster="a&b", topic=TRICKY, page=None) == (
        "topic?cluster=a%26b&topic=orders%E2%80%AE%2F%3F%26%23%0A%2500+%7B%7B7%2A7%7D%7D"
    )
    assert address("topics") == "topics"
    assert address("topic", topic="\ud800") == "topic?topic=%3F"


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("https://example.org/alerts.md#kafkaoffline", True),
        ("http://127.0.0.1:8000/x", True),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt://example.org/%0aalert(1)", False),
        ("data:text/html,x", False),
        ("//example.org", False),
        ("https://", False),
        ("https://exa mple.org", False),
        ("https://[::1", False),
        ("", False),
    ],
)
def test_only_web_addresses_become_links(text: str, may: bool) -> None:
    assert (web_address(text) is not None) is may


def test_the_proven_ranges_and_their_times_are_readable() -> None:
    evidence = lost_evidence()
    proven, exposed = lost_ranges(evidence)
    assert (proven.words, proven.proven) == ("offsets 1000240 to 1000261, 22 records", True)
    assert (exposed.words, exposed.proven) == ("offsets 1000262 to 1000270, 9 records", False)
    assert (
        written_between(evidence) == "after 2027-01-15 07:58:50 UTC and by 2027-01-15 07:58:56 UTC"
    )
    assert written_between({"written_between": [None, NOW]}) == "by 2027-01-15 08:00:00 UTC"
    assert written_between({"written_between": [None, None]}) is None
    assert lost_ranges({"proven": [5, 6]})[0].words == "offset 5, 1 record"


def test_evidence_becomes_words() -> None:
    shown = dict(facts(lost_evidence()))
    assert shown["Proven"] == "[1000240, 1000262): offsets 1000240 to 1000261, 22 records"
    assert shown["Lineage"] == "epoch 7 ends at 1000240, epoch 8 ends at 1000300"
    assert shown["Read at"] == "2027-01-15 07:59:19 UTC, then 2027-01-15 07:59:20 UTC"
    assert shown["Log start offset"] == "unknown"
    more = dict(
        facts(
            {
                "lag_ms": 2_100,
                "inferred": True,
                "before": [1, 2],
                "shrinks": [[NOW, 1, "reassignment"]],
                "suspected_causes": {"x": 2},
            }
        )
    )
    assert more == {
        "Lag": "2.1 s",
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
def test_evidence_of_any_form_is_shown_within_bounds(key: str, value: Any) -> None:
    ((name, words),) = facts({key: value})
    assert name
    assert len(words) <= MAX_CHARACTERS


def test_many_facts_are_cut_and_say_so() -> None:
    shown = facts({str(number): number for number in range(100)})
    assert len(shown) == MAX_FACTS + 1
    assert shown[-1] == ("…", "36 more")


def test_what_hides_or_turns_text_round_is_made_visible() -> None:
    assert visible(TRICKY) == "orders\ufffd/?&#\n%00 {{7*7}}"
    assert visible("a\x00b\u200bc\ud800") == "a\ufffdb\ufffdc\ufffd"
    # Arabic letter mark, soft hyphen, word joiner, inhibited symmetric swapping, annotation anchor, tag letter.
    assert (
        visible("a\u061cb\u00adc\u2060d\u206ae\ufff9f\U000e0041")
        == "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffd"
    )
    assert visible("naïve 日本 👍") == "naïve 日本 👍"
