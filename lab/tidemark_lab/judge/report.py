"""Results as a table, JSON and JUnit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

from tidemark.core.text import table
from tidemark_lab.judge.totals import as_lines, totals
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
