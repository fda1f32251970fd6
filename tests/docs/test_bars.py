"""No bar vanishes from docs/performance.md, and its summary counts them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.docs.bars import BARS, Bar, verdicts
from tests.docs.performance import PAGE, bars_text, read_rooms, rows_of

ROWS = rows_of(read_rooms())


@pytest.mark.parametrize("bar", BARS, ids=lambda bar: bar.name)
def test_the_page_has_the_row_with_its_bar(bar: Bar) -> None:
    (found,) = (each for each in verdicts(ROWS) if each.bar == bar)
    assert found.met is not None, found.text


def test_no_bar_is_listed_twice() -> None:
    assert len({bar.name for bar in BARS}) == len(BARS)


def test_the_summary_counts_the_verdicts_of_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    missed = [line.split(" | ")[0].removeprefix("| ") for line in tables if "**missed** |" in line]
    met = sum(bool(re.search(r"\| [<>][^|]* met \|", line)) for line in tables)
    (summary,) = re.findall(r"^(\d+) of (\d+) bars are met\.", text, re.MULTILINE)
    assert tuple(map(int, summary)) == (met, met + len(missed))
    listed = re.search(r"bars are met\. Missed: (.*)\.$", text, re.MULTILINE)
    assert (listed[1].split("; ") if listed else []) == missed


def test_a_missed_bar_of_the_table_is_in_the_summary() -> None:
    text = bars_text(ROWS)
    for each in verdicts(ROWS):
        if each.met is False and "*" not in each.bar.name:
            assert each.bar.name in text


def changed(name: str, **fields: Any) -> list[dict[str, Any]]:
    return [{**row, **fields} if row["name"] == name else row for row in ROWS]


def test_a_row_that_is_gone_or_lost_its_bar_is_found() -> None:
    name = "output: median batch of a few records"

    def of(rows: list[dict[str, Any]]) -> tuple[bool | None, str]:
        (found,) = (each for each in verdicts(rows) if each.bar.name == name)
        return found.met, found.text

    assert of([row for row in ROWS if row["name"] != name]) == (None, "no such row")
    assert of(changed(name, bar=None, met=None, value=0.4)) == (None, "0.4 s: the row has no bar")
    # A bar that became weaker.
    assert of(changed(name, bar="<= 5 s", met=True))[0] is None
    assert of(changed(name, met=False))[0] is False


def test_one_missed_row_of_several_is_a_missed_bar() -> None:
    name = "latency: follower paused, detectable to webhook, KafkaBrokerDown"
    late = {**next(row for row in ROWS if row["name"] == name), "met": False}
    other = {**late, "name": name.replace("BrokerDown", "FollowerLag"), "met": True}
    (found,) = (
        each for each in verdicts([*changed(name, met=False), other]) if "paused" in each.bar.name
    )
    assert found.met is False
