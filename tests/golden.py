"""Compares texts with committed files; REWRITE=1 writes them. Read every change before a commit."""

from __future__ import annotations

import os
from pathlib import Path


def assert_written(path: Path, text: str) -> None:
    """Asserts that the file has this text."""
    if os.environ.get("REWRITE") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is missing: write it with REWRITE=1 and read it"
    assert path.read_text(encoding="utf-8") == text
