"""The search for a violation: breadth first, or by random walks where the space is too large.

Every state is kept once, with the state from which it was first reached. The actions of a
counterexample are found again at the end. Symmetry is not used, so counts are those of the space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple

from tidemark_lab.model.action import Action, Trace, successors
from tidemark_lab.model.invariants import Invariant
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.shrink import shrink
from tidemark_lab.model.state import Constants, ModelState, initial
from tidemark_lab.model.traces import random_walk

MAX_STATES: Final = 1_000_000
PROGRESS_EVERY: Final = 5_000
# Random walks end after this many steps for each state that they may visit.
STEPS_PER_STATE: Final = 10

Progress = Callable[[int], None]


class SearchResult(NamedTuple):
    """The result of a search.

    `holds` is None if only a part of the space was searched and nothing broke. `states` counts
    distinct states. `invariant` is the one that broke, or None.
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
) -> SearchResult:
    """Searches breadth first, up to `max_states` states. A counterexample is as short as possible.

    The history variables are kept only if an invariant reads them: they make the space larger.
    """
    constants = constants._replace(history=any(invariant.needs_history for invariant in invariants))
    first = initial(constants)
    parents: dict[ModelState, ModelState | None] = {first: None}
    found = _first_broken(first, constants, invariants)
    if found is not None:
        return _broken(1, found, Trace(first, ()))
    rules = [action.successors for action in protocol.actions]
    frontier, states, setdefault = [first], 1, parents.setdefault
    while frontier:
        following: list[ModelState] = []
        for state in frontier:
            for rule in rules:
                for _, successor in rule(constants, state):
                    # One look-up: to hash a state takes a fifth of the search.
                    setdefault(successor, state)
                    if len(parents) == states:
                        continue
                    if states >= max_states:
                        return SearchResult(holds=None, complete=False, states=states)
                    states += 1
                    _report(progress, states)
                    found = _first_broken(successor, constants, invariants)
                    if found is not None:
                        trace = _trace_to(successor, protocol.actions, constants, parents)
                        return _broken(states, found, trace)
                    following.append(successor)
        frontier = following
    return SearchResult(holds=True, complete=True, states=len(parents))


def walk(
    protocol: Protocol,
    constants: Constants,
    invariants: Sequence[Invariant],
    random: Random,
    max_states: int = MAX_STATES,
    progress: Progress | None = None,
) -> SearchResult:
    """Random walks until an invariant breaks or `max_states` distinct states were visited.

    The counterexample is shrunk. The walks also end after STEPS_PER_STATE * max_states steps,
    because a small space has no more states to show.
    """
    seen: set[ModelState] = set()
    taken = 0
    while len(seen) < max_states and taken < STEPS_PER_STATE * max_states:
        trace = random_walk(protocol, constants, random)
        taken += len(trace.steps) + 1
        for length, state in enumerate(trace.states):
            if state in seen:
                continue
            if len(seen) >= max_states:
                return SearchResult(holds=None, complete=False, states=len(seen))
            seen.add(state)
            _report(progress, len(seen))
            found = _first_broken(state, constants, invariants)
            if found is not None:
                broken = Trace(trace.initial, trace.steps[:length])
                short = shrink(protocol.actions, constants, broken, found)
                return _broken(len(seen), found, short)
    return SearchResult(holds=None, complete=False, states=len(seen))


def _report(progress: Progress | None, states: int) -> None:
    if progress is not None and states % PROGRESS_EVERY == 0:
        progress(PROGRESS_EVERY)


def _broken(states: int, invariant: Invariant, trace: Trace) -> SearchResult:
    return SearchResult(
        holds=False, complete=False, states=states, invariant=invariant, trace=trace
    )


def _first_broken(
    state: ModelState, constants: Constants, invariants: Sequence[Invariant]
) -> Invariant | None:
    for invariant in invariants:
        if not invariant.holds(constants, state):
            return invariant
    return None


def _trace_to(
    last: ModelState,
    actions: tuple[Action, ...],
    constants: Constants,
    parents: dict[ModelState, ModelState | None],
) -> Trace:
    """The trace to a state, with its actions found again."""
    states = [last]
    while (parent := parents[states[-1]]) is not None:
        states.append(parent)
    states.reverse()
    steps = [
        next(step for step in successors(actions, constants, before) if step.state == after)
        for before, after in pairwise(states)
    ]
    return Trace(states[0], tuple(steps))
