from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any, cast

import pytest

from tests.chaos.plan import LOADED, PLACES, Plan, assignments
from tidemark_lab.brokers.load_producer import AcknowledgedRecord
from tidemark_lab.faults.node_faults import Fault

KINDS = {
    "controlled restart": 1,
    "kill and start": 1,
    "pause": 2,
    "rolling restart": 1,
    "preferred election": 3,
    "reassignment": 2,
    "delete records": 1,
    "retention shrink": 1,
    "compaction": 1,
    "topic recreation": 1,
    "controller restart": 1,
    "collector restart": 1,
    "idle topics": 1,
}


class Load:
    def acknowledged(self) -> list[AcknowledgedRecord]:
        return [AcknowledgedRecord("events", 2, 9, 1, 0.0), AcknowledgedRecord("t", 0, 5, 2, 0.0)]


def faults(seed: int, replication_factor: int = 3) -> list[Fault]:
    """One round of the deck, with the elections between."""
    plan = Plan(
        cast("Any", None),
        cast("Any", Load()),
        cast("Any", None),
        replication_factor,
        random.Random(seed),
    )
    return [plan.next() for _ in range(sum(KINDS.values()))]


@pytest.mark.parametrize("seed", range(5))
def test_every_kind_comes_and_an_election_follows_each_restart(seed: int) -> None:
    names = [fault.name for fault in faults(seed)]
    assert Counter(names) == KINDS
    for name, following in itertools.pairwise(names):
        if name in {"controlled restart", "kill and start", "rolling restart"}:
            assert following == "preferred election"


def test_a_seed_repeats_its_faults() -> None:
    assert [(f.name, f.detail) for f in faults(4)] == [(f.name, f.detail) for f in faults(4)]


@pytest.mark.parametrize("replication_factor", [2, 3])
def test_half_of_what_was_acknowledged_is_deleted_and_replicas_move(
    replication_factor: int,
) -> None:
    dealt = faults(1, replication_factor)
    deletion = next(fault for fault in dealt if fault.name == "delete records")
    assert deletion.partitions == (("events", 2),)
    for fault in dealt:
        if fault.name == "reassignment":
            assert len(fault.partitions) == 8
            assert set(fault.brokers) <= {1, 2, 3}


def test_some_partitions_are_idle_and_leaders_are_spread() -> None:
    assert (len(PLACES), len(LOADED)) == (48, 37)
    leaders = Counter(brokers[0] for topic in assignments(2).values() for brokers in topic.values())
    assert leaders == {1: 16, 2: 16, 3: 16}
