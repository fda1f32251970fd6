"""`records_held_by` in the evidence of an alert: whose disks had lost records.

It comes from topics and files, so it may be anything.
"""

from __future__ import annotations

from typing import Any


def holder_entries(value: Any) -> list[dict[str, Any]]:
    """One of each replica: `broker`, and `state` (see `assess.records_held.Holder`)."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def held_by(value: Any) -> list[Any]:
    """The brokers that had them when they answered last, in its order."""
    return [each.get("broker") for each in holder_entries(value) if each.get("state") == "held"]
