"""A partition of which nothing was read is not healthy: it is not seen."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.assess.health import is_blind, judge_replication, observed_states
from tidemark.core.records import ReplicaView, View

WHOLE: dict[str, Any] = {"leader": 1, "assigned": [1, 2], "in_sync_replicas": [1, 2]}


def view(**fields: Any) -> View:
    known = {"scope": "partition", "kafka_cluster": "c", "at": 1.0, "pass_number": 1}
    return View(**{**known, "collector": "k", **WHOLE, **fields})


@pytest.mark.parametrize(
    ("fields", "blind"),
    [
        ({}, True),
        ({"replicas": [ReplicaView(broker=1), ReplicaView(broker=2)]}, True),
        ({"replicas": [ReplicaView(broker=1, log_end_offset=0)]}, False),
        ({"high_watermark": 0}, False),
        ({"high_watermark": 0, "missed_passes": 1}, True),
        # Without a leader there is nothing to read: it is offline, or its leader is unknown.
        ({"leader": None, "leaderless": True}, False),
        ({"leader": None}, False),
        ({"in_sync_replicas": None}, False),
    ],
)
def test_a_partition_without_a_reading_is_blind(fields: dict[str, Any], blind: bool) -> None:
    seen = view(**fields)
    assert is_blind(seen) is blind
    assert ("blind" in observed_states(seen, judge_replication(seen))) is blind
