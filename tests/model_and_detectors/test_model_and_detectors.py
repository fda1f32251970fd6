"""The detectors report what the model loses, and nothing else.

Ten thousand traces in `make test`, a hundred thousand in `make soak` (MODEL_TRACES).
The model knows the truth: see `watched_partition`. The detectors have their default configuration,
and the events pass through the whole reducer.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from math import ceil
from random import Random
from typing import NamedTuple

import pytest

from tests.model_and_detectors.watched_partition import (
    DIVERGENCE,
    LOSS,
    WatchedPartition,
    watch,
    watch_with_gaps,
)
from tidemark_lab.model.action import Trace
from tidemark_lab.model.actions import where_to_truncate
from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.log import end_offset_for, first_difference
from tidemark_lab.model.oracle import diverging_replicas, lost_offsets
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.state import Constants, ModelState, with_replica
from tidemark_lab.model.traces import extend_to_leader, random_traces, shortest_traces

TRACES = int(os.environ.get("MODEL_TRACES", "10000"))
SMALL = Constants(replicas=2, log_size=2, records=2, max_epoch=2)
WIDE = Constants(replicas=3, log_size=3, records=3, max_epoch=3)


class Case(NamedTuple):
    """A protocol, its bounds and its faults.

    `searched` is the share of its traces that come from the search; the rest are random walks.
    """

    protocol: str
    constants: Constants
    weight: int
    searched: float = 0.85
    safe: bool = False
    # Number of states that the search checks for broken ones, and steps of a walk.
    reach: int = 10_000
    walk: int = 30

    def __str__(self) -> str:
        faults = [
            name
            for name, on in (
                ("unclean", self.constants.unclean_election),
                ("lossy", self.constants.lossy_disk),
            )
            if on
        ]
        return "-".join([self.protocol, str(self.constants.replicas), *faults])


BREAKABLE = tuple(INVARIANTS[name] for name in ("StrongIsr", "LogMatching", "LeaderCompleteness"))
UNCLEAN, LOSSY = {"unclean_election": True}, {"lossy_disk": True}
CASES = (
    Case("kip-279", SMALL, 4, searched=0.95, reach=14_000),
    Case("kip-320", SMALL, 6, safe=True),
    Case("kip-320", WIDE, 8, safe=True),
    Case("kip-966", WIDE._replace(min_isr=2), 12, safe=True),
    Case("truncate-to-hw", SMALL, 20, searched=0.95, reach=14_000),
    Case("truncate-to-hw", WIDE._replace(**UNCLEAN), 6, searched=0.2, walk=60),
    Case("kip-101", SMALL._replace(log_size=3, records=3), 8, searched=0.95, reach=50_000),
    Case("kip-101", WIDE._replace(**UNCLEAN, **LOSSY), 4, searched=0.2, walk=60),
    Case("kip-279", WIDE._replace(**UNCLEAN), 4, searched=0.2, walk=60),
    Case("kip-320", WIDE._replace(replicas=2, **UNCLEAN), 10, searched=0.1, walk=60),
    Case("kip-320", SMALL._replace(**LOSSY), 8, searched=0.95, reach=60_000),
    Case("kip-966", WIDE._replace(**UNCLEAN), 5, searched=0.2, walk=60),
    Case("kip-966", WIDE._replace(**UNCLEAN, **LOSSY), 5, searched=0.2, walk=60),
    Case("kip-966", SMALL._replace(**LOSSY), 2, searched=0.95, reach=20_000),
)
WEIGHT = sum(case.weight for case in CASES)


def endings(case: Case, protocol: Protocol, count: int) -> Iterator[tuple[Trace, ModelState]]:
    """Distinct traces, each with a last state that has a leader, where a leader can be elected."""
    searched = round(count * case.searched)
    reached = list(islice(shortest_traces(protocol, case.constants), case.reach))
    # Broken states first, then the states that are farthest from the initial one.
    reached.reverse()
    reached.sort(
        key=lambda trace: all(each.holds(case.constants, trace.last) for each in BREAKABLE)
    )
    by_search = _with_leader(case, protocol, reached)
    walks = random_traces(protocol, case.constants, Random(str(case)), case.walk)
    by_walks = _with_leader(case, protocol, walks if case.safe else _prefer_broken(walks))
    # Walks replace the traces that the search does not have.
    seen: set[int] = set()
    for trace, last in chain(islice(by_search, searched), by_walks):
        key = hash(trace.states)
        if key not in seen:
            seen.add(key)
            yield trace, last
        if len(seen) == count:
            return


def _prefer_broken(walks: Iterator[Trace], draws: int = 10) -> Iterator[Trace]:
    """Makes every other walk the first of `draws` with a loss or a divergence.

    Otherwise only one walk in thirty has one.
    """
    for walk in walks:
        yield walk
        drawn = walk
        for drawn in islice(walks, draws):
            if any(lost_offsets(state) or diverging_replicas(state) for state in drawn.states):
                break
        if drawn is not walk:
            yield drawn


def _with_leader(
    case: Case, protocol: Protocol, found: Iterable[Trace]
) -> Iterator[tuple[Trace, ModelState]]:
    for trace in found:
        led = next(extend_to_leader(protocol, case.constants, trace), None)
        if led is not None:
            yield trace, led.last


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_detectors_report_what_the_model_loses(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    protocol, count = PROTOCOLS[case.protocol], ceil(TRACES * case.weight / WEIGHT)
    counts: Counter[str] = Counter()
    gaps = Random(f"holes {case}")
    for trace, last in endings(case, protocol, count):
        watched = watch(protocol, case.constants, trace, last)
        counts["traces"] += 1
        context = (
            f"{_actions(trace)}; then {last.logs} with leader {last.quorum.leader} "
            f"in epoch {last.quorum.leader_epoch}"
        )
        if case.safe:
            assert not watched.names & {LOSS, DIVERGENCE}, context
        else:
            counts.update(judge_loss(protocol, watched, last, context))
            counts.update(judge_divergence(protocol, watched, last, context))
        if counts["traces"] % 3:
            continue
        partly = watch_with_gaps(protocol, case.constants, trace, gaps)
        assert all(claim.proven <= claim.lost for claim in partly.claims), context
        assert not case.safe or not partly.names & {LOSS, DIVERGENCE}, context
        counts["claims despite gaps"] += bool(partly.claims)
    with capsys.disabled():
        print(
            f"\n  {case}: "
            + ", ".join(f"{number} {what}" for what, number in counts.items() if number),
            end="",
        )
    assert counts["traces"] == count


@pytest.mark.parametrize(("name", "faults"), [("kip-101", {}), ("kip-101", UNCLEAN)])
def test_what_the_leaders_lineage_alone_proves_is_lost(name: str, faults: dict[str, bool]) -> None:
    """Kafka 0.11 to 2.0: metadata and followers show no leader epoch."""
    protocol, case = PROTOCOLS[name], Case(name, WIDE._replace(**faults), 1, 0.2, walk=60)
    counts = Counter[str]()
    for trace, last in endings(case, protocol, ceil(TRACES / 50)):
        watched = watch(protocol, case.constants, trace, last, metadata_epochs=False)
        context = f"{_actions(trace)}; then {last.logs} with leader {last.quorum.leader}"
        assert all(claim.proven <= claim.lost for claim in watched.claims), context
        lost = watched.lost(last)
        counts["lost"] += bool(lost)
        counts["claimed"] += bool(lost & watched.proven)
    assert counts["claimed"] > 0 or not faults, counts


def judge_loss(
    protocol: Protocol, watched: WatchedPartition, last: ModelState, context: str
) -> Iterator[str]:
    """Every claimed offset is lost, and every provable loss is claimed."""
    assert all(claim.proven <= claim.lost for claim in watched.claims), context
    lost = watched.lost(last)
    if not lost:
        return
    yield "with a loss"
    if protocol.leader_epochs:
        provable = watched.lost(last, provable=True)
        assert provable <= watched.proven, context
        if lost - watched.proven:
            yield "of them with a zombie's records in place of lost ones"
    elif not watched.claims:
        # Overwritten before two passes saw the short log. There are no epochs to prove it.
        assert watched.short_passes < 2, context
        # A suspected loss replaces the truncation or the regression behind it.
        if watched.names & {"KafkaLogTruncation", "KafkaHwRegression", "KafkaLossRisk"}:
            yield "of them overwritten before two passes saw it"
        else:
            yield from judge_fork(watched, last, min(lost), context)


def judge_fork(
    watched: WatchedPartition, last: ModelState, lost: int, context: str
) -> Iterator[str]:
    """No log became shorter: the leader kept its own record where another one was committed.

    Offsets do not show that. Another replica still has the other record, and an audit finds it.
    """
    leader = last.quorum.leader
    assert leader is not None
    assert lost < len(last.logs[leader]), context
    diverging = [
        replica
        for replica, log in enumerate(last.logs)
        if lost < len(log) and log[lost] != last.logs[leader][lost]
    ]
    assert diverging, context
    audit_finds(watched, last, leader, diverging[0], context)
    yield "of them a fork that content alone shows"


def judge_divergence(
    protocol: Protocol, watched: WatchedPartition, last: ModelState, context: str
) -> Iterator[str]:
    """A follower that differs after its truncation is found, by its lineage or its content."""
    leader = last.quorum.leader
    assert leader is not None
    followers = [
        replica
        for replica, local in enumerate(last.replicas)
        if (local.leader, local.leader_epoch) == (leader, last.quorum.leader_epoch)
        and replica != leader
    ]
    if protocol.kraft:
        # It truncates in fetches, and no state says when it is done: this completes it.
        for follower in followers:
            end = where_to_truncate(protocol.truncation, last, leader, follower)
            yield from ("with a truncation in fetches",) if end < len(last.logs[follower]) else ()
            log = last.logs[follower][:end]
            last = with_replica(last, follower, last.replicas[follower], log)
    diverging = [
        follower
        for follower in followers
        if first_difference(last.logs[leader], last.logs[follower]) is not None
    ]
    if not diverging:
        return
    yield "with a divergence"
    for _ in range(4):
        watched.observe(last, seconds=10.0)
    if protocol.leader_epochs and any(
        shows_by_lineage(last, leader, follower) for follower in diverging
    ):
        assert DIVERGENCE in watched.names, context
    if DIVERGENCE in watched.names:
        yield "of them shown by lineages"
        return
    audit_finds(watched, last, leader, diverging[0], context)
    yield "of them shown by content alone"


def audit_finds(
    watched: WatchedPartition, last: ModelState, leader: int, other: int, context: str
) -> None:
    """An audit reports a divergence if two logs differ below the high watermark."""
    watched.audit(last, leader, other)
    offset = first_difference(last.logs[leader], last.logs[other])
    assert offset is not None, context
    assert DIVERGENCE in watched.names or offset >= last.replicas[leader].high_watermark, context


def shows_by_lineage(last: ModelState, leader: int, follower: int) -> bool:
    """Whether the epochs alone show it: both logs have a record at an offset, of different epochs.

    The leader's current epoch does not count, because its end still moves. A later epoch of the
    follower counts only if the leader does not have that epoch.
    """
    log, other = last.logs[leader], last.logs[follower]
    epochs = {record.epoch for record in log}
    newest = other[-1].epoch
    if newest not in epochs and newest < last.quorum.leader_epoch:
        return True
    return newest < last.quorum.leader_epoch and len(other) > end_offset_for(log, newest)[1] > 0


def _actions(trace: Trace) -> str:
    return " > ".join(f"{step.action.name}{step.action.arguments}" for step in trace.steps)
