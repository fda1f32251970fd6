"""Shortens the counterexample of a random walk: removes steps while the same invariant breaks."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark_lab.model.action import Action, ActionCall, Step, Trace, successors
from tidemark_lab.model.invariants import Invariant
from tidemark_lab.model.state import Constants, ModelState


def shrink(
    actions: tuple[Action, ...], constants: Constants, trace: Trace, invariant: Invariant
) -> Trace:
    """A trace that breaks `invariant` at its last step and of which every single step is needed."""
    calls = [step.action for step in trace.steps]
    best = _replay(actions, constants, trace.initial, calls, invariant) or trace
    size = max(len(best.steps) // 2, 1)
    while True:
        shorter = _drop_steps(actions, constants, best, invariant, size)
        if shorter is not None:
            best = shorter
        elif size == 1:
            return best
        else:
            size //= 2


def _drop_steps(
    actions: tuple[Action, ...], constants: Constants, trace: Trace, invariant: Invariant, size: int
) -> Trace | None:
    """The trace without some `size` neighbouring steps; None if each of them is needed."""
    calls = [step.action for step in trace.steps]
    for start in range(len(calls)):
        rest = calls[:start] + calls[start + size :]
        found = _replay(actions, constants, trace.initial, rest, invariant)
        if found is not None and len(found.steps) < len(trace.steps):
            return found
    return None


def _replay(
    actions: tuple[Action, ...],
    constants: Constants,
    first: ModelState,
    calls: Sequence[ActionCall],
    invariant: Invariant,
) -> Trace | None:
    """Repeats the calls that are possible, up to the first broken state; None if none is broken."""
    state, steps = first, list[Step]()
    for call in calls:
        step = next(
            (s for s in successors(actions, constants, state) if _is_same_call(s.action, call)),
            None,
        )
        if step is None:
            continue
        steps.append(step)
        state = step.state
        if not invariant.holds(constants, state):
            return Trace(first, tuple(steps))
    return None


def _is_same_call(one: ActionCall, other: ActionCall) -> bool:
    """The same action on the same replicas. Epochs are ignored: they change with each election."""

    def replicas(call: ActionCall) -> list[int | None]:
        return [
            value
            for name, value in zip(call.parameters, call.arguments, strict=True)
            if "epoch" not in name
        ]

    return one.name == other.name and replicas(one) == replicas(other)
