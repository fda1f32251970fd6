"""The committed dashboards, as tests read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

FILES = sorted((ROOT / "dashboards" / "grafana").glob("*.json"))


def load(path: Path) -> dict[str, Any]:
    """A dashboard; `panels` has those in collapsed rows too, and no row."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    inside = [panel for row in document["panels"] for panel in row.get("panels") or ()]
    shown = [panel for panel in document["panels"] if panel["type"] != "row"]
    return {**document, "panels": [*shown, *inside]}
