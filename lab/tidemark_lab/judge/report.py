"""Results as a table, JSON and JUnit, and what they come to together. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from tidemark.core.text import counted, table
from tidemark_lab.judge.verdict import Result

_HEAD = ("DRILL", "KAFKA", "VERDICT", "SECONDS", "ALERTS", "SLOWEST", "LOST", "PROVEN")


def as_table(results: Sequence[Result]) -> list[str]:
    """A line for each drill, then every finding."""
    rows = [_row(result) for result in results]
    lines = table([_HEAD, *rows], right=(3, 4, 5, 6, 7))
    for result in results:
        lines += [f"{result.name} on {result.version}: {text}" for text in result.findings]
    counts = {
        verdict: sum(result.verdict == verdict for result in results)
        for verdict in ("PASSED", "FAILED", "UNKNOWN")
    }
    lines.append(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return [*lines, *as_lines(results)]


def document(results: Sequence[Result]) -> dict[str, Any]:
    """The JSON form. Times are Unix seconds; a field that is not known is null."""
    return {"drills": [_document(result) for result in results], "totals": totals(results)}


def junit(results: Sequence[Result]) -> bytes:
    """A JUnit document: a test suite for each drill and version, a test case for each check."""
    root = ET.Element("testsuites", name="tidemark drill")
    for result in results:
        name = f"{result.name} on Kafka {result.version}"
        suite = ET.SubElement(root, "testsuite", name=name, time=f"{result.seconds:.1f}")
        counts = {"tests": 0, "failures": 0, "errors": 0}
        for check in result.checks:
            case = ET.SubElement(suite, "testcase", classname=name, name=check.name)
            counts["tests"] += 1
            if check.verdict == "FAILED":
                counts["failures"] += 1
                ET.SubElement(case, "failure", message=_printable(check.text))
            elif check.verdict == "UNKNOWN":
                ET.SubElement(case, "skipped", message=_printable(check.text))
        if result.error is not None:
            counts["tests"] += 1
            counts["errors"] += 1
            case = ET.SubElement(suite, "testcase", classname=name, name="run")
            ET.SubElement(case, "error", message=_printable(result.error))
        suite.attrib.update({key: str(count) for key, count in counts.items()})
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


def exit_code(results: Sequence[Result]) -> int:
    """3: a check failed. 1: one could not be made. 0: all passed."""
    verdicts = {result.verdict for result in results}
    return 3 if "FAILED" in verdicts else 1 if "UNKNOWN" in verdicts else 0


def _row(result: Result) -> list[str]:
    times = [c.seconds_from_fault for c in result.checks if c.seconds_from_fault is not None]
    slowest = [
        c.seconds_from_detectable for c in result.checks if c.seconds_from_detectable is not None
    ]
    return [
        result.name,
        result.version,
        result.verdict,
        f"{result.seconds:.0f}",
        str(len(times)),
        f"{max(slowest):.1f} s" if slowest else "-",
        str(result.lost),
        str(result.proven),
    ]


def _document(result: Result) -> dict[str, Any]:
    return {
        "name": result.name,
        "kafka_version": result.version,
        "verdict": result.verdict,
        "seconds": round(result.seconds, 1),
        "error": result.error,
        "faults": [mark._asdict() for mark in result.marks],
        "acknowledged_records": result.acknowledged,
        "lost_records": result.lost,
        "proven_records": result.proven,
        "not_proven": dict(result.unproven),
        "shortfall_records": result.shortfall_records,
        "shortfall_ms": _rounded(result.shortfall_ms, 0),
        "checks": [
            {
                "name": check.name,
                "verdict": check.verdict,
                "text": check.text,
                "seconds_from_fault": _rounded(check.seconds_from_fault),
                "seconds_from_detectable": _rounded(check.seconds_from_detectable),
                "seconds_to_webhook": _rounded(check.seconds_to_webhook),
                "seconds_from_leader": _rounded(check.seconds_from_leader),
                "in_update": check.in_update,
                "allowed_seconds": check.allowed_seconds,
            }
            for check in result.checks
        ],
    }


def _rounded(value: float | None, digits: int = 2) -> float | None:
    return None if value is None else round(value, digits)


def _printable(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


class Delays(NamedTuple):
    """Of one alert: seconds from the moment when a client could see its condition to the webhook.

    `from_leader`: from the first answer of the new leader, of an unclean election and a loss.
    `updates`: those that went with an update of a cause that was notified before; they wait for
    others by design, and are in neither list.
    """

    to_webhook: Sequence[float]
    from_leader: Sequence[float]
    updates: int
    allowed: float


def delays(results: Iterable[Result]) -> dict[str, Delays]:
    """By name of the alert."""
    posted: dict[str, list[float]] = defaultdict(list)
    served: dict[str, list[float]] = defaultdict(list)
    updates: Counter[str] = Counter()
    allowed: dict[str, float] = {}
    for result in results:
        for check in result.checks:
            name = check.name.split(" ")[0]
            if check.allowed_seconds is None or check.seconds_to_webhook is None:
                continue
            allowed[name] = max(allowed.get(name, 0.0), check.allowed_seconds)
            if check.in_update:
                updates[name] += 1
                continue
            posted[name].append(check.seconds_to_webhook)
            if check.seconds_from_leader is not None:
                served[name].append(check.seconds_from_leader)
    return {
        name: Delays(posted[name], served[name], updates[name], most)
        for name, most in sorted(allowed.items())
    }


def quantile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that so many percent do not exceed; None of none."""
    if not values:
        return None
    rank = math.ceil(percent / 100 * len(values))
    return sorted(values)[max(rank, 1) - 1]


def totals(results: Sequence[Result]) -> dict[str, Any]:
    """The sums of a run; `lost_not_proven` counts records by reason."""
    unproven: Counter[str] = Counter()
    for result in results:
        unproven.update(result.unproven)
    return {
        "runs": len(results),
        "faults": sum(len(result.marks) for result in results),
        "acknowledged_records": sum(result.acknowledged for result in results),
        "lost_records": sum(result.lost for result in results),
        "lost_and_proven_records": sum(result.lost for result in results) - unproven.total(),
        "lost_not_proven": dict(unproven.most_common()),
    }


def as_lines(results: Sequence[Result]) -> list[str]:
    """The totals, and how long alerts took to the webhook."""
    found = totals(results)
    first = (
        f"{counted(found['runs'], 'run')}, {counted(found['faults'], 'fault')}, "
        f"{counted(found['acknowledged_records'], 'acknowledged record')}, "
        f"{found['lost_records']:,} lost, {found['lost_and_proven_records']:,} of them proven"
    )
    lines = [first]
    lines += [f"  {count:,} not proven: {why}" for why, count in found["lost_not_proven"].items()]
    for name, each in delays(results).items():
        p50, p99 = quantile(each.to_webhook, 50), quantile(each.to_webhook, 99)
        if p50 is not None and p99 is not None:
            within = "within" if p99 <= each.allowed else "ABOVE"
            lines.append(
                f"{name} to the webhook: p50 {p50:.1f} s, p99 {p99:.1f} s of "
                f"{len(each.to_webhook)}, {within} {each.allowed:g} s"
            )
    return lines
