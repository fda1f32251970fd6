"""Traces of a protocol: the shortest to each state, and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from tidemark_lab.model.action import Step, Trace, successors
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.state import Constants, initial, true_leader

MAX_TRACES: Final = 1_000_000
WALK_STEPS: Final = 60
# Random traces end after this many repetitions in a row.
MAX_REPETITIONS: Final = 100
# An election, and the elected replica that learns of it.
_ELECTION_STEPS: Final = 2
_ELECTION: Final = frozenset(
    {
        "ControllerElectLeader",
        "ControllerElectLastKnownLeader",
        "ControllerElectUncleanLeader",
        "BecomeLeader",
    }
)


def random_walk(
    protocol: Protocol, constants: Constants, random: Random, steps: int = WALK_STEPS
) -> Trace:
    """One random walk from the initial state.

    Each step chooses an action first, then one of its successors, so rare actions have a chance.
    """
    first = state = initial(constants)
    taken: list[Step] = []
    for _ in range(steps):
        choices: dict[str, list[Step]] = {}
        for step in successors(protocol.actions, constants, state):
            if step.state != state:
                choices.setdefault(step.action.name, []).append(step)
        if not choices:
            break
        step = random.choice(choices[random.choice(list(choices))])
        taken.append(step)
        state = step.state
    return Trace(first, tuple(taken))


def shortest_traces(
    protocol: Protocol, constants: Constants, max_traces: int = MAX_TRACES
) -> Iterator[Trace]:
    """A shortest trace to each state of the space, breadth first."""
    first = initial(constants)
    seen = {first}
    frontier = [Trace(first, ())]
    yield frontier[0]
    while frontier:
        following: list[Trace] = []
        for trace in frontier:
            for step in successors(protocol.actions, constants, trace.last):
                if step.state in seen:
                    continue
                if len(seen) >= max_traces:
                    return
                seen.add(step.state)
                longer = Trace(first, (*trace.steps, step))
                yield longer
                following.append(longer)
        frontier = following


def random_traces(
    protocol: Protocol, constants: Constants, random: Random, steps: int = WALK_STEPS
) -> Iterator[Trace]:
    """Distinct random walks, at most MAX_TRACES. Ends when MAX_REPETITIONS in a row are not new."""
    seen: set[int] = set()
    repetitions = 0
    while repetitions < MAX_REPETITIONS and len(seen) < MAX_TRACES:
        trace = random_walk(protocol, constants, random, steps)
        key = hash(trace.states)
        repetitions = repetitions + 1 if key in seen else 0
        if not repetitions:
            seen.add(key)
            yield trace


def extend_to_leader(protocol: Protocol, constants: Constants, trace: Trace) -> Iterator[Trace]:
    """The trace, extended by every possible election if it ends without a leader.

    The leader epoch may exceed `max_epoch` by one. Yields nothing where no replica can be elected.
    """
    wider = constants._replace(max_epoch=constants.max_epoch + 1)
    actions = tuple(action for action in protocol.actions if action.name in _ELECTION)

    def extend(found: Trace, more: int) -> Iterator[Trace]:
        if true_leader(found.last) is not None:
            yield found
        elif more:
            for step in successors(actions, wider, found.last):
                yield from extend(Trace(found.initial, (*found.steps, step)), more - 1)

    return extend(trace, _ELECTION_STEPS)
