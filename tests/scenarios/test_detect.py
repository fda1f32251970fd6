"""Each scenario text has the answers of the reducer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scenarios.text import play, scenario_files
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS

FOLDER = Path(__file__).parents[1] / "testdata" / "detect"


@pytest.mark.parametrize("path", scenario_files(FOLDER), ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    played = play(written)
    if os.environ.get("REWRITE") == "1":
        path.write_text(played, encoding="utf-8")
        return
    assert played == written


@pytest.mark.parametrize("detector", DETECTORS)
def test_each_detector_fires_resolves_and_keeps_silent_in_a_trap(detector: str) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in scenario_files(FOLDER)}
    name = f" {alert_name(detector)}"
    fires = [
        path
        for path, text in texts.items()
        if any("  firing " in line and name in line for line in text.splitlines())
    ]
    ends = [
        path
        for path, text in texts.items()
        if any("  resolved/" in line and name in line for line in text.splitlines())
    ]
    traps = [
        path
        for path, text in texts.items()
        if f"# trap: {detector}\n" in text
        and not any("firing" in line and name in line for line in text.splitlines())
    ]
    assert fires, f"no scenario in which {detector} fires"
    assert ends, f"no scenario in which {detector} resolves"
    assert traps, f"no scenario headed `# trap: {detector}` in which it keeps silent"


def test_only_a_proven_loss_speaks_of_one() -> None:
    """Whoever filters pages by these words must get the proven ones alone."""
    lines = [
        line
        for path in scenario_files(FOLDER)
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    others = [
        line
        for line in lines
        if ("  firing " in line or "  update " in line) and "KafkaCommittedDataLoss" not in line
    ]
    assert others
    assert [
        line
        for line in others
        if "committed data loss" in line.lower().replace("-", " ").replace("_", " ")
    ] == []


def test_traps_are_those_of_detectors_that_are_there() -> None:
    named = {
        line.removeprefix("# trap: ")
        for path in scenario_files(FOLDER)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("# trap: ")
    }
    assert named == DETECTORS.keys()
