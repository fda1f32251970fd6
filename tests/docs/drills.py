"""Writes the tables of docs/drills.md: `python -m tests.docs.drills [RESULTS.json…]`.

Results are those of `tidemark drill … --json`. They replace the rows of the same drill and version
in tests/testdata/drills.json, which the tables show. `--check` only compares.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

from tests.conftest import ROOT
from tidemark.drill.drills.table import DRILLS, NOT_PLAYED

PAGE: Final = ROOT / "docs" / "drills.md"
ROWS: Final = ROOT / "tests" / "testdata" / "drills.json"
BLOCK: Final = re.compile(r"(<!-- (drills|delays|stories) -->\n).*?(?=<!-- end -->)", re.DOTALL)
_KEPT: Final = (
    *("verdict", "seconds", "acknowledged_records", "lost_records", "proven_records"),
    *("shortfall_records", "shortfall_ms"),
)
_CHECK: Final = ("name", "verdict", "seconds_from_fault", "seconds_from_detectable")


def read_rows() -> dict[str, dict[str, Any]]:
    """ "drill version" -> its newest result."""
    found: dict[str, dict[str, Any]] = json.loads(ROWS.read_text(encoding="utf-8"))
    return found


def merge(rows: dict[str, dict[str, Any]], documents: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The rows with the results of these documents, in the order of the drills."""
    for document in documents:
        for result in document["drills"]:
            rows[f"{result['name']} {result['kafka_version']}"] = {
                **{key: result[key] for key in _KEPT},
                "checks": [
                    {key: check[key] for key in (*_CHECK, "allowed_seconds")}
                    for check in result["checks"]
                ],
            }
    order = [f"{drill.name} {version}" for drill in DRILLS.values() for version in drill.versions]
    return {key: rows[key] for key in order if key in rows}


def drills_table(rows: dict[str, dict[str, Any]]) -> str:
    lines: list[tuple[str, ...]] = [
        ("Drill", "Shows", "Kafka", "Verdict", "Alerts", "Slowest", "Lost", "Proven", "Shortfall"),
        ("---", "---", "---", "---", "--:", "--:", "--:", "--:", "--:"),
    ]
    for drill in DRILLS.values():
        for version in drill.versions:
            row = rows.get(f"{drill.name} {version}")
            if row is not None:
                lines.append((f"`{drill.name}`", drill.shows, version, *_cells(row)))
    return _markdown(lines)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    fired = [c for c in row["checks"] if c["seconds_from_fault"] is not None]
    delays = [c["seconds_from_detectable"] for c in fired]
    dated = [delay for delay in delays if delay is not None]
    short = row["shortfall_records"]
    return (
        row["verdict"],
        str(len(fired)),
        f"{max(dated):.1f} s" if dated else "",
        f"{row['lost_records']:,}",
        f"{row['proven_records']:,}",
        "" if short is None else f"{short:,}, {row['shortfall_ms']:.0f} ms",
    )


def delays_table(rows: dict[str, dict[str, Any]]) -> str:
    """From the moment that the probe saw a condition to the alert, over all drills."""
    delays: dict[str, list[float]] = defaultdict(list)
    allowed: dict[str, float] = {}
    for row in rows.values():
        for check in row["checks"]:
            if check["seconds_from_detectable"] is not None:
                name = check["name"].split(" ")[0]
                delays[name].append(check["seconds_from_detectable"])
                allowed[name] = check["allowed_seconds"]
    lines: list[tuple[str, ...]] = [
        ("Alert", "Alerts", "p50", "p99", "Allowed"),
        ("---", "--:", "--:", "--:", "--:"),
    ]
    for name, found in sorted(delays.items()):
        p50, p99 = (f"{_quantile(found, share):.1f} s" for share in (50, 99))
        lines.append((f"`{name}`", str(len(found)), p50, p99, f"{allowed[name]:.0f} s"))
    every = [delay for found in delays.values() for delay in found]
    if every:
        p50, p99 = (f"{_quantile(every, share):.1f} s" for share in (50, 99))
        lines.append(("all", str(len(every)), p50, p99, ""))
    return _markdown(lines)


def _quantile(values: Sequence[float], percent: int) -> float:
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def stories_table(_rows: dict[str, dict[str, Any]]) -> str:
    lines = [("Story", "Why it has no drill"), ("---", "---")]
    lines += [(f"`{name}`", f"{why[0].upper()}{why[1:]}.") for name, why in NOT_PLAYED.items()]
    return _markdown(lines)


def _markdown(lines: Sequence[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


TABLES: Final = {"drills": drills_table, "delays": delays_table, "stories": stories_table}


def page() -> str:
    """The page with its tables."""
    rows = read_rows()
    return BLOCK.sub(
        lambda found: found[1] + TABLES[found[2]](rows), PAGE.read_text(encoding="utf-8")
    )


def main(arguments: Sequence[str]) -> int:
    if "--check" in arguments:
        return int(page() != PAGE.read_text(encoding="utf-8"))
    documents = [json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments]
    rows = merge(read_rows() if ROWS.exists() else {}, documents)
    ROWS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
