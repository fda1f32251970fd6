"""Each scenario text has the answers of the reducer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.scenarios.text import play, scenario_files
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS

FILES = scenario_files(ROOT / "tests" / "testdata" / "detect")
TEXTS = [path.read_text(encoding="utf-8") for path in FILES]
LINES = [line for text in TEXTS for line in text.splitlines()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    played = play(written)
    if os.environ.get("REWRITE") == "1":
        path.write_text(played, encoding="utf-8")
        return
    assert played == written


@pytest.mark.parametrize("detector", DETECTORS)
def test_each_detector_fires_resolves_and_is_silent_in_a_trap(detector: str) -> None:
    name = f" {alert_name(detector)}"
    named = [line for line in LINES if name in line]
    assert any("  firing " in line for line in named), "no scenario in which it fires"
    assert any("  resolved/" in line for line in named), "no scenario in which it resolves"
    traps = [text for text in TEXTS if f"# trap: {detector}\n" in text]
    silent = [
        text
        for text in traps
        if not any("firing" in line and name in line for line in text.splitlines())
    ]
    assert silent, f"no scenario headed `# trap: {detector}` in which it is silent"


def test_only_a_proven_loss_is_called_one() -> None:
    """A filter for these words finds the proven losses only."""
    others = [
        line
        for line in LINES
        if ("  firing " in line or "  update " in line) and "KafkaCommittedDataLoss" not in line
    ]
    assert others
    plain = [line.lower().replace("-", " ").replace("_", " ") for line in others]
    assert [line for line in plain if "committed data loss" in line] == []


def test_every_detector_has_a_trap_and_every_trap_a_detector() -> None:
    traps = {line.removeprefix("# trap: ") for line in LINES if line.startswith("# trap: ")}
    assert traps == DETECTORS.keys()
