"""Takes the pictures of the README: `python -m tests.docs.pictures` (`make pictures`).

The status page's own page of a partition that lost records, by chromium, and the table that
`tidemark demo` printed in a recorded run: docs/pictures/demo-report.json, as the demo wrote it.
"""

from __future__ import annotations

import dataclasses
import io
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from tests.browser.chromium import Chromium
from tests.browser.conftest import PARTITION, Exporter
from tests.browser.test_layout import realistic_views
from tests.conftest import ROOT
from tests.pages.make import table
from tidemark_lab.demo.alert_result import AlertResult, latency_remarks
from tidemark_lab.demo.live_table import make_table

FOLDER: Final = ROOT / "docs" / "pictures"
PAGE: Final = FOLDER / "partition.png"
DEMO: Final = FOLDER / "demo.svg"
REPORT: Final = FOLDER / "demo-report.json"
COLUMNS: Final = 80
WIDTH: Final = 1080
HEIGHT: Final = 1000


def take(program: str) -> None:
    """Writes the picture: the top of the page, as a screen shows it."""
    FOLDER.mkdir(exist_ok=True)
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


def recorded_results() -> list[AlertResult]:
    """The rows of a report; the comparison of the loss is not drawn."""
    fields = {field.name for field in dataclasses.fields(AlertResult)} - {"comparison", "exposed"}
    rows = json.loads(REPORT.read_text(encoding="utf-8"))
    return [AlertResult(**{key: row[key] for key in row.keys() & fields}) for row in rows]


def draw_demo() -> str:
    """The end of the demo as it is on a terminal."""
    results = recorded_results()
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    console.print(make_table(results))
    for remark in latency_remarks(results):
        console.print(f"{remark[0].upper()}{remark[1:]}.", highlight=False)
    # The last line of the drawing is cut in fonts that are higher than the one left out below.
    console.print()
    # No font from elsewhere: a reader's own.
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="make demo", code_format=form, unique_id="demo") + "\n"


def main() -> int:
    DEMO.write_text(draw_demo(), encoding="utf-8")
    print(f"{DEMO.relative_to(ROOT)}: {DEMO.stat().st_size:,} bytes")
    program = shutil.which("chromium")
    if program is None:
        print("pictures: chromium is not installed: make system", file=sys.stderr)
        return 1
    take(program)
    print(f"{PAGE.relative_to(ROOT)}: {PAGE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
