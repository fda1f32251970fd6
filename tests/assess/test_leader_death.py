"""If the leader died now: the successor, and the records that would be lost."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from tests.assess.test_leader_choice import offline
from tests.assess.test_safe_to_stop import view
from tidemark.assess.leader_choice import OffsetRange, Truncation
from tidemark.assess.leader_death import LeaderDeath, committed_text, deaths, if_leader_died
from tidemark.core.escrow import HeldRange
from tidemark.core.records import View


def led(samples: dict[int, dict[str, Any]] | None = None, **changes: Any) -> View:
    """Leader 1 has written up to 107 and committed up to 100."""
    return view({1: {"log_end_offset": 107}, **(samples or {})}, log_end_offset=107, **changes)


def death_of(seen: View, with_it: Collection[int] = ()) -> LeaderDeath:
    found = if_leader_died(seen, with_it)
    assert found is not None
    return found


def test_the_first_in_sync_replica_of_the_assignment_leads() -> None:
    death = death_of(
        led({2: {"log_end_offset": 102, "high_watermark": 98}, 3: {"log_end_offset": 106}})
    )
    assert (death.election, death.successor, death.high_watermark) == ("clean", 2, 98)
    assert (death.committed, death.uncommitted) == (None, OffsetRange(102, 107))
    assert death.truncations == [Truncation(3, 102, 106, False)]
    assert (death.in_sync_left, death.accepts_acks_all, death.records) == (2, True, 5)


@pytest.mark.parametrize(
    ("changes", "election", "committed"),
    [
        ({"eligible_leader_replicas": [3]}, "eligible", None),
        ({"unclean_leader_election": True}, "unclean", OffsetRange(40, 100)),
        ({}, "offline", OffsetRange(90, 100)),
    ],
)
def test_without_an_in_sync_replica(
    changes: dict[str, Any], election: str, committed: OffsetRange | None
) -> None:
    """Offline, the longest other log decides what only the leader has."""
    behind = {2: {"log_end_offset": 40, "lag_ms": 9e3}, 3: {"log_end_offset": 90, "lag_ms": 5e3}}
    if election == "eligible":
        behind[3] = {"log_end_offset": 100, "lag_ms": 5e3}
    death = death_of(led(behind, in_sync_replicas=[1], **changes))
    assert (death.election, death.committed) == (election, committed)
    assert death.lost_ms == (9e3 if election == "unclean" else 5e3)
    assert death.accepts_acks_all is False


@pytest.mark.parametrize(("escrow", "held"), [([(80, 95, 4)], 15), ([], None)])
def test_how_much_of_it_is_in_escrow(escrow: list[HeldRange], held: int | None) -> None:
    behind = {2: {"log_end_offset": 70, "lag_ms": 9e3}, 3: {"log_end_offset": 40, "lag_ms": 5e3}}
    death = death_of(led(behind, in_sync_replicas=[1], escrow=escrow))
    assert (death.committed, death.in_escrow) == (OffsetRange(70, 100), held)
    some = "" if held is None else " (15 of them in escrow)"
    assert committed_text(death) == f"30 committed{some}"
    assert death_of(led(escrow=escrow)).in_escrow is None


@pytest.mark.parametrize(
    ("seen", "with_it", "expected"),
    [
        # A silent replica is passed over.
        (led({2: {"error": "timed_out"}}), (), {"successor": 3}),
        # The only replica has everything.
        (
            led(assigned=[1], in_sync_replicas=[1]),
            (),
            {"committed": OffsetRange(0, 100), "uncommitted": OffsetRange(100, 107)},
        ),
        # Several brokers die together.
        (led(), {2}, {"successor": 3, "in_sync_left": 1, "accepts_acks_all": False}),
        (led(), {2, 3}, {"election": "offline", "committed": OffsetRange(0, 100)}),
    ],
)
def test_who_leads_next_and_what_is_lost(
    seen: View, with_it: Collection[int], expected: dict[str, object]
) -> None:
    death = death_of(seen, with_it)
    assert {name: getattr(death, name) for name in expected} == expected


def test_nothing_is_said_without_a_leader_or_an_in_sync_set() -> None:
    assert if_leader_died(offline({})) is None
    assert if_leader_died(led(missed_passes=1)) is None
    assert if_leader_died(led(in_sync_replicas=None)) is None
    assert if_leader_died(led({1: {"error": "timed_out"}})) is None


def test_the_worst_partitions_come_first() -> None:
    few, lone = led(partition=1), led(partition=2, in_sync_replicas=[1], assigned=[1])
    none = view(partition=3)
    other = led(partition=4, leader=3)
    assert [(v.partition, d.records) for v, d in deaths([few, none, lone, other], {1})] == [
        (2, 107),
        (1, 7),
    ]
