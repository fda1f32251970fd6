"""Kinds of histories beside the usual ones: each changes the script of a few seeds.

A kind draws from its own seed, so the other histories stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple

from tests.histories.faults import Fault
from tests.histories.history import Script
from tests.histories.modes import MODES
from tests.histories.partition import TOPICS

# Of all histories, how many are of one of these kinds.
SHARE: Final = 0.3
# Passes after the last thing that happened, for alerts to fire.
AFTERWARDS: Final = 15
# How many passes a partition has no leader after its epochs were restored.
DOWN: Final = 45


class Kind(NamedTuple):
    """`weight`: among the kinds. `is_held_back`: a known failure of the product; only in soaks."""

    weight: float
    change: Callable[[Script, Random], Script]
    is_held_back: bool = False


def with_kind(plan: Script, *, kind: str | None = None, every: bool = False) -> Script:
    """The script of a kind: of the one that is given, or for a share of the seeds of any kind.

    `every`: also of those that are held back.
    """
    rng = Random(plan.seed ^ 0xB17D)
    if kind is None:
        if rng.random() >= SHARE:
            return plan
        names = list(KINDS)
        kind = rng.choices(names, [each.weight for each in KINDS.values()])[0]
        if KINDS[kind].is_held_back and not every:
            return plan
    return replace(KINDS[kind].change(plan, rng), kind=kind)


def _in_mode(plan: Script, rng: Random, names: list[str]) -> Script:
    """The same in one of these generations of Kafka."""
    if plan.mode.name in names:
        return plan
    mode = MODES[rng.choice(names)]
    return replace(
        plan,
        mode=mode,
        metadata_log=plan.metadata_log and mode.quorum,
        fast=plan.fast and mode.fenced,
    )


def _lasting(plan: Script, passes: int) -> Script:
    """At least so many passes, all of one collector, and producers that write."""
    passes = max(plan.passes, passes)
    pace = (max(plan.pace[0], 0.5), *plan.pace[1:])
    return replace(plan, passes=passes, pace=pace, collectors=[(1, passes, 0.0)])


def _with_faults(plan: Script, rng: Random, faults: list[tuple[int, str, int]]) -> Script:
    """`faults`: (pass, kind, passes that it lasts), all of one partition."""
    place = rng.randrange(len(TOPICS))
    added = [Fault(n, kind, rng.getrandbits(30), lasts, place) for n, kind, lasts in faults]
    return replace(plan, faults=sorted([*plan.faults, *added]))


WITHOUT_IDS: Final = [name for name, mode in MODES.items() if not mode.topic_ids]
IN_GAP: Final = {"fence_leader": 2, "crash": 2, "reassign": 2, "delete_records": 1}
IN_HOSTILE_GAP: Final = IN_GAP | {"unclean": 5, "elect_uncleanly": 2, "power_failure": 3}


def _gap(plan: Script, rng: Random) -> Script:
    weights = IN_GAP if plan.benign else IN_HOSTILE_GAP
    if plan.mode.topic_ids:
        weights = weights | {"recreate_filled": 4}
    kinds = rng.choices(list(weights), list(weights.values()), k=rng.choice([1, 1, 2]))
    return _unseen(plan, rng, kinds)


def _recreated_unseen(plan: Script, rng: Random) -> Script:
    """No topic id tells the new topic from the old one."""
    plan = _in_mode(plan, rng, WITHOUT_IDS)
    return _unseen(plan, rng, ["recreate_filled"])


def _unseen(plan: Script, rng: Random, kinds: list[str]) -> Script:
    """No collector runs for a while in which this happens; then it, or another one, does."""
    begin, length = rng.randint(8, max(9, plan.passes - 20)), rng.randint(3, 25)
    end = begin + length
    plan = _lasting(plan, end + AFTERWARDS)
    if rng.random() < 0.4:
        ahead = rng.choice([0.0, 0.0, 5.0, -5.0])
        plan = replace(plan, collectors=[(1, begin - 1, ahead), (end, plan.passes, 0.0)])
    faults = []
    for kind in kinds:
        number = rng.randint(begin, end - 2)
        faults.append((number, kind, rng.randint(1, end - number - 1)))
    plan = _with_faults(plan, rng, faults)
    return replace(plan, missed=sorted({*plan.missed, *range(begin, end)}))


def _last_known_leader(plan: Script, rng: Random) -> Script:
    """The last in-sync broker fails and returns: nobody is eligible, and it is elected."""
    plan = _in_mode(plan, rng, ["4.1"])
    begin, down = rng.randint(8, max(9, plan.passes - 20)), rng.choice([2, 4, 6, 12, 20])
    alone = rng.choice([0, 1, 3, 6])
    plan = _lasting(plan, begin + alone + down + 2 * AFTERWARDS)
    others = rng.randint(1, 2 * (alone + down))
    faults = [(begin, "others_fail", others), (begin + alone, "last_fails", down)]
    plan = replace(plan, benign=False, metadata_log=rng.random() < 0.2)
    return _with_faults(plan, rng, faults)


def _bystanders(plan: Script, rng: Random) -> Script:
    """Sidecars of log directories and audits, whose clocks are wrong."""
    ahead = rng.choice([70.0, 120.0, 600.0, 3600.0]) * rng.choice([1, -1])
    return replace(plan, bystanders_ahead=ahead)


def _disordered_log(plan: Script, rng: Random) -> Script:
    """Records of the metadata log in disorder, also of topics that are deleted."""
    plan = _in_mode(plan, rng, ["3.3", "3.7", "4.1"])
    number = rng.randint(5, max(6, plan.passes - 20))
    kind = rng.choice(["recreate", "recreate", "delete_topic", "crash"])
    plan = _with_faults(plan, rng, [(number, kind, rng.choice([1, 3, 12]))])
    return replace(plan, metadata_log=True, log_ahead=rng.choice([30.0, -30.0, 0.0]))


def _compaction(plan: Script, rng: Random) -> Script:
    """Cleaners run, replicas are copied from a cleaned log, and the policy changes to delete."""
    plan = replace(_lasting(plan, plan.passes), compacts=True)
    numbers = range(5, plan.passes - 5)
    faults = [(n, "compact", 0) for n in rng.sample(numbers, rng.choice([2, 4, 8]))]
    faults += [(n, "reassign", 0) for n in rng.sample(numbers, 3)]
    faults += [(n, "fence_leader", 0) for n in rng.sample(numbers, 2)]
    if not plan.benign:
        faults += [(n, "new_disk", rng.choice([1, 3, 6])) for n in rng.sample(numbers, 2)]
    if rng.random() < 0.7:
        faults.append((rng.choice(numbers), "policy", 0))
    return _with_faults(plan, rng, faults)


def _odd_errors(plan: Script, rng: Random) -> Script:
    return replace(plan, odd_errors=True)


def _hand_over(plan: Script, rng: Random) -> Script:
    """Another collector takes over in the middle of a fault, and records come twice."""
    number = rng.choice([f.number for f in plan.faults] or [10]) + rng.randint(0, 3)
    passes = max(plan.passes, number + 2 * AFTERWARDS)
    overlap, ahead = rng.choice([-1, -1, 0, 2]), rng.choice([0.0, 0.0, 5.0, -5.0])
    collectors = [(1, number + overlap, ahead), (number, passes, 0.0)]
    return replace(plan, passes=passes, collectors=collectors, duplicates=rng.random() < 0.7)


def _moves(plan: Script, rng: Random) -> Script:
    """Replicas move between log directories, after elections that left epochs empty."""
    plan = _lasting(plan, plan.passes)
    plan = replace(plan, pace=(rng.choice([0.1, 0.5]), *plan.pace[1:]))
    numbers = range(5, plan.passes - 5)
    faults = [(n, "fence_leader", 0) for n in rng.sample(numbers, 4)]
    faults += [(n, "preferred", 0) for n in rng.sample(numbers, 2)]
    return _with_faults(plan, rng, faults + [(n, "move", 0) for n in rng.sample(numbers, 4)])


def _restored(plan: Script, rng: Random) -> Script:
    """Epochs are those of a backup; later the partition has no leader for long."""
    number = rng.randint(15, max(16, plan.passes - 60))
    plan = _lasting(plan, number + DOWN + 10)
    # Two brokers without a replica say that there is no leader.
    plan = replace(plan, brokers=plan.brokers + 2, benign=True, faults=[], metadata_log=False)
    faults = [(n, "fence_leader", 0) for n in rng.sample(range(5, number), 4)]
    faults += [(number, "restore", 0)]
    if rng.random() < 0.7:
        down = number + rng.randint(3, 6)
        faults += [(down, "others_fail", DOWN), (down, "last_fails", DOWN)]
    return _with_faults(plan, rng, faults)


KINDS: Final[dict[str, Kind]] = {
    "gap": Kind(2, _gap, is_held_back=True),
    "recreated unseen": Kind(1, _recreated_unseen, is_held_back=True),
    "last known leader": Kind(1, _last_known_leader),
    "compaction": Kind(1, _compaction),
    "moves": Kind(1, _moves),
    "restored": Kind(0.5, _restored, is_held_back=True),
    "single errors": Kind(1, _odd_errors),
    "hand-over": Kind(1, _hand_over),
    "bystanders": Kind(1, _bystanders),
    "disordered log": Kind(1, _disordered_log, is_held_back=True),
}
