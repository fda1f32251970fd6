"""Which candidates qualify: facts of a view that disqualify a replica, and facts that do not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.assess.make import partition_view
from tidemark.assess.candidates import candidates_of

BEHIND = "its log ends at 99, below the high watermark 100"


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        ({}, None),
        ({"error": "timed_out"}, "it does not answer (timed_out)"),
        ({"log_end_offset": None}, "it does not report its log end"),
        ({"leader_epoch": 3}, "it is in leader epoch 3, the newest is 4"),
        ({"leader_epoch": None}, None),
        ({"log_end_offset": 99, "lag_ms": None}, BEHIND),
        ({"log_end_offset": 99, "lag_ms": 2e3 + 1}, BEHIND),
        ({"log_end_offset": 99, "lag_ms": 2e3}, None),
    ],
)
def test_what_disqualifies_a_replica(sample: dict[str, Any], reason: str | None) -> None:
    assert candidates_of(partition_view({2: sample})).disqualified.get(2) == reason


def test_a_member_without_a_sample_is_disqualified() -> None:
    candidates = candidates_of(partition_view(assigned=[1, 2], in_sync_replicas=[1, 2, 3]))
    assert candidates.disqualified == {3: "it was not sampled"}


def test_lag_alone_disqualifies_no_replica() -> None:
    candidates = candidates_of(partition_view({2: {"lag_ms": 2_500.0}, 3: {"lag_ms": 2_000.0}}))
    assert candidates.lagging == {2: "it is 2.5 s behind"}
    assert candidates.disqualified == {}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"missed_passes": 1}, "not seen for 1 pass"),
        ({"missed_passes": 2, "in_sync_replicas": None}, "not seen for 2 passes"),
        ({"in_sync_replicas": None}, "no broker reports its in-sync replicas"),
    ],
)
def test_when_nothing_is_known(changes: dict[str, Any], reason: str | None) -> None:
    assert candidates_of(partition_view(**changes)).unknown == reason
