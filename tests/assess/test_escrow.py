"""Which records lie on one disk, from where a second copy is due, and when it is is_there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.assess.test_leader_death import led
from tidemark.assess.escrow import copy_from, is_led
from tidemark.core.escrow import HeldRange, held_offsets

ALONE = {"in_sync_replicas": [1]}
BEHIND = {2: {"log_end_offset": 40, "lag_ms": 9e3}, 3: {"log_end_offset": 90, "lag_ms": 5e3}}
SILENT = {broker: {**sample, "error": "timed_out"} for broker, sample in BEHIND.items()}


@pytest.mark.parametrize(
    ("samples", "changes", "start"),
    [
        # Another in-sync replica answers.
        (BEHIND, {}, None),
        ({2: {"error": "timed_out"}}, {}, None),
        # An eligible replica has all that was committed.
        ({3: {"lag_ms": 5e3}}, {**ALONE, "eligible_leader_replicas": [3]}, None),
        # No other has what is above the longest other log; with unclean elections, above that of
        # the one that would be elected.
        (BEHIND, ALONE, 80),
        (BEHIND, {**ALONE, "unclean_leader_election": True}, 30),
        # Those in sync are down: their disks have what they had.
        (SILENT, {}, 80),
        (SILENT, ALONE, 80),
        # The leader gave no answer to the sample: it may still have one to a reader.
        ({**SILENT, 1: {"error": "timed_out"}}, ALONE, 80),
        ({1: {"error": "timed_out"}}, {}, None),
        # The margin is one of 1 MiB at most.
        ({**SILENT, 1: {"log_end_offset": 107, "size_bytes": 107 * 2**19}}, ALONE, 88),
        # Alone, and all is copied so far: what follows is due.
        ({}, ALONE, 90),
        # The margin is one of four leader epochs at most; what only the leader has is all of it.
        ({}, {**ALONE, "lineage": [(n, 90 + n) for n in range(1, 9)]}, 94),
        (BEHIND, {**ALONE, "lineage": [(n, 90 + n) for n in range(1, 9)]}, 90),
        (BEHIND, {**ALONE, "log_start_offset": 85}, 85),
        # One replica by its assignment, no leader, nothing known.
        (None, {"assigned": [1], **ALONE}, None),
        (BEHIND, {**ALONE, "leader": None}, None),
        (BEHIND, {**ALONE, "missed_passes": 1}, None),
        (BEHIND, {"in_sync_replicas": None}, None),
    ],
)
def test_from_where_a_second_copy_is_due(
    samples: dict[int, Any] | None, changes: dict[str, Any], start: int | None
) -> None:
    assert copy_from(led(samples, **changes), margin=10) == start


@pytest.mark.parametrize(
    ("epoch", "end", "changes", "is_there"),
    [
        (4, 95, {}, True),
        (4, 95, {"missed_passes": 1}, False),
        (None, 95, {}, False),
        (4, 95, {"leader": None}, False),
        # An older epoch: its records are in the leader's log, it was cut, or that is not known.
        (3, 60, {"lineage": [(3, 60), (4, 100)], "lineage_complete_from": 3}, True),
        (3, 61, {"lineage": [(3, 60), (4, 100)], "lineage_complete_from": 3}, False),
        (3, 60, {"lineage": [(2, 60), (4, 100)], "lineage_complete_from": 2}, False),
        (3, 60, {"lineage": [(4, 100)], "lineage_complete_from": 4}, False),
        (3, 60, {}, False),
    ],
)
def test_whether_the_leader_has_it(
    epoch: int | None, end: int, changes: dict[str, Any], is_there: bool
) -> None:
    assert is_led(led(**changes), epoch, end) is is_there


@pytest.mark.parametrize(
    ("ranges", "epoch", "count"),
    [
        ([], None, 0),
        ([(0, 10, 3)], None, 0),
        ([(15, 30, 3)], None, 5),
        # A range read again, and one of a later leader, which wrote other records there.
        ([(8, 14, 3), (12, 16, 3)], None, 6),
        ([(8, 14, 3), (12, 16, 5)], 3, 4),
        ([(8, 14, None)], 3, 4),
    ],
)
def test_how_much_of_a_range_is_held(
    ranges: list[HeldRange], epoch: int | None, count: int
) -> None:
    assert held_offsets(ranges, 10, 20, epoch) == count
