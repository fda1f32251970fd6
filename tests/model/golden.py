"""Compares texts with golden files; REWRITE=1 writes them. Read every change before a commit."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "testdata" / "model"


def assert_golden(name: str, lines: list[str]) -> None:
    """Asserts that the lines are those of tests/testdata/model/<name>.txt."""
    path = FOLDER / f"{name}.txt"
    text = "\n".join(lines) + "\n"
    if os.environ.get("REWRITE") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    assert path.exists(), f"{path} is missing: write it with REWRITE=1 and read it"
    assert path.read_text(encoding="utf-8") == text
