"""Regenerates the JSON Schemas of events, configuration and the chart: `python -m tests.schema`."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

import tidemark.core
from tests.config_schema import CHART, FILE, chart_schema, configuration_schema
from tidemark.core.codec import dedented
from tidemark.core.events import VERSION, Batch

CORE = Path(tidemark.core.__file__).parent
EVENTS = CORE / "replica-state.v2.schema.json"


def event_schema() -> dict[str, object]:
    """JSON Schema (2020-12) of a batch."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Tidemark replica-state, version {VERSION}",
        **dedented(msgspec.json.schema(Batch)),
    }


def write(path: Path, schema: object) -> None:
    path.write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(EVENTS, event_schema())
    write(FILE, configuration_schema())
    CHART.write_text(chart_schema(), encoding="utf-8")
