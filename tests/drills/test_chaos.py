from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any, cast
from unittest.mock import Mock

import pytest

from tidemark_lab.drills.chaos.benign import BenignPlan, benign
from tidemark_lab.drills.chaos.hostile import HOSTILE, TRIMMED, HostilePlan
from tidemark_lab.faults.fault import Fault
from tidemark_lab.faults.harmful_faults import Harm
from tidemark_lab.faults.topic_faults import DeleteRecords

KINDS = {
    "crash": 3,
    "unclean election": 3,
    "last replica cut": 1,
    "last replica wiped": 1,
    "power failure": 2,
    "zombie leader": 2,
    "disk loss": 1,
    "delete records": 1,
}


def faults(seed: int, end: int = 100) -> list[tuple[str | None, Fault]]:
    """One round of the deck, with the topics that are idle meanwhile."""
    plan = HostilePlan(cast("Any", Mock()), HOSTILE, random.Random(seed))
    ends = dict.fromkeys(HOSTILE.places(), end)
    return [(plan.idle_topic(), plan.next(ends)) for _ in range(sum(KINDS.values()))]


@pytest.mark.parametrize("seed", range(3))
def test_every_kind_comes_in_a_round(seed: int) -> None:
    dealt = faults(seed)
    assert Counter(fault.name for _, fault in dealt) == KINDS
    assert {fault.brokers for _, fault in dealt if fault.name == "zombie leader"}
    assert all(isinstance(fault, Harm | DeleteRecords) for _, fault in dealt)


def test_a_seed_repeats_the_schedule_whatever_was_written() -> None:
    def schedule(end: int) -> list[tuple[str | None, str, str, float]]:
        return [(idle, f.name, f.detail, f.hold_seconds) for idle, f in faults(4, end)]

    assert schedule(100) == schedule(5)


def test_no_more_is_deleted_than_every_replica_has() -> None:
    deletion = next(f for _, f in faults(2) if isinstance(f, DeleteRecords))
    assert [*deletion.offsets] == HOSTILE.topics[TRIMMED].places(TRIMMED)
    assert all(50 <= offset <= 100 for offset in deletion.offsets.values())


def test_leaders_and_pairs_are_spread() -> None:
    layout = HOSTILE.assignments
    assert Counter(brokers[0] for brokers in layout.values()) == {1: 10, 2: 10, 3: 10}
    assert len({brokers for (topic, _), brokers in layout.items() if topic == "pairs"}) == 6


BENIGN_KINDS = {
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


def benign_faults(seed: int, replication_factor: int = 3) -> list[Fault]:
    """One round of the deck, with the elections between."""
    plan = BenignPlan(cast("Any", Mock()), benign(replication_factor), random.Random(seed))
    return [plan.next({("events", 2): 9, ("t", 0): 5}) for _ in range(sum(BENIGN_KINDS.values()))]


@pytest.mark.parametrize("seed", range(5))
def test_every_kind_comes_and_an_election_follows_each_restart(seed: int) -> None:
    names = [fault.name for fault in benign_faults(seed)]
    assert Counter(names) == BENIGN_KINDS
    for name, following in itertools.pairwise(names):
        if name in {"controlled restart", "kill and start", "rolling restart"}:
            assert following == "preferred election"


def test_a_seed_repeats_its_faults() -> None:
    assert [(f.name, f.detail) for f in benign_faults(4)] == [
        (f.name, f.detail) for f in benign_faults(4)
    ]


@pytest.mark.parametrize("replication_factor", [2, 3])
def test_half_of_what_was_acknowledged_is_deleted_and_replicas_move(
    replication_factor: int,
) -> None:
    dealt = benign_faults(1, replication_factor)
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
