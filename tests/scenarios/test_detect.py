"""Each scenario text has the answers of the reducer.

tests/docs/test_runbooks.py checks that each detector fires, resolves and is silent in a trap.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.scenarios.text import play, scenario_files
from tidemark.detect import DETECTORS

FILES = scenario_files(ROOT / "tests" / "testdata" / "detect")
LINES = [line for path in FILES for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    played = play(written)
    if os.environ.get("REWRITE") == "1":
        path.write_text(played, encoding="utf-8")
        return
    assert played == written


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
