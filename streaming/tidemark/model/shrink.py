"""Makes a counterexample of a random walk shorter: steps are left out as long as the same invariant still breaks."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.model.action import Action, Step, Taken, Trace, successors
from tidemark.model.invariants import Invariant
from tidemark.model.state import ClusterState, Constants


def shrunk(
    actions: tuple[Action, ...], constants: Constants, trace: Trace, invariant: Invariant
) -> Trace:
    """A trace that breaks `invariant` at its last step and of which no step can be left out alone."""
    best = (
        _replay(actions, constants, trace.initial, [step.action for step in trace.steps], invariant)
        or trace
    )
    size = max(len(best.steps) // 2, 1)
    while True:
        shorter = _without_some(actions, constants, best, invariant, size)
        if shorter is not None:
            best = shorter
        elif size == 1:
            return best
        else:
            size //= 2


def _without_some(
    actions: tuple[Action, ...], constants: Constants, trace: Trace, invariant: Invariant, size: int
) -> Trace | None:
    taken = [step.action for step in trace.steps]
    for start in range(len(taken)):
        found = _replay(
            actions, constants, trace.initial, taken[:start] + taken[start + size :], invariant
        )
        if found is not None and len(found.steps) < len(trace.steps):
            return found
    return None


def _replay(
    actions: tuple[Action, ...],
    constants: Constants,
    first: ClusterState,
    taken: Sequence[Taken],
    invariant: Invariant,
) -> Trace | None:
    """Takes the actions again where they are possible, up to the first broken state; None when nothing breaks."""
    state, steps = first, list[Step]()
    for wanted in taken:
        step = next(
            (s for s in successors(actions, constants, state) if _same(s.action, wanted)), None
        )
        if step is None:
            continue
        steps.append(step)
        state = step.state
        if not invariant.holds(constants, state):
            return Trace(first, tuple(steps))
    return None


def _same(one: Taken, other: Taken) -> bool:
    """The same action on the same replicas. Epochs move when an election is left out, so any epoch will do: the first is taken."""

    def replicas(taken: Taken) -> list[int | None]:
        return [
            value
            for name, value in zip(taken.parameters, taken.arguments, strict=True)
            if "epoch" not in name
        ]

    return one.name == other.name and replicas(one) == replicas(other)
