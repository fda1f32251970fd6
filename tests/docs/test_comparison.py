"""docs/comparison.md: it names rows that exist, and its table agrees with how it was measured."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from tests.docs.performance import read_benchmarks, rows_of

PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")


def row(text: str, first: str) -> list[str]:
    """The other cells of the row of a table that begins with a cell."""
    (found,) = re.findall(rf"^\| {re.escape(first)} \|(.*)\|$", text, flags=re.MULTILINE)
    return [cell.strip() for cell in found.split("|")]


def milliseconds(cell: str) -> float:
    found = re.match(r"([\d.,]+) ms", cell)
    assert found is not None, cell
    return float(found[1].replace(",", ""))


def test_the_rows_of_tidemark_are_in_the_measured_figures() -> None:
    (name,) = re.findall(r"rows `(collect: [^`]+)`", PAGE)
    cpu = [
        row["name"]
        for row in rows_of(read_benchmarks())
        if row["name"].startswith(f"{name}, ") and row["unit"] == "µs a replica"
    ]
    assert len(cpu) > 3
    assert any(each.endswith(", published") for each in cpu)


@pytest.mark.parametrize(
    ("place", "name", "column"),
    [(0, "kafka_exporter", 0), (1, "kminion", 0), (3, "jmx_exporter", 2)],
)
def test_the_table_rounds_what_was_measured(place: int, name: str, column: int) -> None:
    measured = PAGE.split("## How the CPU was measured")[1]
    shown = row(PAGE, "CPU for 3,000 replicas, one sweep (run)")[place]
    assert milliseconds(shown) == pytest.approx(milliseconds(row(measured, name)[column]), rel=0.02)
