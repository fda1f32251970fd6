"""Writes the tables of docs/drills.md: `python -m tests.docs.drills [RESULTS.json…]`.

Results are those of `tidemark drill … --json`. They replace the rows of the same drill and version
in tests/testdata/drills.json, which the tables show. `--check` only compares.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

import yaml

from tests.conftest import ROOT
from tests.docs.kafka_links import source_url
from tidemark_lab.brokers.versions import VERSIONS
from tidemark_lab.drills.drill import Drill
from tidemark_lab.drills.schedules.table import DRILLS, NOT_PLAYED
from tidemark_lab.judge import verdict
from tidemark_lab.judge.claims import REASONS
from tidemark_lab.judge.report import quantile

PAGE: Final = ROOT / "docs" / "drills.md"
ROWS: Final = ROOT / "tests" / "testdata" / "drills.json"
MECHANISMS: Final = ROOT / "tests" / "testdata" / "mechanisms.yaml"
BLOCK: Final = re.compile(
    r"(<!-- (drills|delays|losses|mechanisms|stories) -->\n).*?(?=<!-- end -->)", re.DOTALL
)
# What notes a check under the name that it is given first.
_CHECKING: Final = frozenset({"show", "values", "_check", "Check"})
_KEPT: Final = (
    *("verdict", "seconds", "acknowledged_records", "lost_records", "proven_records"),
    *("shortfall_records", "shortfall_ms", "not_proven"),
)
_CHECK: Final = (
    *("name", "verdict", "seconds_from_fault", "seconds_from_detectable"),
    *("seconds_to_webhook", "seconds_from_leader", "in_update", "allowed_seconds"),
)


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
                "faults": len(result["faults"]),
                "checks": [{key: check[key] for key in _CHECK} for check in result["checks"]],
            }
    return {key: rows[key] for drill in DRILLS.values() for _, key in keys_of(drill, rows)}


def keys_of(drill: Drill, rows: Mapping[str, object]) -> list[tuple[str, str]]:
    """Each version on which the drill ran, the newest first, and the key of its row."""
    keys = [(version, f"{drill.name} {version}") for version in reversed(VERSIONS)]
    return [(version, key) for version, key in keys if key in rows]


def drills_table(rows: dict[str, dict[str, Any]]) -> str:
    lines: list[tuple[str, ...]] = [
        ("Drill", "Shows", "Kafka", "Verdict", "Alerts", "Slowest", "Lost", "Proven", "Shortfall"),
        ("---", "---", "---", "---", "--:", "--:", "--:", "--:", "--:"),
    ]
    for drill in DRILLS.values():
        for version, key in keys_of(drill, rows):
            lines.append((f"`{drill.name}`", drill.shows, version, *_cells(rows[key])))
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
    """From the moment when the probe saw a condition to the alert, and to the webhook."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.values():
        for check in row["checks"]:
            if check["seconds_from_detectable"] is not None:
                found[check["name"].split(" ")[0]].append(check)
    lines: list[tuple[str, ...]] = [
        (
            *("Alert", "Alerts", "To the alert", "To the webhook", "From the new leader"),
            *("Later", "Allowed"),
        ),
        ("---", "--:", "--:", "--:", "--:", "--:", "--:"),
    ]
    for name, checks in sorted(found.items()):
        allowed = f"{max(check['allowed_seconds'] for check in checks):.0f} s"
        lines.append((f"`{name}`", *_delays(checks), allowed))
    every = [check for checks in found.values() for check in checks]
    lines.append(("all", *_delays(every), ""))
    return _markdown(lines)


