"""The tie between model and detectors: what the model does to data, Tidemark says, and it says nothing else.

Ten thousand traces in `make test`, a hundred thousand in `make soak` (TIE_TRACES sets the number). The truth is the model's:
see `watched`. What it is held against are the detectors as they are configured by default, through the whole reducer.
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

from tests.tie.watched import DIVERGENCE, LOSS, Watched, watch, watch_through_holes
from tidemark.model.action import Trace
from tidemark.model.invariants import INVARIANTS
from tidemark.model.log import end_offset_for, parting
from tidemark.model.protocols import PROTOCOLS
from tidemark.model.protocols.protocol import Protocol
from tidemark.model.state import ClusterState, Constants, with_log
from tidemark.model.traces import random_traces, traces, until_led
from tidemark.model.truth import diverging_replicas, lost_offsets

TRACES = int(os.environ.get("TIE_TRACES", "10000"))
SMALL = Constants(replicas=2, log_size=2, records=2, max_epoch=2)
WIDE = Constants(replicas=3, log_size=3, records=3, max_epoch=3)


class Case(NamedTuple):
    """A protocol, what bounds it and what may fail; `searched` of its traces come breadth first, the rest from walks."""

    protocol: str
    constants: Constants
    weight: int
    searched: float = 0.85
    safe: bool = False
    # How many states of the search are looked at for broken ones, and the steps of a walk.
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
    Case("kip-279", SMALL, 4, safe=True),
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
    Case("kip-966", WIDE._replace(**LOSSY), 2, safe=True),
)
WEIGHT = sum(case.weight for case in CASES)


def endings(case: Case, protocol: Protocol, count: int) -> Iterator[tuple[Trace, ClusterState]]:
    """Distinct traces, each with the elected leader under whom it ends; those that can elect nobody any more are left out."""
    searched = round(count * case.searched)
    reached = list(islice(traces(protocol, case.constants), case.reach))
    # The farthest first; before them the states in which something is broken.
    reached.reverse()
    reached.sort(
        key=lambda trace: all(each.holds(case.constants, trace.last) for each in BREAKABLE)
    )
    by_search = _led(case, protocol, reached)
    walks = random_traces(protocol, case.constants, Random(str(case)), case.walk)
    by_walks = _led(case, protocol, walks if case.safe else _telling(walks))
    # Walks make up for what the search does not have.
    seen: set[int] = set()
    for trace, last in chain(islice(by_search, searched), by_walks):
        mark = hash(trace.states)
        if mark not in seen:
            seen.add(mark)
            yield trace, last
        if len(seen) == count:
            return


def _telling(walks: Iterator[Trace], draws: int = 10) -> Iterator[Trace]:
    """Of the walks, every other the first of `draws` in which something is lost or parts: by chance alone one in thirty does."""
    for walk in walks:
        yield walk
        drawn = walk
        for drawn in islice(walks, draws):
            if any(lost_offsets(state) or diverging_replicas(state) for state in drawn.states):
                break
        if drawn is not walk:
            yield drawn


def _led(
    case: Case, protocol: Protocol, found: Iterable[Trace]
) -> Iterator[tuple[Trace, ClusterState]]:
    for trace in found:
        led = next(until_led(protocol, case.constants, trace), None)
        if led is not None:
            yield trace, led.last


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tie(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    protocol, count = PROTOCOLS[case.protocol], ceil(TRACES * case.weight / WEIGHT)
    counts: Counter[str] = Counter()
    holes = Random(f"holes {case}")
    for trace, last in endings(case, protocol, count):
        watched = watch(protocol, case.constants, trace, last)
        counts["traces"] += 1
        told = f"{_told(trace)}; then {last.logs} under leader {last.quorum.leader} of epoch {last.quorum.leader_epoch}"
        if case.safe:
            assert not watched.names & {LOSS, DIVERGENCE}, told
        else:
            counts.update(judge_loss(protocol, watched, last, told))
            counts.update(judge_divergence(protocol, watched, last, told))
        if counts["traces"] % 3:
            continue
        partly = watch_through_holes(protocol, case.constants, trace, holes)
        assert all(claim.proven <= claim.lost for claim in partly.claims), told
        assert not case.safe or not partly.names & {LOSS, DIVERGENCE}, told
        counts["claims through holes"] += bool(partly.claims)
    with capsys.disabled():
        print(
            f"\n  {case}: "
            + ", ".join(f"{number} {what}" for what, number in counts.items() if number),
            end="",
        )
    assert counts["traces"] == count


def judge_loss(
    protocol: Protocol, watched: Watched, last: ClusterState, told: str
) -> Iterator[str]:
    """No offset is claimed that is not gone; none that is provably gone is left out."""
    assert all(claim.proven <= claim.lost for claim in watched.claims), told
    lost = watched.lost(last)
    if not lost:
        return
    yield "with a loss"
    if protocol.leader_epochs:
        provable = watched.lost(last, provable=True)
        assert provable <= watched.proven, told
        if lost - watched.proven:
            yield "of them with a zombie's records in the place of lost ones"
    elif not watched.claims:
        # Overwritten before two passes saw the leader short: the epochs that would tell do not exist yet.
        assert watched.short_looks < 2, told
        # A suspicion of loss says more than the truncation or the regression that it comes from.
        if watched.names & {"KafkaLogTruncation", "KafkaHwRegression", "KafkaLossRisk"}:
            yield "of them overwritten before two passes saw it"
        else:
            yield from judge_fork(watched, last, min(lost), told)


def judge_fork(watched: Watched, last: ClusterState, lost: int, told: str) -> Iterator[str]:
    """Nothing was ever seen to get shorter: the leader kept a record of its own where another was committed.

    No offset tells that. The other record is still on a replica, and comparing batches finds it.
    """
    leader = last.quorum.leader
    assert leader is not None
    assert lost < len(last.logs[leader]), told
    parted = [
        replica
        for replica, log in enumerate(last.logs)
        if lost < len(log) and log[lost] != last.logs[leader][lost]
    ]
    assert parted, told
    audit_finds(watched, last, leader, parted[0], told)
    yield "of them a fork that content alone shows"


def judge_divergence(
    protocol: Protocol, watched: Watched, last: ClusterState, told: str
) -> Iterator[str]:
    """A follower that has truncated for its leader's epoch and still parts from it is found, by its lineage or its content."""
    leader = last.quorum.leader
    assert leader is not None
    followers = [
        replica
        for replica, believed in enumerate(last.replicas)
        if (believed.leader, believed.leader_epoch) == (leader, last.quorum.leader_epoch)
        and replica != leader
    ]
    if protocol.kraft:
        # It truncates in fetches, as many as it takes: no state of the model says that it is done, so they are made here.
        for follower in followers:
            end = protocol.truncation(
                last.logs[leader], last.logs[follower], last.replicas[follower].high_watermark
            )
            yield from ("with a truncation in fetches",) if end < len(last.logs[follower]) else ()
            last = last._replace(logs=with_log(last, follower, last.logs[follower][:end]))
    parted = [
        follower
        for follower in followers
        if parting(last.logs[leader], last.logs[follower]) is not None
    ]
    if not parted:
        return
    yield "with a divergence"
    for _ in range(4):
        watched.look(last, seconds=10.0)
    if protocol.leader_epochs and any(
        shows_by_lineage(last, leader, follower) for follower in parted
    ):
        assert DIVERGENCE in watched.names, told
    if DIVERGENCE in watched.names:
        yield "of them shown by lineages"
        return
    audit_finds(watched, last, leader, parted[0], told)
    yield "of them shown by content alone"


def audit_finds(watched: Watched, last: ClusterState, leader: int, other: int, told: str) -> None:
    """A comparison of two replicas' batches raises a divergence where they part below what is committed."""
    watched.audit(last, leader, other)
    offset = parting(last.logs[leader], last.logs[other])
    assert offset is not None, told
    assert DIVERGENCE in watched.names or offset >= last.replicas[leader].high_watermark, told


def shows_by_lineage(last: ClusterState, leader: int, follower: int) -> bool:
    """Whether the epochs alone, offset by offset, show it: an offset at which both hold a record, of different epochs.

    Not the leader's own epoch, which is still being written; and not where the follower's is the later of the two, unless
    the leader has no such epoch: a lineage tells of an epoch's end, and the leader's may go on.
    """
    log, other = last.logs[leader], last.logs[follower]
    epochs = {record.epoch for record in log}
    newest = other[-1].epoch
    if newest not in epochs and newest < last.quorum.leader_epoch:
        return True
    return newest < last.quorum.leader_epoch and len(other) > end_offset_for(log, newest)[1] > 0


def _told(trace: Trace) -> str:
    return " > ".join(f"{step.action.name}{step.action.arguments}" for step in trace.steps)
