"""Scenario texts: comments, commands, `----`, and the expected answer.

With REWRITE=1, the answers are written instead of compared.
"""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.scenario import Scenario

SILENCE = "(no alert)"
# An answer ends at an empty line, or at a line that begins with one of these.
_BEGINNINGS = (
    *("#", "pass", "partition", "thresholds", "gone", "ack", "evidence"),
    *("record", "checkpoint", "broker", "audit", "escrow"),
)


def play(source: str, scenario: Scenario | None = None) -> str:
    """Plays a scenario text and returns it with the answers of the reducer."""
    scenario = scenario or Scenario()
    out: list[str] = []
    commands: list[str] = []
    skipping = False
    for line in source.splitlines():
        if skipping and line.strip() and not line.startswith(_BEGINNINGS):
            continue
        if skipping and line.strip():
            out.append("")
        skipping = False
        if line == "----":
            out += ["----", *(scenario.play(*commands) or [SILENCE])]
            commands, skipping = [], True
            continue
        if line.strip() and not line.startswith("#"):
            commands.append(line)
        out.append(line)
    if commands:
        raise ValueError(f"commands without an answer: {commands}")
    return "\n".join(out).rstrip() + "\n"


def scenario_files(folder: Path) -> list[Path]:
    """The scenario texts of a folder, by name."""
    return sorted(folder.glob("*.txt"))
