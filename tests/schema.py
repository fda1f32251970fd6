"""Regenerates the JSON Schemas of events, configuration and the chart: `python -m tests.schema`."""

from __future__ import annotations

import json
from pathlib import Path

import tidemark.core
from tests.config_schema import CHART, FILE, chart_schema, configuration_schema
from tidemark.core.codec import json_schema

CORE = Path(tidemark.core.__file__).parent
EVENTS = CORE / "replica-state.v2.schema.json"


def write(path: Path, schema: object) -> None:
    path.write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(EVENTS, json_schema())
    write(FILE, configuration_schema())
    CHART.write_text(chart_schema(), encoding="utf-8")
