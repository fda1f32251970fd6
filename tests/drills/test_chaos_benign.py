from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any, cast
from unittest.mock import Mock

import pytest

from tidemark_lab.drills.chaos.benign import BenignPlan, benign
from tidemark_lab.faults.fault import Fault

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
    "collector killed": 1,
    "idle topics": 1,
}


def faults(seed: int, replication_factor: int = 3) -> list[Fault]:
    """One round of the deck, with the elections between."""
    plan = BenignPlan(cast("Any", Mock()), benign(replication_factor), random.Random(seed))
    return [plan.next({("events", 2): 9, ("t", 0): 5}) for _ in range(sum(KINDS.values()))]


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
    drill = benign(2)
    assert (len(drill.places()), len(drill.places(loaded=True))) == (48, 37)
    leaders = Counter(brokers[0] for brokers in drill.assignments.values())
    assert leaders == {1: 16, 2: 16, 3: 16}
