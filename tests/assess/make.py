"""Views of one partition, for the tests of what is concluded from them."""

from __future__ import annotations

from typing import Any

from tidemark.core.records import ReplicaView, View


def partition_view(samples: dict[int, dict[str, Any]] | None = None, **changes: Any) -> View:
    """Three replicas in sync, leader 1, minimum 2. `samples` changes single replicas."""
    assigned = changes.get("assigned", [1, 2, 3])
    offsets = {"log_end_offset": 100, "high_watermark": 100, "leader_epoch": 4}
    sample: dict[str, Any] = {**offsets, "lag_records": 0, "lag_ms": 0.0}
    view: dict[str, Any] = {
        "scope": "partition",
        "kafka_cluster": "main",
        "topic": "orders",
        "partition": 0,
        "at": 1.0,
        "pass_number": 1,
        "collector": "c",
        "leader": 1,
        "assigned": assigned,
        "in_sync_replicas": assigned,
        "effective_min_in_sync_replicas": 2,
        "replicas": [
            ReplicaView(broker=b, **{**sample, **(samples or {}).get(b, {})}) for b in assigned
        ],
        **offsets,
    }
    return View(**{**view, **changes})
