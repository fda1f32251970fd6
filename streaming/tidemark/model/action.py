"""Actions and traces: what can happen, what happened, and the states between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidemark.model.state import ClusterState, Constants

Arguments = tuple[int | None, ...]
Successors = Iterator[tuple[Arguments, ClusterState]]
Rule = Callable[[Constants, ClusterState], Successors]


class Action(NamedTuple):
    """One action of the specification: its name there, what its arguments are, and every way in which it can happen in a state."""

    name: str
    parameters: tuple[str, ...]
    successors: Rule


class Taken(NamedTuple):
    """An action that happened, with its arguments; replicas count from 0."""

    name: str
    parameters: tuple[str, ...]
    arguments: Arguments


class Step(NamedTuple):
    """An action and the state that it led to."""

    action: Taken
    state: ClusterState


class Trace(NamedTuple):
    """A run: where it began (no step) and its steps."""

    initial: ClusterState
    steps: tuple[Step, ...]

    @property
    def states(self) -> tuple[ClusterState, ...]:
        """All states in order, the first included."""
        return (self.initial, *(step.state for step in self.steps))

    @property
    def last(self) -> ClusterState:
        """Where it ended."""
        return self.steps[-1].state if self.steps else self.initial


def action(name: str, *parameters: str) -> Callable[[Rule], Action]:
    """Makes an Action of a function; `parameters` name what it yields before each successor."""
    return lambda rule: Action(name, parameters, rule)


def successors(
    actions: tuple[Action, ...], constants: Constants, state: ClusterState
) -> Iterator[Step]:
    """Every step that is possible in a state, in the order of the actions."""
    for each in actions:
        for arguments, successor in each.successors(constants, state):
            yield Step(Taken(each.name, each.parameters, arguments), successor)
