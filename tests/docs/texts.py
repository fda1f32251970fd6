"""The texts that every detector needs, and which of them are missing."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.core.identity import alert_name
from tidemark.detect.detector import Detector


def missing_texts(
    detector: Detector, scenarios: Iterable[str], alerts: str, runbooks: str
) -> list[str]:
    """What a detector lacks, in words. The arguments are the contents of the files."""
    name = alert_name(detector.id)
    anchor = name.lower()
    row = (
        f'| <a id="{anchor}"></a>[{name}](runbooks.md#{anchor}) | {detector.id} | {detector.kind} |'
    )
    texts = list(scenarios)
    lines = [line for text in texts for line in text.splitlines() if f" {name}" in line]
    traps = [text for text in texts if f"# trap: {detector.id}\n" in text]
    silent = [
        text
        for text in traps
        if not any("firing" in line and f" {name}" in line for line in text.splitlines())
    ]
    found = {
        "a row in docs/alerts.md": f"\n{row} " in alerts,
        "a section in docs/runbooks.md": f"\n## {name}\n" in runbooks,
        "a scenario in which it fires": any("  firing " in line for line in lines),
        "a scenario in which it resolves": any("  resolved/" in line for line in lines),
        "a trap in which it remains silent": bool(silent),
    }
    return [text for text, there in found.items() if not there]
