"""Writes the table of docs/versions.md: `python -m tests.docs.versions` (`make docs`).

`--check` only compares. The rows are what the runs of `tests.versions` on real brokers found.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Final

from tests.conftest import ROOT
from tests.versions.features import FEATURES

PAGE: Final = ROOT / "docs" / "versions.md"
ROWS: Final = ROOT / "tests" / "testdata" / "versions.json"
BLOCK: Final = re.compile(r"(?<=<!-- versions -->\n).*?(?=<!-- end -->)", re.DOTALL)


def read_rows() -> dict[str, dict[str, str]]:
    """version -> key of a feature -> what it shows."""
    found: dict[str, dict[str, str]] = json.loads(ROWS.read_text(encoding="utf-8"))
    return found


def table() -> str:
    """A line for each feature, a column for each version."""
    rows = read_rows()
    lines = [["", *rows], ["---"] * (1 + len(rows))]
    lines += [
        [title, *(row[feature] for row in rows.values())] for feature, title in FEATURES.items()
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page() -> str:
    """The page with its table."""
    return BLOCK.sub(lambda _: table(), PAGE.read_text(encoding="utf-8"))


def main() -> int:
    if "--check" in sys.argv:
        return int(page() != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
