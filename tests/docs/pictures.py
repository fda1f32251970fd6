"""Takes the pictures of the README: `python -m tests.docs.pictures` (`make pictures`).

The status page's own page of a partition that lost records, by chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.browser.chromium import Chromium
from tests.browser.conftest import PARTITION, Exporter
from tests.browser.test_layout import realistic_views
from tests.conftest import ROOT
from tests.pages.make import table

PAGE: Final = ROOT / "docs" / "pictures" / "partition.png"
WIDTH: Final = 1080
HEIGHT: Final = 900


def take(program: str) -> None:
    """Writes the picture: the top of the page, as a screen shows it."""
    PAGE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        chromium, exporter = Chromium(program, Path(folder)), Exporter()
        try:
            exporter.fill(table(realistic_views()))
            tab = chromium.page(width=WIDTH, height=HEIGHT)
            tab.open(exporter.url + PARTITION)
            tab.screenshot(PAGE, max_height=HEIGHT)
        finally:
            exporter.server.close()
            chromium.close()


def main() -> int:
    program = shutil.which("chromium")
    if program is None:
        print("pictures: chromium is not installed: make system", file=sys.stderr)
        return 1
    take(program)
    print(f"{PAGE.relative_to(ROOT)}: {PAGE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
