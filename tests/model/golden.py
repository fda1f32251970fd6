"""The texts of the model in tests/testdata/model."""

from __future__ import annotations

from pathlib import Path

from tests.golden import assert_written

FOLDER = Path(__file__).parents[1] / "testdata" / "model"


def assert_golden(name: str, lines: list[str]) -> None:
    """Asserts that the lines are those of tests/testdata/model/<name>.txt."""
    assert_written(FOLDER / f"{name}.txt", "\n".join(lines) + "\n")