def _delays(checks: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    followed = [check for check in checks if "seconds_to_webhook" in check]
    posted = [
        check
        for check in followed
        if check["seconds_to_webhook"] is not None and not check["in_update"]
    ]
    return (
        str(len(checks)),
        _percentiles([check["seconds_from_detectable"] for check in checks]),
        _percentiles([check["seconds_to_webhook"] for check in posted]),
        _percentiles([check["seconds_from_leader"] for check in posted]),
        str(len(followed) - len(posted)),
    )


def _percentiles(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    p50, p99 = quantile(known, 50), quantile(known, 99)
    return "" if p50 is None else f"{p50:.1f} s, {p99:.1f} s"


def losses_table(rows: dict[str, dict[str, Any]]) -> str:
    """The sums over all runs."""
    reasons: Counter[str] = Counter()
    counted = [row for row in rows.values() if "not_proven" in row]
    for row in counted:
        reasons.update(row["not_proven"])
    lost = sum(row["lost_records"] for row in counted)
    counts = (
        ("runs", len(counted)),
        ("faults", sum(row["faults"] for row in counted)),
        ("acknowledged records", sum(row["acknowledged_records"] for row in counted)),
        ("lost records", lost),
        ("of them in a proven range", lost - reasons.total()),
        *((f"of them not proven: {reason}", reasons[reason]) for reason in REASONS),
    )
    lines = [("Over all runs", "Number"), ("---", "--:")]
    return _markdown([*lines, *((name, f"{count:,}") for name, count in counts)])


def read_mechanisms() -> list[dict[str, str | None]]:
    found: list[dict[str, str | None]] = yaml.safe_load(MECHANISMS.read_text(encoding="utf-8"))
    return found


def checks_of(drill: Drill) -> Counter[str]:
    """The names of all that a run of the drill checks: each fails the drill where it does not hold.

    Its alerts, what its steps compare or wait for, and what is compared in every drill; each with
    the number of its calls, but for the last. Calls that no step of this drill reaches are none.
    """
    names = Counter(step.text for step in drill.steps)
    names.update(e.alert + (f" of broker {e.broker}" if e.broker else "") for e in drill.expected)
    names.update(set(_checked(inspect.getsource(verdict))))
    for function in _reached([step.act for step in drill.steps]):
        names.update(_checked(textwrap.dedent(inspect.getsource(function))))
    return names


def _checked(source: str) -> Iterator[str]:
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant):
            called = getattr(call.func, "attr", getattr(call.func, "id", ""))
            yield from [str(call.args[0].value)] if called in _CHECKING else []


def _reached(begun: Sequence[Any]) -> Iterator[FunctionType]:
    """The functions of the laboratory that these may call, by the names in their code."""
    seen, left = set[Any](), list(begun)
    while left:
        each = left.pop()
        each = getattr(each, "fget", getattr(each, "func", getattr(each, "__func__", each)))
        module = getattr(each, "__module__", None) or ""
        if not module.startswith("tidemark_lab.") or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, type):
            left += vars(each).values()
        elif isinstance(each, FunctionType):
            left += [cell.cell_contents for cell in each.__closure__ or ()]
            codes = [each.__code__]
            for code in codes:
                codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
                left += [each.__globals__.get(name) for name in code.co_names]
            # A lambda checks nothing; a generated function is in no file of its module.
            is_written = each.__code__.co_filename == sys.modules[module].__file__
            if is_written and each.__name__ != "<lambda>":
                yield each


def mechanisms_table(_rows: dict[str, dict[str, Any]]) -> str:
    found = read_mechanisms()
    shown = sum(each["drill"] is not None for each in found)
    lines = [("Mechanism", "Drill", "Check"), ("---", "---", "---")]
    for each in found:
        source = each.get("source")
        why = str(each.get("why")) + (f" [`{source}`]({source_url(source)})" if source else "")
        cells = (f"`{each['drill']}`", str(each["check"])) if each["drill"] else ("–", why)
        lines.append((str(each["mechanism"]), *cells))
    count = f"{len(found)} mechanisms: drills show {shown}, {len(found) - shown} have none.\n\n"
    return count + _markdown(lines)


def stories_table(_rows: dict[str, dict[str, Any]]) -> str:
    lines = [("Story", "Why it has no drill"), ("---", "---")]
    lines += [(f"`{name}`", f"{why[0].upper()}{why[1:]}.") for name, why in NOT_PLAYED.items()]
    return _markdown(lines)


def _markdown(lines: Sequence[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


TABLES: Final = {
    "drills": drills_table,
    "delays": delays_table,
    "losses": losses_table,
    "mechanisms": mechanisms_table,
    "stories": stories_table,
}


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
