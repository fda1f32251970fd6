"""What the tests of detectors share: a context, and the evidence of a condition."""

from __future__ import annotations

from typing import Any

import msgspec

from tidemark.core.cluster import ClusterState
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect.default_thresholds import Thresholds
from tidemark.detect.detector import Condition, Context


def context(*alerts: TrackedAlert, now: float = 11.0, **thresholds: Any) -> Context:
    """A judgement of orders-0 at `now`."""
    limits = Thresholds(**thresholds)
    return Context(
        kafka_cluster="main",
        topic="orders",
        partition=0,
        now=now,
        period_ms=1000.0,
        thresholds=limits,
        cluster=ClusterState(),
        alerts=alerts,
    )


def evidence_of(condition: Condition) -> dict[str, Any]:
    """The evidence as it is published."""
    return msgspec.json.decode(msgspec.json.encode(condition.evidence), type=dict[str, Any])
