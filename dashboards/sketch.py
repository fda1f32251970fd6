"""`python -m dashboards.sketch FOLDER`: each dashboard's layout as an HTML page, to look at it without Grafana.

Boxes where the panels stand, with their titles, kinds, descriptions, units and legends. It is no rendering: Grafana was not
there.
"""

from __future__ import annotations

import html
import json
import sys
from pathlib import Path
from typing import Any

from dashboards.__main__ import ROOT

ROW_PIXELS, WIDTH_PIXELS = 34, 1440
STYLE = """
body{font:14px/1.35 system-ui,sans-serif;margin:16px;background:#f4f5f5;color:#24292e}
h1{font-size:20px;margin:0 0 4px} p{margin:0 0 12px;color:#555}
.grid{position:relative} .panel{position:absolute;box-sizing:border-box;padding:3px}
.box{height:100%;box-sizing:border-box;background:#fff;border:1px solid #ccd;border-radius:3px;padding:6px 8px;overflow:hidden}
b{display:block} small{color:#667;display:block} i{color:#2a6;font-style:normal}
"""


def box(panel: dict[str, Any]) -> str:
    """One panel at its place."""
    place = panel["gridPos"]
    left, width = place["x"] * WIDTH_PIXELS / 24, place["w"] * WIDTH_PIXELS / 24
    style = f"left:{left}px;top:{place['y'] * ROW_PIXELS}px;width:{width}px;height:{place['h'] * ROW_PIXELS}px"
    legends = "".join(
        f"<small><i>{target['refId']}</i> {html.escape(target['legendFormat'] or '(one series)')}</small>"
        for target in panel["targets"]
    )
    defaults = panel["fieldConfig"]["defaults"]
    kind = f"<small>{panel['type']}, unit {defaults['unit']}; empty: {html.escape(defaults['noValue'])}</small>"
    text = f"<b>{panel['id']}. {html.escape(panel['title'])}</b>{kind}<small>{html.escape(panel['description'])}</small>{legends}"
    return f'<div class="panel" style="{style}"><div class="box">{text}</div></div>'


def page(board: dict[str, Any]) -> str:
    """A dashboard's layout."""
    variables = ", ".join(variable["name"] for variable in board["templating"]["list"])
    marks = ", ".join(each["name"] for each in board["annotations"]["list"])
    height = (
        max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"]) * ROW_PIXELS
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(board["title"])}</title><style>{STYLE}</style>'
        f"<h1>{html.escape(board['title'])}</h1><p>Layout only. Variables: {variables}. Annotations: {html.escape(marks)}.</p>"
        f'<div class="grid" style="height:{height}px">{"".join(map(box, board["panels"]))}</div></html>'
    )


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m dashboards.sketch FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((ROOT / "dashboards" / "grafana").glob("*.json")):
        target = folder / f"{path.stem}.html"
        target.write_text(page(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
        print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
