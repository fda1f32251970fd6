"""The search finds the known counterexamples, and claims no more than it has searched.

Its traces are valid runs, distinct, and can be extended to a state with a leader.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from random import Random

import pytest

from tests.model.golden import FOLDER, assert_golden
from tidemark_lab.model.action import Action, Successors, Trace, successors
from tidemark_lab.model.invariants import INVARIANTS, Invariant
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.render import action_text, trace_lines
from tidemark_lab.model.search import SearchResult, check, walk
from tidemark_lab.model.state import Constants, ModelState, initial, true_leader
from tidemark_lab.model.traces import extend_to_leader, random_traces, shortest_traces

# Two replicas, logs of two records, two records in total, leader epochs 0 to 2.
SMALL = Constants()
ALL = list(INVARIANTS.values())
# Steps of the shortest counterexample in that space. Every other invariant holds in all of it.
SHORTEST = {
    ("truncate-to-hw", "WeakIsr"): 8,
    ("truncate-to-hw", "StrongIsr"): 9,
    ("truncate-to-hw", "LogMatching"): 14,
    ("truncate-to-hw", "LeaderCompleteness"): 11,
    ("truncate-to-hw", "ConsistentRead"): 14,
    ("truncate-to-hw", "AckedNeverLost"): 11,
    ("kip-101", "WeakIsr"): 11,
    ("kip-101", "StrongIsr"): 11,
    ("kip-279-first-record", "WeakIsr"): 11,
    ("kip-279-first-record", "StrongIsr"): 11,
    ("kip-279", "WeakIsr"): 10,
    ("kip-279", "StrongIsr"): 10,
}


def search(
    protocol: str, invariant: str, constants: Constants = SMALL, max_states: int = 1_000_000
) -> SearchResult:
    return check(PROTOCOLS[protocol], constants, [INVARIANTS[invariant]], max_states)


def assert_is_a_run(protocol: Protocol, constants: Constants, trace: Trace) -> None:
    """Asserts that the action of every step allows it in the state before."""
    for before, step in zip(trace.states, trace.steps, strict=False):
        assert step in list(successors(protocol.actions, constants, before))


@pytest.mark.parametrize(("protocol", "invariant"), SHORTEST)
def test_the_shortest_counterexample(protocol: str, invariant: str) -> None:
    verdict = search(protocol, invariant)
    assert (verdict.holds, verdict.complete) == (False, False)
    assert verdict.trace is not None and len(verdict.trace.steps) == SHORTEST[protocol, invariant]
    broken = INVARIANTS[invariant].holds
    assert [broken(SMALL, state) for state in verdict.trace.states] == [True] * len(
        verdict.trace.steps
    ) + [False]
    assert_golden(f"counterexamples/{protocol}.{invariant}", trace_lines(verdict.trace))


@pytest.mark.parametrize("protocol", ["kip-320-first-try", "kip-320", "kip-966"])
def test_two_replicas_keep_every_invariant_over_the_whole_space(protocol: str) -> None:
    verdict = check(PROTOCOLS[protocol], SMALL, ALL)
    assert (verdict.holds, verdict.complete, verdict.trace) == (True, True, None)
    # A space with few states would prove little.
    assert verdict.states > 5_000


# Two quick elections need one more record and epoch: the reason for KIP-279.
LONGER = SMALL._replace(records=3, max_epoch=3)
THREE_REPLICAS = SMALL._replace(replicas=3)


@pytest.mark.parametrize(
    ("protocol", "invariant", "space", "constants", "steps"),
    [
        ("kip-101", "LogMatching", "epochs-to-3", LONGER, 12),
        ("kip-101", "LeaderCompleteness", "epochs-to-3", LONGER, 13),
        ("kip-101", "ConsistentRead", "epochs-to-3", LONGER, 14),
        ("kip-101", "AckedNeverLost", "epochs-to-3", LONGER, 13),
        ("kip-279", "AckedNeverLost", "epochs-to-3", LONGER, 12),
        *(
            pytest.param(
                "kip-320-first-try",
                invariant,
                "three-replicas",
                THREE_REPLICAS,
                steps,
                marks=pytest.mark.soak,
            )
            for invariant, steps in (("WeakIsr", 11), ("StrongIsr", 12))
        ),
    ],
)
def test_a_larger_space_breaks_more_invariants(
    protocol: str, invariant: str, space: str, constants: Constants, steps: int
) -> None:
    verdict = search(protocol, invariant, constants)
    assert verdict.trace is not None and len(verdict.trace.steps) == steps
    assert protocol not in INVARIANTS[invariant].holds_where
    assert_golden(f"counterexamples/{protocol}.{invariant}.{space}", trace_lines(verdict.trace))


@pytest.mark.parametrize("invariant", ["WeakIsr", "StrongIsr"])
def test_the_rejected_design_of_kip_320_breaks_as_its_counterexample_says(invariant: str) -> None:
    """Plays the committed counterexample, which a search in `make soak` finds.

    KIP-320 itself does not allow its steps: a fetch of an older leadership is fenced.
    """
    rejected, protocol = PROTOCOLS["kip-320-first-try"], PROTOCOLS["kip-320"]
    path = FOLDER / "counterexamples" / f"kip-320-first-try.{invariant}.three-replicas.txt"
    rows = [row for row in path.read_text(encoding="utf-8").splitlines() if row[:1].isdigit()]
    trace = Trace(initial(THREE_REPLICAS), ())
    for row in rows[1:]:
        step = next(
            step
            for step in successors(rejected.actions, THREE_REPLICAS, trace.last)
            if f" {action_text(step.action)} " in row
        )
        trace = Trace(trace.initial, (*trace.steps, step))
    holds = [INVARIANTS[invariant].holds(THREE_REPLICAS, state) for state in trace.states]
    assert holds == [True] * len(trace.steps) + [False]
    assert trace_lines(trace) == path.read_text(encoding="utf-8").splitlines()
    # A follower of an older leadership of the same broker fetches.
    fetch = [step.action.name for step in trace.steps].index("FollowerFetch")
    fenced = successors(protocol.actions, THREE_REPLICAS, trace.states[fetch])
    assert "FencedFollowerFetch" not in {step.action.name for step in fenced}


@pytest.mark.parametrize(
    ("protocol", "invariant", "constants"),
    [
        ("kip-320", "LeaderCompleteness", SMALL._replace(lossy_disk=True)),
        ("kip-320", "LeaderCompleteness", SMALL._replace(unclean_election=True)),
        ("kip-966", "LeaderCompleteness", SMALL._replace(unclean_election=True)),
        ("kip-966", "AckedNeverLost", SMALL._replace(unclean_election=True)),
        # The last known leader is elected without a permission, whatever its disk has lost.
        ("kip-966", "AckedNeverLost", SMALL._replace(lossy_disk=True)),
        ("kip-966", "AckedNeverLost", SMALL._replace(lossy_disk=True, min_isr=2)),
    ],
)
def test_faults_break_every_protocol(protocol: str, invariant: str, constants: Constants) -> None:
    verdict = search(protocol, invariant, constants)
    assert verdict.holds is False and verdict.trace is not None
    fault = "lossy-disk" if constants.lossy_disk else "unclean-election"
    fault += f".min-isr-{constants.min_isr}" * (constants.min_isr > 1)
    used = {step.action.name for step in verdict.trace.steps}
    assert ("LoseUnflushed" if constants.lossy_disk else "ControllerElectUncleanLeader") in used
    last_known = protocol == "kip-966" and constants.lossy_disk
    assert ("ControllerElectLastKnownLeader" in used) == last_known
    assert_golden(f"counterexamples/{protocol}.{invariant}.{fault}", trace_lines(verdict.trace))


def lossy_where(
    protocol: Protocol, may_lose: Callable[[ModelState, int | None, ModelState], bool]
) -> Protocol:
    """Machines fail only where `may_lose` (state before, replica, state after) says so."""

    def limited(action: Action) -> Action:
        def rule(constants: Constants, state: ModelState) -> Successors:
            for arguments, after in action.successors(constants, state):
                if may_lose(state, arguments[0], after):
                    yield arguments, after

        return action._replace(successors=rule) if action.name == "LoseUnflushed" else action

    return protocol._replace(actions=tuple(limited(action) for action in protocol.actions))


def only_first_replica_is_lossy(protocol: Protocol) -> Protocol:
    """The protocol in which only the first machine can lose unflushed records."""
    return lossy_where(protocol, lambda _before, replica, _after: replica == 0)


TINY = Constants(log_size=1, records=1, max_epoch=1, min_isr=2, lossy_disk=True)


def test_one_lossy_machine_breaks_kip_320_and_not_kip_966() -> None:
    lossy_320, lossy_966 = (
        only_first_replica_is_lossy(PROTOCOLS[name]) for name in ("kip-320", "kip-966")
    )
    assert check(lossy_320, TINY, [INVARIANTS["LeaderCompleteness"]]).holds is False
    verdict = check(
        lossy_966,
        TINY,
        [INVARIANTS["LeaderCompleteness"], INVARIANTS["AckedNeverLost"], INVARIANTS["StrongIsr"]],
    )
    assert (verdict.holds, verdict.complete) == (True, True)
    assert verdict.states > 1_000


@pytest.mark.parametrize("min_isr", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_killed_processes_lose_nothing_under_kip_966(min_isr: int) -> None:
    """The last known leader can be elected, and its log has every committed record."""
    protocol = lossy_where(
        PROTOCOLS["kip-966"], lambda before, _replica, after: after.logs == before.logs
    )
    constants = TINY._replace(min_isr=min_isr, max_epoch=2)

    def may_not_return(_constants: Constants, state: ModelState) -> bool:
        quorum = state.quorum
        return quorum.last_known_leader is None or bool(quorum.elr)

    trace = check(protocol, constants, [Invariant("", "", "", "", may_not_return)]).trace
    assert trace is not None
    names = {step.action.name for step in successors(protocol.actions, constants, trace.last)}
    assert "ControllerElectLastKnownLeader" in names
    verdict = check(protocol, constants, ALL)
    assert (verdict.holds, verdict.complete) == (True, True)


@pytest.mark.soak
@pytest.mark.parametrize("protocol", ["kip-320", "kip-966"])
def test_three_replicas_break_nothing_within_the_cap(protocol: str) -> None:
    verdict = check(PROTOCOLS[protocol], THREE_REPLICAS, ALL)
    assert verdict.holds is not False


@pytest.mark.parametrize(
    ("protocol", "constants", "invariants"),
    [
        *(
            pytest.param(
                PROTOCOLS[name],
                SMALL,
                [invariant for invariant in ALL if (name, invariant.name) not in SHORTEST],
                id=f"{name}, the other invariants",
            )
            for name in ("truncate-to-hw", "kip-101", "kip-279")
        ),
        pytest.param(
            only_first_replica_is_lossy(PROTOCOLS["kip-966"]),
            SMALL._replace(min_isr=2, lossy_disk=True),
            [INVARIANTS["LeaderCompleteness"]],
            marks=pytest.mark.soak,
            id="kip-966, one lossy machine",
        ),
        pytest.param(
            PROTOCOLS["kip-320"],
            THREE_REPLICAS,
            [INVARIANTS[name] for name in ("TypeOk", "LeaderInIsr", "WeakIsr", "StrongIsr")],
            marks=pytest.mark.soak,
            id="kip-320, its theorems for three replicas",
        ),
        pytest.param(PROTOCOLS["kip-320"], SMALL._replace(min_isr=2), ALL, id="kip-320, min ISR 2"),
        # This covers the eligible leader replicas.
        pytest.param(
            PROTOCOLS["kip-966"],
            SMALL._replace(min_isr=2, max_epoch=1),
            ALL,
            id="kip-966, min ISR 2",
        ),
    ],
)
def test_a_whole_space_keeps_its_invariants(
    protocol: Protocol, constants: Constants, invariants: list[Invariant]
) -> None:
    verdict = check(protocol, constants, invariants)
    assert (verdict.holds, verdict.complete) == (True, True)
    assert (verdict.invariant, verdict.trace) == (None, None)


def test_a_search_that_reaches_the_cap_claims_nothing() -> None:
    verdict = check(PROTOCOLS["kip-320"], SMALL, ALL, max_states=500)
    assert verdict == SearchResult(holds=None, complete=False, states=500)
    whole = check(PROTOCOLS["kip-320"], SMALL, ALL)
    assert check(PROTOCOLS["kip-320"], SMALL, ALL, max_states=whole.states).holds is True


def test_progress_is_reported_during_the_search() -> None:
    reported: list[int] = []
    verdict = check(PROTOCOLS["kip-320-first-try"], SMALL, ALL, progress=reported.append)
    assert len(reported) >= 2 and 0 < verdict.states - sum(reported) < 6_000


def test_a_walk_finds_a_counterexample_and_shrinks_it() -> None:
    constants = THREE_REPLICAS
    verdict = walk(
        PROTOCOLS["kip-101"], constants, [INVARIANTS["StrongIsr"]], Random(7), max_states=100_000
    )
    assert verdict.holds is False and verdict.trace is not None
    assert_is_a_run(PROTOCOLS["kip-101"], constants, verdict.trace)
    holds = [INVARIANTS["StrongIsr"].holds(constants, state) for state in verdict.trace.states]
    assert holds == [True] * len(verdict.trace.steps) + [False]
    # The shortest counterexample has ten steps, a walk has sixty.
    assert 10 <= len(verdict.trace.steps) <= 16


def test_the_same_seed_gives_the_same_walks() -> None:
    one, other = (walk(PROTOCOLS["truncate-to-hw"], SMALL, ALL, Random(3)) for _ in range(2))
    assert one == other
    assert one.trace != walk(PROTOCOLS["truncate-to-hw"], SMALL, ALL, Random(4)).trace


def test_a_walk_never_claims_that_something_holds() -> None:
    verdict = walk(PROTOCOLS["kip-320"], SMALL, ALL, Random(1), max_states=2_000)
    assert verdict == SearchResult(holds=None, complete=False, states=2_000)
    # The walks also end in a space that is smaller than the cap.
    tiny = Constants(log_size=1, records=1, max_epoch=0)
    assert walk(PROTOCOLS["kip-320"], tiny, ALL, Random(1), max_states=500).states < 500


def test_shortest_traces_are_distinct_and_cover_the_space() -> None:
    tiny = Constants(log_size=1, records=1, max_epoch=1)
    found = list(shortest_traces(PROTOCOLS["kip-320"], tiny))
    assert (
        len({trace.last for trace in found})
        == len(found)
        == check(PROTOCOLS["kip-320"], tiny, ALL).states
    )
    for trace in found[::50]:
        assert_is_a_run(PROTOCOLS["kip-320"], tiny, trace)
    assert len(list(shortest_traces(PROTOCOLS["kip-320"], SMALL, max_traces=300))) == 300


def test_random_traces_are_distinct() -> None:
    found = list(islice(random_traces(PROTOCOLS["kip-966"], SMALL, Random(5), steps=20), 200))
    assert len({trace.states for trace in found}) == 200
    assert_is_a_run(PROTOCOLS["kip-966"], SMALL, found[0])


def test_random_traces_end_when_there_are_no_new_ones() -> None:
    nothing = Constants(replicas=1, log_size=1, records=0, max_epoch=0)
    assert len(list(random_traces(PROTOCOLS["kip-320"], nothing, Random(5)))) < 10


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_trace_can_be_extended_to_a_leader(protocol: str) -> None:
    wider = SMALL._replace(max_epoch=SMALL.max_epoch + 1)
    led = 0
    for trace in islice(shortest_traces(PROTOCOLS[protocol], SMALL), 0, 3_000, 30):
        ways = list(extend_to_leader(PROTOCOLS[protocol], SMALL, trace))
        quorum = trace.last.quorum
        assert ways or not (quorum.isr or quorum.elr or quorum.last_known_leader is not None)
        for longer in ways:
            led += 1
            assert longer.steps[: len(trace.steps)] == trace.steps
            assert true_leader(longer.last) is not None
            assert_is_a_run(PROTOCOLS[protocol], wider, longer)
    assert led > 100
