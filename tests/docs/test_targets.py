"""No target vanishes from docs/performance.json, and the page's summary counts them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.docs.performance import PAGE, read_benchmarks, rows_of, targets_text
from tests.docs.targets import TARGETS, Target, verdicts

ROWS = rows_of(read_benchmarks())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_page_has_the_row_with_its_target(target: Target) -> None:
    (found,) = (each for each in verdicts(ROWS) if each.target == target)
    assert found.met is not None, found.text


def test_no_target_is_listed_twice() -> None:
    assert len({target.name for target in TARGETS}) == len(TARGETS)


def test_the_summary_counts_the_verdicts_of_all_rows() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missed = {row["name"] for row in ROWS if row["met"] is False}
    met = sum(row["met"] is True for row in ROWS)
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    shown = {line.split(" | ")[0].removeprefix("| ") for line in tables if "**missed** |" in line}
    assert shown <= missed
    (summary,) = re.findall(r"^(\d+) of (\d+) targets are met\.", text, re.MULTILINE)
    assert tuple(map(int, summary)) == (met, met + len(missed))
    listed = re.search(r"targets are met\. Missed: (.*)\.$", text, re.MULTILINE)
    assert set(listed[1].split("; ") if listed else []) == missed


def test_a_missed_target_of_the_table_is_in_the_summary() -> None:
    text = targets_text(ROWS)
    for each in verdicts(ROWS):
        if each.met is False and "*" not in each.target.name:
            assert each.target.name in text


def changed(name: str, **fields: Any) -> list[dict[str, Any]]:
    return [{**row, **fields} if row["name"] == name else row for row in ROWS]


def test_a_row_that_is_gone_or_lost_its_target_is_found() -> None:
    name = "output: median batch of a few records"

    def of(rows: list[dict[str, Any]]) -> tuple[bool | None, str]:
        (found,) = (each for each in verdicts(rows) if each.target.name == name)
        return found.met, found.text

    assert of([row for row in ROWS if row["name"] != name]) == (None, "no such row")
    assert of(changed(name, target=None, met=None, value=0.4)) == (
        None,
        "0.4 s: the row has no target",
    )
    # A target that became weaker.
    assert of(changed(name, target="<= 5 s", met=True))[0] is None
    assert of(changed(name, met=False))[0] is False


def test_one_missed_row_of_several_is_a_missed_target() -> None:
    name = "latency: follower paused, detectable to webhook, KafkaBrokerDown"
    late = {**next(row for row in ROWS if row["name"] == name), "met": False}
    other = {**late, "name": name.replace("BrokerDown", "FollowerLag"), "met": True}
    (found,) = (
        each
        for each in verdicts([*changed(name, met=False), other])
        if "paused" in each.target.name
    )
    assert found.met is False
