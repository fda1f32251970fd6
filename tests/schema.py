"""Regenerates the committed JSON Schema of the events: `python -m tests.schema` (`make schema`)."""

from __future__ import annotations

import json
from pathlib import Path

import tidemark.core
from tidemark.core.codec import json_schema

SCHEMA = Path(tidemark.core.__file__).parent / "replica-state.v1.schema.json"

if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(json_schema(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
