"""Traces of a protocol, for whoever wants to know what its states look like from outside: each once, from search or by chance."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from tidemark.model.action import Step, Trace, successors
from tidemark.model.protocols.protocol import Protocol
from tidemark.model.state import Constants, initial, true_leader

MAX_TRACES: Final = 1_000_000
WALK_STEPS: Final = 60
# What brings a leader about: an election, and that the elected one hears of it.
_ELECTION: Final = frozenset(
    {"ControllerElectLeader", "ControllerElectUncleanLeader", "BecomeLeader"}
)


def random_walk(
    protocol: Protocol, constants: Constants, random: Random, steps: int = WALK_STEPS
) -> Trace:
    """One walk from the beginning: first an action, then one of its ways, each with equal chance; so rare actions are not drowned."""
    first = state = initial(constants)
    taken: list[Step] = []
    for _ in range(steps):
        ways: dict[str, list[Step]] = {}
        for step in successors(protocol.actions, constants, state):
            if step.state != state:
                ways.setdefault(step.action.name, []).append(step)
        if not ways:
            break
        step = random.choice(ways[random.choice(list(ways))])
        taken.append(step)
        state = step.state
    return Trace(first, tuple(taken))


def traces(
    protocol: Protocol, constants: Constants, max_traces: int = MAX_TRACES
) -> Iterator[Trace]:
    """The shortest trace to each state of the space, breadth first: all distinct, each as long as its state is far."""
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
    """Distinct random walks without end; ends when a hundred in a row brought nothing new. At most a million are remembered."""
    seen: set[int] = set()
    stale = 0
    while stale < 100 and len(seen) < MAX_TRACES:
        trace = random_walk(protocol, constants, random, steps)
        mark = hash(trace.states)
        stale = stale + 1 if mark in seen else 0
        if not stale:
            seen.add(mark)
            yield trace


def until_led(protocol: Protocol, constants: Constants, trace: Trace) -> Iterator[Trace]:
    """The trace, made longer by an election if nobody leads at its end, in every way in which one can go.

    The leader epoch may pass `max_epoch` by one. Nothing comes where nobody can be elected.
    """
    if true_leader(trace.last) is not None:
        yield trace
        return
    wider = constants._replace(max_epoch=constants.max_epoch + 1)
    actions = tuple(action for action in protocol.actions if action.name in _ELECTION)
    for step in successors(actions, wider, trace.last):
        for longer in (
            (step,),
            *((step, heard) for heard in successors(actions, wider, step.state)),
        ):
            if true_leader(longer[-1].state) is not None and all(
                true_leader(each.state) is None for each in longer[:-1]
            ):
                yield Trace(trace.initial, (*trace.steps, *longer))
