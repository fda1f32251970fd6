"""Scenario texts: comments, commands, `----`, what is expected. REWRITE=1 writes what happens instead of comparing."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.world import World

SILENCE = "(silence)"
# What ends an answer besides an empty line: none of these begins one.
_BEGINNINGS = (
    "#",
    "pass",
    "partition",
    "thresholds",
    "gone",
    "ack",
    "evidence",
    "record",
    "checkpoint",
    "broker",
    "audit",
)


def play(source: str) -> str:
    """Plays a scenario text and returns it with the answers that came."""
    world = World()
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
            answers = [answer for command in commands for answer in world.run(command)]
            out += ["----", *(answers or [SILENCE])]
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
