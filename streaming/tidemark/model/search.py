"""The search: breadth first for the shortest way to break an invariant, random walks where the space is too large.

Every state is kept once, with the state that it was first reached from; the actions between are found again when a
counterexample is told. No symmetry is used, so counts are those of the space itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple

from tidemark.model.action import Action, Trace, successors
from tidemark.model.invariants import Invariant
from tidemark.model.protocols.protocol import Protocol
from tidemark.model.shrink import shrunk
from tidemark.model.state import ClusterState, Constants, initial
from tidemark.model.traces import random_walk

MAX_STATES: Final = 1_000_000
PROGRESS_EVERY: Final = 5_000

Progress = Callable[[int], None]


class Verdict(NamedTuple):
    """What a search found. `holds` is None when it saw only a part of the space and nothing broke in it.

    `states` counts distinct states; `invariant` is the one that broke, None when none did.
    """

    holds: bool | None
    complete: bool
    states: int
    invariant: Invariant | None = None
    trace: Trace | None = None


def check(
    protocol: Protocol,
    constants: Constants,
    invariants: Sequence[Invariant],
    max_states: int = MAX_STATES,
    progress: Progress | None = None,
) -> Verdict:
    """Breadth first over the whole space, or its first `max_states` states. A counterexample is as short as there is.

    The ghosts are kept only if an invariant reads them, for they make the space larger.
    """
    constants = constants._replace(history=any(invariant.needs_history for invariant in invariants))
    first = initial(constants)
    parents: dict[ClusterState, ClusterState | None] = {first: None}
    found = _broken(first, constants, invariants)
    if found is not None:
        return Verdict(
            holds=False, complete=False, states=1, invariant=found, trace=Trace(first, ())
        )
    rules = [action.successors for action in protocol.actions]
    frontier = [first]
    reported = 0
    while frontier:
        following: list[ClusterState] = []
        for state in frontier:
            for rule in rules:
                for _, successor in rule(constants, state):
                    if successor in parents:
                        continue
                    if len(parents) >= max_states:
                        return Verdict(holds=None, complete=False, states=len(parents))
                    parents[successor] = state
                    found = _broken(successor, constants, invariants)
                    if found is not None:
                        trace = _path(protocol.actions, constants, parents, successor)
                        return Verdict(
                            holds=False,
                            complete=False,
                            states=len(parents),
                            invariant=found,
                            trace=trace,
                        )
                    following.append(successor)
            if progress is not None and len(parents) - reported >= PROGRESS_EVERY:
                progress(len(parents) - reported)
                reported = len(parents)
        frontier = following
    return Verdict(holds=True, complete=True, states=len(parents))


def walk(
    protocol: Protocol,
    constants: Constants,
    invariants: Sequence[Invariant],
    random: Random,
    max_states: int = MAX_STATES,
    progress: Progress | None = None,
) -> Verdict:
    """Random walks until something breaks or `max_states` distinct states were seen. What breaks is shrunk before it is told.

    Ends, too, when as many steps were taken as states are allowed ten times over: a small space has no more to show.
    """
    seen: set[ClusterState] = set()
    reported = taken = 0
    while len(seen) < max_states and taken < 10 * max_states:
        trace = random_walk(protocol, constants, random)
        taken += len(trace.steps) + 1
        for length, state in enumerate(trace.states):
            if state in seen:
                continue
            if len(seen) >= max_states:
                return Verdict(holds=None, complete=False, states=len(seen))
            seen.add(state)
            found = _broken(state, constants, invariants)
            if found is not None:
                short = shrunk(
                    protocol.actions, constants, Trace(trace.initial, trace.steps[:length]), found
                )
                return Verdict(
                    holds=False, complete=False, states=len(seen), invariant=found, trace=short
                )
        if progress is not None and len(seen) - reported >= PROGRESS_EVERY:
            progress(len(seen) - reported)
            reported = len(seen)
    return Verdict(holds=None, complete=False, states=len(seen))


def _broken(
    state: ClusterState, constants: Constants, invariants: Sequence[Invariant]
) -> Invariant | None:
    for invariant in invariants:
        if not invariant.holds(constants, state):
            return invariant
    return None


def _path(
    actions: tuple[Action, ...],
    constants: Constants,
    parents: dict[ClusterState, ClusterState | None],
    last: ClusterState,
) -> Trace:
    """The way to a state, with the actions found again."""
    states = [last]
    while (parent := parents[states[-1]]) is not None:
        states.append(parent)
    states.reverse()
    steps = [
        next(s for s in successors(actions, constants, a) if s.state == b)
        for a, b in pairwise(states)
    ]
    return Trace(states[0], tuple(steps))
